"""The command `exact`: finds the subcommand, runs it, and turns errors into one line and an exit code.

Exit codes: 0 done, 1 infrastructure failure, 2 wrong usage, 3 not solved (with `--fail-unsolved`), 4 a person is needed, 130 interrupted,
143 and 129 ended by SIGTERM and SIGHUP.
The module of a subcommand is imported when the subcommand is called.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from exact.cli.signals import ending_signals
from exact.cli.terminal import clean_tracebacks, clean_warnings, echo
from exact.errors import ExactError, UsageError, unknown
from exact.version import __version__

GROUPS = {
    "Run": {
        "run": ("exact.cli.run:run", "Run one agent on tasks and write a report for each."),
        "resume": ("exact.cli.run:resume", "Resume a run that was interrupted or that failed."),
    },
    "Look": {
        "show": ("exact.cli.show:show", "Print the searches of a run, its progress or its cost."),
        "view": ("exact.cli.view:view", "Show running searches in a browser, and steer them."),
        "report": ("exact.cli.report:report", "Build the reports of a run again."),
        "compare": ("exact.cli.compare:compare", "Compare two runs task by task."),
        "list": ("exact.cli.main:list_", "List tasks, configurations, prompts or reflections, or print one."),
    },
    "Own application": {
        "init": ("exact.cli.init:init", "Write the files for your own application and check them."),
        "login": ("exact.cli.login:login", "Log in to a site by hand and save the session."),
        "check": ("exact.cli.check:check", "Check an environment against the contract that search relies on."),
    },
    "Benchmark and train": {
        "bench": ("exact.cli.bench:bench", "Run several agents on a suite at equal budgets and compare them."),
        "cluster": ("exact.cli.cluster:cluster", "Start and end Ray on a list of machines, for benchmarks on many."),
        "rescore": ("exact.cli.rescore:rescore", "Replay the committed actions of a run, and evaluate them again."),
        "export": ("exact.cli.export:export", "Export runs as Playwright tests, drawings or training data."),
        "train": ("exact.cli.train:train", "Train a chat model or the built-in agent, or calibrate values."),
        "serve": ("exact.cli.serve:serve", "Serve environments, a trained model, or tools for MCP clients."),
    },
    "Maintain": {
        "memory": ("exact.cli.memory:memory", "Show and edit a memory of reflections."),
        "trust": ("exact.cli.trust:trust", "Look for secrets in a run, or trust a run that others made."),
        "doctor": ("exact.cli.doctor:doctor", "Show what is installed, what is missing, and how to install it."),
    },
}
"""`module:function` and short help of each subcommand, by the headings of the help."""
COMMANDS = {name: each for group in GROUPS.values() for name, each in group.items()}
LISTS = {
    "tasks": ("exact.cli.list:tasks", "Print the ids of tasks, or the fields of one."),
    "configs": ("exact.cli.list:configs", "Print the names of shipped configurations, or one with every key."),
    "prompts": ("exact.cli.list:prompts", "Print the names of prompts, or one template."),
    "providers": ("exact.cli.list:providers", "Print the providers of models."),
    "algorithms": ("exact.cli.list:algorithms", "Print the values of search.algorithm."),
    "memory": ("exact.cli.memory:list_", "Print the newest reflections of a memory."),
}
"""The same for `exact list`."""
RETIRED = {
    "status": "show --progress",
    "cost": "show --cost",
    "audit": "trust --secrets",
    "calibrate": "train calibration",
    "mcp": "serve mcp",
    "memory list": "list memory",
    "tasks": "list tasks",
    "tasks list": "list tasks",
    "tasks show": "list tasks --fields",
    "prompts": "list prompts",
    "prompts list": "list prompts",
    "prompts show": "list prompts",
    "prompts render": "list prompts --example",
    "config": "list configs",
    "config show": "list configs",
    "config providers": "list providers",
    "config algorithms": "list algorithms",
}
"""Spellings of the version before, which still work in this one, and those that replace them."""

INTERRUPTED, ENDED = 130, 128
"""Exit code after Ctrl-C, and that after another signal less its number."""
CLOSED_PIPE = 141
"""Exit code if the reader of a pipe has closed it, as shells report SIGPIPE."""

LONGEST_ERROR, _END = 1_200, 400
"""Most characters of an error, and those of its end that are kept if its middle is left out."""

_FIXES = {
    errno.ENOSPC: "free some space, then run `exact resume`",
    errno.EDQUOT: "free some of your quota, then run `exact resume`",
    errno.EACCES: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENOTDIR: "choose another path",
    errno.EISDIR: "choose another path",
    errno.EEXIST: "choose another path",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.ELOOP: "choose another path",
}


class _Lazy(click.Group):
    """A group that knows the names and short helps of its commands without importing them."""

    def __init__(self, *given: Any, table: Mapping[str, tuple[str, str]], sections: Mapping[str, Iterable[str]], **more: Any) -> None:
        super().__init__(*given, **more)
        self.table, self.sections = table, sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.table:
            return None
        clean_warnings()
        module, _, function = self.table[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.parent is None:
            args = _renamed(args, quiet=ctx.resilient_parsing)
        if args[0] not in self.table and not args[0].startswith("-"):
            raise _unknown(args[0], self.table, {} if ctx.parent else RETIRED)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        own = [CompletionItem(name, help=help) for name, (_, help) in self.table.items() if name.startswith(incomplete)]
        return own + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.table))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self.table[name][1]) for name in names])

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(CLOSED_PIPE) from None


def _renamed(args: list[str], *, quiet: bool) -> list[str]:
    """Return a command line with the present spelling of its command, and name that on stderr if it was written as before."""
    for count in (2, 1):
        if new := RETIRED.get(old := " ".join(args[:count])):
            if not quiet:
                echo(f"exact: `exact {old}` is now `exact {new}`: the old spelling ends with the next version", err=True)
            return [*new.split(), *args[count:]]
    return args


def _unknown(name: str, table: Iterable[str], retired: Mapping[str, str]) -> ExactError:
    """Return the error for an unknown command, with the nearest one in its present spelling."""
    import difflib

    near = difflib.get_close_matches(name, [*table, *retired], n=1)
    if near and near[0] in retired:
        return UsageError(f"unknown command {name!r}: did you mean {retired[near[0]]!r}?")
    return unknown("command", name, table)


@click.group(cls=_Lazy, table=COMMANDS, sections=GROUPS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="exact", message="%(prog)s %(version)s")
def cli() -> None:
    """Solve tasks in real browsers and desktops with agents that use reflective tree search."""


@click.group("list", cls=_Lazy, table=LISTS, sections={"Lists": LISTS})
def list_() -> None:
    """List tasks, configurations, prompts, providers, algorithms or reflections, or print one of them."""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line, by default that of this process, and return its exit code."""
    clean_tracebacks()
    with ending_signals() as signals:
        code = _main(args)
    return ENDED + signals.came if signals.came is not None and code == INTERRUPTED else code


def _main(args: Sequence[str] | None) -> int:
    try:
        result = cli.main(args, prog_name="exact", standalone_mode=False)
    except ExactError as error:
        return _fail(str(error), error.exit_code)
    except ExceptionGroup as group:
        first = _expected(group)
        if first is None:
            raise
        return _fail(str(first), first.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except RecursionError:
        return _fail("a file is nested too deeply to be read: use one that exact wrote", 2)
    except OSError as error:
        if error.errno not in _FIXES:
            raise
        return _fail(f"{error.strerror}{f': {error.filename}' if error.filename else ''}: {_FIXES[error.errno]}", 1)
    return result if isinstance(result, int) else 0


def _expected(group: ExceptionGroup[Exception]) -> ExactError | None:
    """Return the first error of a group that contains only errors of this package; None for any other group."""
    own, other = group.split(ExactError)
    if other is not None or own is None:
        return None
    error: Exception = own
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, ExactError) else None


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    if len(line) > LONGEST_ERROR:
        line = f"{line[: LONGEST_ERROR - _END]} … {line[-_END:]}"  # the way out stands at the end
    echo(f"exact: {line}", err=True)
    return code
