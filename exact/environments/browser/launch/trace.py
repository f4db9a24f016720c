"""Playwright's trace of an environment, where one is asked for: secrets are named in it, not told."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from exact.errors import EnvironmentFailure, UsageError
from exact.scratch import scratch

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_logger = logging.getLogger("exact.browser")
_COMPRESSED = (".png", ".jpeg", ".jpg", ".gif", ".webp", ".avif", ".woff", ".woff2", ".gz", ".zip", ".br")
"""Entries in which no text can be read. In all others some may: bodies of requests are kept under names that tell little."""


class PlaywrightTrace:
    """Of one environment, from entering a context to leaving it."""

    def __init__(self) -> None:
        self._context: BrowserContext | None = None
        self._folder = self._name = ""

    async def begin(self, context: BrowserContext, folder: str, name: str) -> None:
        """Start to trace, unless the folder is empty. `name`: the file's name. Raises UsageError where files cannot be written to the
        folder."""
        if folder:
            _made(Path(folder))
            self._context, self._folder, self._name = context, folder, name
            await context.tracing.start(screenshots=True, snapshots=True)

    async def end(self, mask: Callable[[str], str]) -> None:
        """Write it, readable by this user only: `playwright show-trace FILE` opens it. Never raises: the log tells why there is none."""
        from playwright.async_api import Error

        context, self._context = self._context, None
        if context is None:
            return
        try:
            with suppress(Error):  # the context is gone
                await self._write(context, mask)
        except (OSError, EnvironmentFailure, zipfile.BadZipFile) as error:
            _logger.warning("%s is not traced: %s", self._name, error)
            with suppress(Error):  # it was stopped before
                await context.tracing.stop()  # Playwright lets go of what it has kept

    async def _write(self, context: BrowserContext, mask: Callable[[str], str]) -> None:
        path = _free(Path(self._folder), re.sub(r"\W+", "-", self._name).strip("-") or "environment")
        try:
            with scratch("trace") as folder:
                raw = folder / "raw.zip"
                await context.tracing.stop(path=raw)
                await asyncio.to_thread(_masked, raw, path, mask)
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(f"no trace can be written to {folder} ({error.strerror}): name another folder at browser.traces") from error


def _free(folder: Path, name: str) -> Path:
    """A new empty file."""
    number = 1
    while True:
        path = folder / f"{name}-{number}.zip"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
        else:
            return path


def _masked(raw: Path, path: Path, mask: Callable[[str], str]) -> None:
    with zipfile.ZipFile(raw) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in whole.namelist():
            data = whole.read(name)
            if not name.endswith(_COMPRESSED):
                data = mask(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            made.writestr(name, data)
