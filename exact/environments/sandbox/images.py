"""Images of sandboxes, bounded by bytes: the least recently used goes first."""

from __future__ import annotations

import shutil
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from exact.errors import EnvironmentError_


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a sandbox at one moment."""

    id: str
    folder: Path
    bundle: Path
    """The folder with the configuration it was started with; a restore needs the same."""
    bytes: int
    versions: dict[str, str]
    """Of everything that it must meet again: sandbox, interpreter, browser."""


class Images:
    """Keeps images up to a limit. Not for threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, Image] = OrderedDict()
        self._pins: Counter[str] = Counter()

    @property
    def bytes(self) -> int:
        """Of all images together."""
        return sum(image.bytes for image in self._kept.values())

    def __contains__(self, id: str) -> bool:
        return id in self._kept

    def keep(self, image: Image, *, pinned: bool = False) -> None:
        """Take an image in; the least recently used ones that nobody holds make room. A pinned one stays until it is dropped."""
        self._kept[image.id] = image
        if pinned:
            self._pins[image.id] = 1
        for id in list(self._kept):
            if self.bytes <= self._limit:
                return
            if id != image.id and not self._pins[id]:
                self.drop(id)

    def find(self, id: str) -> Image:
        """Raises EnvironmentError_ if it is gone."""
        if id not in self._kept:
            raise EnvironmentError_(f"snapshot {id} is gone, dropped or for want of room: return by another route")
        return self._kept[id]

    @contextmanager
    def hold(self, image: Image) -> Iterator[None]:
        """It was used now, and stays while the block runs."""
        self._kept.move_to_end(image.id)
        self._pins[image.id] += 1
        try:
            yield
        finally:
            self._pins[image.id] -= 1

    def drop(self, id: str) -> None:
        """Delete an image; nothing happens if it is gone already."""
        self._pins.pop(id, None)
        if image := self._kept.pop(id, None):
            shutil.rmtree(image.folder, ignore_errors=True)


def size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir())
