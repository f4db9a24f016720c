"""Downloaded files, where the browser runs on this machine."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from exact.environments.browser.page.downloads import File
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import CDPSession


class LocalStore:
    """A folder of this machine."""

    def __init__(self, folder: str, cdp: CDPSession) -> None:
        self.folder, self._cdp = folder, cdp

    async def take(self, id: str) -> File:
        return await asyncio.to_thread(_taken, Path(self.folder) / id)

    async def cancel(self, id: str) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # it has just come to its end
            await self._cdp.send("Browser.cancelDownload", {"guid": id})
        (Path(self.folder) / id).unlink(missing_ok=True)


def _taken(path: Path) -> File:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        path.unlink()
    except OSError as error:
        raise EnvironmentFailure(f"a file that was downloaded is not there: {error.strerror}") from error
    return File(size, digest)
