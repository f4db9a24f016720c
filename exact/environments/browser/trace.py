"""Playwright's trace of a world, where one is asked for: secrets are named in it, not told."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_TEXTS = (".trace", ".network", ".stacks", ".html", ".json", ".txt", ".css", ".js")


class Trace:
    """Of one world, from entering a context to leaving it."""

    def __init__(self) -> None:
        self._context: BrowserContext | None = None
        self._folder = self._name = ""

    async def begin(self, context: BrowserContext, folder: str, name: str) -> None:
        """Trace from now on; not if the folder is empty. `name`: what the file is to be called."""
        if folder:
            self._context, self._folder, self._name = context, folder, name
            await context.tracing.start(screenshots=True, snapshots=True)

    async def end(self, veil: Callable[[str], str]) -> None:
        """Write it, readable by this user only: `playwright show-trace FILE` opens it. Never raises for a context that is gone."""
        from playwright.async_api import Error

        context, self._context = self._context, None
        if context is None:
            return
        path = _free(Path(self._folder), re.sub(r"\W+", "-", self._name).strip("-") or "world")
        with tempfile.TemporaryDirectory(prefix="exact-trace-") as folder:
            raw = Path(folder) / "raw.zip"
            try:
                await context.tracing.stop(path=raw)
                await asyncio.to_thread(_veiled, raw, path, veil)
            except Error:
                path.unlink(missing_ok=True)


def _free(folder: Path, name: str) -> Path:
    """A new empty file."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = folder / f"{name}-{number}.zip"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
        else:
            return path


def _veiled(raw: Path, path: Path, veil: Callable[[str], str]) -> None:
    with zipfile.ZipFile(raw) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in whole.namelist():
            data = whole.read(name)
            if name.endswith(_TEXTS):
                data = veil(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            made.writestr(name, data)
