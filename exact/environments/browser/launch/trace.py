"""Playwright's trace of an environment, with secrets replaced by their names."""

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
from exact.machine import scratch

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_logger = logging.getLogger("exact.browser")
_BINARY = (".png", ".jpeg", ".jpg", ".gif", ".webp", ".avif", ".woff", ".woff2", ".gz", ".zip", ".br")
"""Endings of entries that contain no text. Any other entry may contain secrets, such as the body of a request."""


_FRAMES = "resources/page@"
"""Beginning of the names of screenshots."""


class PlaywrightTrace:
    """A trace of one environment, from opening a context to closing it."""

    def __init__(self) -> None:
        self._context: BrowserContext | None = None
        self._folder = self._name = ""

    async def begin(self, context: BrowserContext, folder: str, name: str) -> None:
        """Start to trace, unless `folder` is empty.

        `name`: name of the file in the folder. Raises UsageError if files cannot be written to the folder.
        """
        if folder:
            _make_folder(Path(folder))
            self._context, self._folder, self._name = context, folder, name
            await context.tracing.start(screenshots=True, snapshots=True)

    async def end(self, mask: Callable[[str], str], *, pictures: Callable[[], bool] = lambda: True) -> None:
        """Write the trace, readable by this user only. `playwright show-trace FILE` opens it.

        `mask` masks secrets. `pictures` returns whether its screenshots, which nothing masks, are kept. Never raises: a warning in the log
        gives the reason why the trace is missing.
        """
        from playwright.async_api import Error

        context, self._context = self._context, None
        if context is None:
            return
        try:
            with suppress(Error):  # the context is gone
                await self._write(context, mask, pictures())
        except (OSError, EnvironmentFailure, zipfile.BadZipFile) as error:
            _logger.warning("%s is not traced: %s", self._name, error)
            with suppress(Error):  # it is stopped already
                await context.tracing.stop()  # so that Playwright drops its recording

    async def _write(self, context: BrowserContext, mask: Callable[[str], str], pictures: bool) -> None:
        path = _new_file(Path(self._folder), re.sub(r"\W+", "-", self._name).strip("-") or "environment")
        try:
            with scratch("trace") as folder:
                raw = folder / "raw.zip"
                await context.tracing.stop(path=raw)
                await asyncio.to_thread(_write_masked, raw, path, mask, pictures)
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(f"no trace can be written to {folder} ({error.strerror}): name another folder at browser.traces") from error


def _new_file(folder: Path, name: str) -> Path:
    """Create a new empty file and return its path."""
    number = 1
    while True:
        path = folder / f"{name}-{number}.zip"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
        else:
            return path


def _write_masked(raw: Path, path: Path, mask: Callable[[str], str], pictures: bool) -> None:
    with zipfile.ZipFile(raw) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in whole.namelist():
            if name.startswith(_FRAMES) and not pictures:
                continue
            data = whole.read(name)
            if not name.endswith(_BINARY):
                data = mask(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            made.writestr(name, data)
