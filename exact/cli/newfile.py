"""An option that names a file to be written."""

from __future__ import annotations

import os
from pathlib import Path

import click


class NewFile(click.Path):
    """A file that may be there or not; `-` is left to the command. Refused before anything is done where its folder is not there."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path. Fails where no file can be written there."""
        folder = Path(value).parent
        if not folder.is_dir():
            self.fail(f"there is no folder {folder}: make it, or name another", param, ctx)
        return super().convert(value, param, ctx)
