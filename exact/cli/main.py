"""The command `exact`: finds the subcommand, runs it, and turns errors into one line and an exit code.

Exit codes: 0 done, 1 failure of the infrastructure, 2 wrong usage, 3 not solved (where `--fail-unsolved` asks), 130 interrupted. A
subcommand's module is imported only when it is called.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

import click

import exact
from exact.errors import ExactError, unknown

COMMANDS = {
    "run": ("exact.cli.run:run", "Lets one agent attempt some tasks and writes a report of each."),
    "init": ("exact.cli.init:init", "Writes the files for your own application, and tries them."),
    "login": ("exact.cli.login:login", "Lets you log in to a site by hand, and keeps it."),
    "resume": ("exact.cli.resume:resume", "Goes on with a run that was interrupted."),
    "bench": ("exact.cli.bench:bench", "Lets several agents attempt a suite, paired and at equal budgets, and writes tables and curves."),
    "compare": ("exact.cli.compare:compare", "Compares two runs task by task."),
    "rescore": ("exact.cli.rescore:rescore", "Takes the committed actions of a run again in fresh environments and evaluates them."),
    "report": ("exact.cli.report:report", "Builds the reports of a run again."),
    "view": ("exact.cli.view:view", "Shows searches in a browser while they run, and takes commands for them."),
    "show": ("exact.cli.show:show", "Prints what a search found: figures, warnings, the principal variation, one state."),
    "calibrate": ("exact.cli.calibrate:calibrate", "Compares a value function's judgements with outcomes."),
    "export": ("exact.cli.export:export", "Writes a run in other forms: a Playwright test, a graph, a drawing, a moving picture."),
    "memory": ("exact.cli.memory:memory", "Shows and tidies what was learned: list, search, forget, restore, export, merge."),
    "tasks": ("exact.cli.tasks:tasks", "Names the tasks of the benchmarks."),
    "check": ("exact.cli.check:check", "Tries whether an environment keeps the contract that searches rely on."),
    "cost": ("exact.cli.cost:cost", "Prints what the model calls of a run took."),
    "prompts": ("exact.cli.prompts:prompts", "Shows what models are asked, word for word."),
    "config": ("exact.cli.config:config", "Shows what a configuration means."),
    "doctor": ("exact.cli.doctor:doctor", "Says what is installed, what is missing, and how to get it."),
}
"""Each subcommand's `module:function`, and its line in the help."""

INTERRUPTED = 130
CLOSED_PIPE = 141
"""As the shell reports a program whose reader went away."""

_FIXES = {
    errno.ENOSPC: "free some space, then go on with `exact resume`",
    errno.EDQUOT: "free some of your quota, then go on with `exact resume`",
    errno.EACCES: "choose a place you may write to",
    errno.EROFS: "choose a place you may write to",
    errno.ENOTDIR: "name another place",
    errno.EISDIR: "name another place",
    errno.EEXIST: "name another place",
}


class _Lazy(click.Group):
    """A group that knows its commands' names and short helps without importing them."""

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
@click.version_option(exact.__version__, prog_name="exact", message="%(prog)s %(version)s")
def cli() -> None:
    """Agents that solve tasks in real browsers by reflective tree search."""


def main(args: Sequence[str] | None = None) -> int:
    """Runs one command line (by default this process's) and gives its exit code."""
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
    except OSError as error:
        if error.errno not in _FIXES:
            raise
        return _fail(f"{error.strerror}{f': {error.filename}' if error.filename else ''}: {_FIXES[error.errno]}", 1)
    return result if isinstance(result, int) else 0


def _expected(group: ExceptionGroup[Exception]) -> ExactError | None:
    """The first of a group that holds nothing but errors of this package; else None."""
    own, other = group.split(ExactError)
    if other is not None or own is None:
        return None
    error: Exception = own
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, ExactError) else None


def _fail(message: str, code: int) -> int:
    click.echo(f"exact: {' '.join(message.split())}", err=True)
    return code
