"""Images of sandboxes, bounded by bytes: the least recently used is packed first, and goes first."""

from __future__ import annotations

import shutil
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from exact.errors import EnvironmentFailure

PACKED_FROM = 0.5
"""Share of the room from which on images are packed."""


class SandboxImage(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a sandbox at one moment."""

    id: str
    folder: Path
    bundle: Path
    """The folder with the configuration it was started with; a restore needs the same."""
    bytes: int
    versions: dict[str, str]
    """Of everything that it must meet again: sandbox, interpreter, browser."""
    base: Path | None = None
    """The folder of an image that stays, and of which most pages are the same."""
    packed: bool = False
    """Whether some of it is packed; `bytes` are then those of what it is now."""


class ImageStore:
    """Keeps images up to a limit. Not for threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Bytes of all images together, as far as they are not held."""
        self._kept: OrderedDict[str, SandboxImage] = OrderedDict()
        self._staying: set[str] = set()
        """Those that stay until they are dropped."""
        self._pins: Counter[str] = Counter()
        self._leaving: dict[str, SandboxImage] = {}
        """Those that were dropped while somebody held them."""

    @property
    def bytes(self) -> int:
        """Of all images together, without those that go as soon as nobody holds them."""
        return sum(image.bytes for image in self._kept.values())

    def __contains__(self, id: str) -> bool:
        return id in self._kept

    def keep(self, image: SandboxImage, *, pinned: bool = False) -> None:
        """Take an image in; the least recently used ones that nobody holds make room. A pinned one stays until it is dropped."""
        self._kept[image.id] = image
        if pinned:
            self._staying.add(image.id)
        self._trim(image.id)

    def change(self, image: SandboxImage) -> None:
        """It has another size now. Others make room, as for a new one."""
        if image.id in self._leaving:
            self._leaving[image.id] = image
            return
        self._kept[image.id] = image
        self._trim(image.id)

    def scarce(self, but: Container[str] = ()) -> SandboxImage | None:
        """What is to be packed next, as long as more than a share of the room is taken: not the newest, which is likely to be wanted."""
        if self.bytes <= PACKED_FROM * self.limit:
            return None
        older = list(self._kept.values())[:-1]
        return next((each for each in older if not each.packed and not self._is_held(each.id) and each.id not in but), None)

    def _trim(self, newest: str) -> None:
        for id in list(self._kept):
            if self.bytes <= self.limit:
                return
            if id != newest and not self._is_held(id):
                self.drop(id)

    def _is_held(self, id: str) -> bool:
        return id in self._staying or bool(self._pins[id])

    def find(self, id: str) -> SandboxImage:
        """Raises EnvironmentFailure if it is gone. One that was dropped is there while somebody holds it."""
        found = self._kept.get(id) or self._leaving.get(id)
        if found is None:
            raise EnvironmentFailure(f"snapshot {id} is gone, dropped or for want of room: return by another route")
        return found

    @contextmanager
    def hold(self, image: SandboxImage) -> Iterator[None]:
        """It was used now, and stays while the block runs, though it be dropped."""
        if image.id in self._kept:
            self._kept.move_to_end(image.id)
        with self.pin(image):
            yield

    @contextmanager
    def pin(self, image: SandboxImage) -> Iterator[None]:
        """It stays while the block runs, though it be dropped."""
        self._pins[image.id] += 1
        try:
            yield
        finally:
            self._pins[image.id] -= 1
            if not self._pins[image.id]:
                del self._pins[image.id]
                if leaving := self._leaving.pop(image.id, None):
                    shutil.rmtree(leaving.folder, ignore_errors=True)

    def drop(self, id: str) -> None:
        """Delete an image, as soon as nobody holds it; nothing happens if it is gone already."""
        self._staying.discard(id)
        if image := self._kept.pop(id, None):
            if self._pins[id]:
                self._leaving[id] = image
            else:
                shutil.rmtree(image.folder, ignore_errors=True)


def folder_size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir())
