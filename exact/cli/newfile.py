"""The type of an option that names a file to write."""

from __future__ import annotations

import os
from pathlib import Path

import click


class NewFile(click.Path):
    """A path to write to, which may exist. Its folder must exist, which is checked before the command runs. Commands interpret `-`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path. Fails where its folder does not exist."""
        folder = Path(value).parent
        if not folder.is_dir():
            self.fail(f"there is no folder {folder}: make it, or name another", param, ctx)
        return super().convert(value, param, ctx)
