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
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from exact.cli.signals import ending_signals
from exact.cli.terminal import clean_tracebacks, echo
from exact.errors import ExactError, unknown
from exact.version import __version__

COMMANDS = {
    "run": ("exact.cli.run:run", "Run one agent on tasks and write a report for each."),
    "init": ("exact.cli.init:init", "Write the files for your own application and check them."),
    "login": ("exact.cli.login:login", "Log in to a site by hand and save the session."),
    "resume": ("exact.cli.run:resume", "Resume a run that was interrupted or that failed."),
    "status": ("exact.cli.status:status", "Print what a run has done so far, what it cost, and the time left."),
    "bench": ("exact.cli.bench:bench", "Run several agents on a suite at equal budgets and compare them."),
    "cluster": ("exact.cli.cluster:cluster", "Start and end Ray on a list of machines, for benchmarks on many."),
    "compare": ("exact.cli.compare:compare", "Compare two runs task by task."),
    "rescore": ("exact.cli.rescore:rescore", "Replay the committed actions of a run in fresh environments and evaluate them."),
    "report": ("exact.cli.report:report", "Build the reports of a run again."),
    "view": ("exact.cli.view:view", "Show running searches in a browser, and steer them."),
    "show": ("exact.cli.show:show", "Print the statistics, warnings and principal variation of a search, or one state."),
    "audit": ("exact.cli.audit:audit", "Look for secrets in all files of a run."),
    "trust": ("exact.cli.trust:trust", "Trust a run folder that others made, after showing what it names."),
    "calibrate": ("exact.cli.calibrate:calibrate", "Compare the estimates of a value function with outcomes."),
    "export": ("exact.cli.export:export", "Export a run as a Playwright test, a graph or a drawing, and runs as training data."),
    "serve": ("exact.cli.serve:serve", "Serve environments to trainers over OpenEnv."),
    "train": ("exact.cli.train:train", "Train a chat model on exports, or by rewards in live environments."),
    "memory": ("exact.cli.memory:memory", "Show and edit a memory of reflections."),
    "tasks": ("exact.cli.tasks:tasks", "List the tasks of the benchmarks."),
    "check": ("exact.cli.check:check", "Check an environment against the contract that search relies on."),
    "cost": ("exact.cli.cost:cost", "Print the tokens and money that the model calls of a run used."),
    "prompts": ("exact.cli.prompts:prompts", "Show the prompts that models are sent."),
    "mcp": ("exact.cli.mcp:mcp", "Serve exact to MCP clients: solve, show trees, search memories."),
    "config": ("exact.cli.config:config", "Show a configuration with its defaults."),
    "doctor": ("exact.cli.doctor:doctor", "Show what is installed, what is missing, and how to install it."),
}
"""`module:function` and short help of each subcommand."""

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

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, function = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        own = [CompletionItem(name, help=help) for name, (_, help) in COMMANDS.items() if name.startswith(incomplete)]
        return own + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(CLOSED_PIPE) from None


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="exact", message="%(prog)s %(version)s")
def cli() -> None:
    """Solve tasks in real browsers and desktops with agents that use reflective tree search."""


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
