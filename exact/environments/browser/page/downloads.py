"""Downloads of an environment: name, size and hash of each file are kept. Files that are too large are cancelled."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from exact.environments.base import SideEffect
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.cdp import CdpConnection

Event = dict[str, Any]


class DownloadedFile(NamedTuple):
    """A downloaded file, whose content is not kept."""

    size: int
    """Size in bytes."""
    digest: str
    """Hexadecimal SHA-256."""


class DownloadStore(Protocol):
    """The folder into which a browser downloads."""

    folder: str
    """Path of the folder, as the browser knows it."""

    async def take(self, id: str) -> DownloadedFile:
        """Measure and delete a completed file. Raises EnvironmentFailure if it is missing."""
        ...

    async def cancel(self, id: str) -> None:
        """Cancel a download."""
        ...


class LocalDownloadStore:
    """A download folder on this machine."""

    def __init__(self, folder: str, cdp: CDPSession | CdpConnection) -> None:
        self.folder, self._cdp = folder, cdp

    async def take(self, id: str) -> DownloadedFile:
        return await asyncio.to_thread(_take_file, Path(self.folder) / id)

    async def cancel(self, id: str) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # it has just ended
            await self._cdp.send("Browser.cancelDownload", {"guid": id})
        (Path(self.folder) / id).unlink(missing_ok=True)


class Downloads:
    """The downloads of one episode."""

    def __init__(self, limit: int, store: DownloadStore, record: Callable[[SideEffect], None], completed: tuple[str, ...] = ()) -> None:
        """Create downloads that report side effects by `record`.

        `limit`: maximum bytes of one file. `completed`: lines of files that the episode had downloaded before.
        """
        self._limit, self._store, self._record = limit, store, record
        self.completed = completed
        """A line for each completed file: name, size, hash."""
        self.refused = ""
        """The reason why the last download was cancelled. The reader empties it."""
        self._begun: dict[str, Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_progress(self) -> bool:
        """Return whether a file is being downloaded or measured."""
        return bool(self._begun or self._tasks)

    def begin(self, event: Event) -> None:
        """Handle CDP's Page.downloadWillBegin."""
        self._begun[event["guid"]] = event

    def progress(self, event: Event) -> None:
        """Handle CDP's Page.downloadProgress."""
        begun = self._begun.get(event["guid"])
        if begun is None:
            return
        large = max(event.get("totalBytes", 0), event.get("receivedBytes", 0)) > self._limit
        if large:
            self._refuse(begun)
        elif event["state"] == "completed":
            self._start(self._take(self._begun.pop(event["guid"])))
        elif event["state"] == "canceled":
            self._begun.pop(event["guid"])
            detail = f"the download of {_name(begun)} was interrupted"
            self._record(SideEffect(kind="blocked", method="GET", url=begun["url"], detail=detail))

    async def done(self) -> None:
        """Wait until all completed files are measured."""
        await asyncio.gather(*self._tasks)

    def _refuse(self, begun: Event) -> None:
        self._begun.pop(begun["guid"])
        self.refused = f"{_name(begun)} was not downloaded: it is larger than the {self._limit:,} bytes that browser.download_bytes allows"
        self._record(SideEffect(kind="blocked", method="GET", url=begun["url"], detail=self.refused))
        self._start(self._store.cancel(begun["guid"]))

    async def _take(self, begun: Event) -> None:
        file, name = await self._store.take(begun["guid"]), _name(begun)
        if file.size > self._limit:  # it completed before its size was reported
            self._begun[begun["guid"]] = begun
            self._refuse(begun)
            return
        self.completed = (*self.completed, f"{name} ({file.size} bytes, sha256 {file.digest[:16]})")
        self._record(SideEffect(kind="download", method="GET", url=begun["url"], detail=name, size=file.size, digest=file.digest))

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _name(begun: Event) -> str:
    return str(begun.get("suggestedFilename") or "a file")


def _take_file(path: Path) -> DownloadedFile:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        path.unlink()
    except OSError as error:
        raise EnvironmentFailure(f"a downloaded file is missing: {error.strerror}") from error
    return DownloadedFile(size, digest)
