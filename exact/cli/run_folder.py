"""Arguments that name run folders: paths of this machine, or addresses on storage such as s3://bucket/run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click

from exact.cli.terminal import name_as

R = TypeVar("R")


class RunFolderPath(click.Path):
    """A path, or an address on storage, which `on_storage` opens."""

    name = "folder"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a Path, or the address as it is."""
        return str(value) if "://" in str(value) else super().convert(value, param, ctx)


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

                    copy = stack.enter_context(stored_folder(value, write=write and not given.get("dry_run")))
                    name_as(copy, value)
                    return copy

                value = given[name]
                given[name] = tuple(map(opened, value)) if isinstance(value, tuple) else opened(value)
                return command(*args, **given)

        return call

    return decorate
