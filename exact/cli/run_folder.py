"""Arguments that name run folders: paths of this machine, or addresses on storage such as s3://bucket/run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from exact.cli.terminal import name_as
from exact.errors import UsageError

R = TypeVar("R")


class RunFolderPath(click.Path):
    """A path, or an address on storage, which `on_storage` opens."""

    name = "folder"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a Path, or the address as it is."""
        return str(value) if "://" in str(value) else super().convert(value, param, ctx)


def require_options(use: str, *known: str) -> None:
    """Raise UsageError if an option was given that has no effect in a use of the command, such as `with --cost`."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if isinstance(option, click.Option) and option.name not in known and source is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option.opts[0]} has no effect {use}")


def on_storage(name: str, *, write: bool = False) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that calls a command with local copies in place of the addresses in its argument `name`.

    With `write`, the changes of the command are copied back. Messages name the address, not the copy.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(command)
        def call(*args: Any, **given: Any) -> R:
            with ExitStack() as stack:

                def opened(value: Any) -> Any:
                    if not isinstance(value, str):
                        return value
                    from exact.runs.storage import stored_folder

                    reads = given.get("dry_run") or given.get("read_only")
                    copy = stack.enter_context(stored_folder(value, write=write and not reads))
                    name_as(copy, value)
                    return copy

                value = given[name]
                given[name] = tuple(map(opened, value)) if isinstance(value, tuple) else opened(value)
                return command(*args, **given)

        return call

    return decorate
