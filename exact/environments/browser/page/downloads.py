"""What an environment's pages download: followed to its end, kept as name, size and hash. Files that are too large are stopped."""

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

Event = dict[str, Any]


class DownloadedFile(NamedTuple):
    """What is known of a file that has come."""

    size: int
    """Bytes."""
    digest: str
    """Hex SHA-256."""


class DownloadStore(Protocol):
    """Where a browser puts what it downloads."""

    folder: str
    """As the browser knows it."""

    async def take(self, id: str) -> DownloadedFile:
        """A file that has come whole; it is not needed any more. Raises EnvironmentFailure where it is not there."""
        ...

    async def cancel(self, id: str) -> None:
        """Stop one."""
        ...


class LocalDownloadStore:
    """A folder of this machine."""

    def __init__(self, folder: str, cdp: CDPSession) -> None:
        self.folder, self._cdp = folder, cdp

    async def take(self, id: str) -> DownloadedFile:
        return await asyncio.to_thread(_taken, Path(self.folder) / id)

    async def cancel(self, id: str) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # it has just come to its end
            await self._cdp.send("Browser.cancelDownload", {"guid": id})
        (Path(self.folder) / id).unlink(missing_ok=True)


class Downloads:
    """Those of one episode."""

    def __init__(self, limit: int, store: DownloadStore, record: Callable[[SideEffect], None], had: tuple[str, ...] = ()) -> None:
        """`limit`: bytes of one file. `had`: what `kept` was in the state that the environment was brought to."""
        self._limit, self._store, self._record = limit, store, record
        self.kept = had
        """One line for each file that came: name, size, hash."""
        self.refused = ""
        """Why the last one was stopped; whoever reads it empties it."""
        self._going: dict[str, Event] = {}
        self._taking: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> bool:
        return bool(self._going or self._taking)

    def begin(self, event: Event) -> None:
        """A page begins one: CDP's Page.downloadWillBegin."""
        self._going[event["guid"]] = event

    def progress(self, event: Event) -> None:
        """CDP's Page.downloadProgress."""
        begun = self._going.get(event["guid"])
        if begun is None:
            return
        large = max(event.get("totalBytes", 0), event.get("receivedBytes", 0)) > self._limit
        if large:
            self._refuse(begun)
        elif event["state"] == "completed":
            self._later(self._take(self._going.pop(event["guid"])))
        elif event["state"] == "canceled":
            self._going.pop(event["guid"])
            self._record(SideEffect(kind="blocked", method="GET", url=begun["url"], detail=f"the download of {_name(begun)} broke off"))

    async def done(self) -> None:
        """Return when all files that came are looked at."""
        await asyncio.gather(*self._taking)

    def _refuse(self, begun: Event) -> None:
        self._going.pop(begun["guid"])
        self.refused = f"{_name(begun)} was not downloaded: it is larger than the {self._limit:,} bytes that browser.download_bytes allows"
        self._record(SideEffect(kind="blocked", method="GET", url=begun["url"], detail=self.refused))
        self._later(self._store.cancel(begun["guid"]))

    async def _take(self, begun: Event) -> None:
        file, name = await self._store.take(begun["guid"]), _name(begun)
        if file.size > self._limit:  # it came faster than it was told of
            self._going[begun["guid"]] = begun
            self._refuse(begun)
            return
        self.kept = (*self.kept, f"{name} ({file.size} bytes, sha256 {file.digest[:16]})")
        self._record(SideEffect(kind="download", method="GET", url=begun["url"], detail=name, size=file.size, digest=file.digest))

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)


def _name(begun: Event) -> str:
    return str(begun.get("suggestedFilename") or "a file")


def _taken(path: Path) -> DownloadedFile:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        path.unlink()
    except OSError as error:
        raise EnvironmentFailure(f"a file that was downloaded is not there: {error.strerror}") from error
    return DownloadedFile(size, digest)
