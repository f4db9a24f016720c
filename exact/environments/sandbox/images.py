"""Store of sandbox images, bounded by bytes: the least recently used image is packed first and evicted first.

Packs images in the background when memory gets scarce, and unpacks them when they are needed.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from exact.environments.sandbox import pack
from exact.errors import EnvironmentFailure
from exact.machine import Child

PACKED_FROM = 0.5
"""Share of the limit from which on images are packed."""


class SandboxImage(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a sandbox at one moment."""

    id: str
    folder: Path
    bundle: Path
    """Folder with the configuration that the sandbox was started with; a restore needs the same."""
    bytes: int
    versions: dict[str, str]
    """Versions of everything that a restore needs unchanged: sandbox, interpreter, browser."""
    base: Path | None = None
    """Folder of a pinned image that has most pages in common with this one."""
    packed: bool = False
    """Whether a part is packed; `bytes` is then the present size."""


class ImageStore:
    """Images up to a limit. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Bytes of all images together, not counting those that are in use or pinned."""
        self._images: OrderedDict[str, SandboxImage] = OrderedDict()
        self._pinned: set[str] = set()
        """Ids of images that stay until they are dropped."""
        self._users: Counter[str] = Counter()
        """Number of users by id."""
        self._dropped: dict[str, SandboxImage] = {}
        """Images that were dropped while in use."""

    @property
    def bytes(self) -> int:
        """Bytes of all images together, without those that are deleted as soon as they are no longer in use."""
        return sum(image.bytes for image in self._images.values())

    def __contains__(self, id: str) -> bool:
        return id in self._images

    def add(self, image: SandboxImage, *, pinned: bool = False) -> None:
        """Add an image and evict the least recently used ones that are not in use. A pinned image stays until it is dropped."""
        self._images[image.id] = image
        if pinned:
            self._pinned.add(image.id)
        self._evict(image.id)

    def update(self, image: SandboxImage) -> None:
        """Replace the entry of an image whose size has changed; evict others as for a new one."""
        if image.id in self._dropped:
            self._dropped[image.id] = image
            return
        self._images[image.id] = image
        self._evict(image.id)

    def next_to_pack(self, excluded: Container[str] = ()) -> SandboxImage | None:
        """Return the next image to pack while more than a share of the limit is used. Never the newest, which is likely to be needed."""
        if self.bytes <= PACKED_FROM * self.limit:
            return None
        older = list(self._images.values())[:-1]
        return next((each for each in older if not each.packed and not self._is_used(each.id) and each.id not in excluded), None)

    def _evict(self, newest: str) -> None:
        for id in list(self._images):
            if self.bytes <= self.limit:
                return
            if id != newest and not self._is_used(id):
                self.drop(id)

    def _is_used(self, id: str) -> bool:
        return id in self._pinned or bool(self._users[id])

    def find(self, id: str) -> SandboxImage:
        """Return an image, also one that was dropped while in use. Raises EnvironmentFailure if it is gone."""
        found = self._images.get(id) or self._dropped.get(id)
        if found is None:
            raise EnvironmentFailure(f"snapshot {id} is gone, dropped or evicted: return by another route")
        return found

    @contextmanager
    def use(self, image: SandboxImage) -> Iterator[None]:
        """Mark an image as used now, and retain it during the block even if it is dropped."""
        if image.id in self._images:
            self._images.move_to_end(image.id)
        with self.retain(image):
            yield

    @contextmanager
    def retain(self, image: SandboxImage) -> Iterator[None]:
        """Retain an image during the block even if it is dropped."""
        self._users[image.id] += 1
        try:
            yield
        finally:
            self._users[image.id] -= 1
            if not self._users[image.id]:
                del self._users[image.id]
                if dropped := self._dropped.pop(image.id, None):
                    shutil.rmtree(dropped.folder, ignore_errors=True)

    def drop(self, id: str) -> None:
        """Delete an image, as soon as it is no longer in use. Does nothing if it is gone."""
        self._pinned.discard(id)
        if image := self._images.pop(id, None):
            if self._users[id]:
                self._dropped[id] = image
            else:
                shutil.rmtree(image.folder, ignore_errors=True)


def folder_size(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir())


_logger = logging.getLogger("exact.sandbox")


class ImagePacker:
    """Packs the images of a store, one at a time, in a process of low priority."""

    def __init__(self, images: ImageStore) -> None:
        self._images = images
        self._refused: set[str] = set()
        self._lock, self._current = asyncio.Lock(), ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to pack the images that are to be packed, unless packing is in progress."""
        if (self._task is None or self._task.done()) and self._next():
            self._task = asyncio.ensure_future(self._all())

    async def wait(self) -> None:
        """Wait until no packing is in progress."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def close(self) -> None:
        """Stop packing. Never raises; may be called twice."""
        if self._task is not None:
            self._task.cancel()
            await self.wait()

    async def unpacked(self, image: SandboxImage) -> SandboxImage:
        """Return an image in use with its files unpacked. Raises EnvironmentFailure if it is damaged, or memory does not suffice."""
        if not image.packed and self._current != image.id:
            return image
        return await asyncio.shield(asyncio.ensure_future(self._unpack(image.id)))

    async def _unpack(self, id: str) -> SandboxImage:
        async with self._lock:
            image = self._images.find(id)
            if image.packed:
                try:
                    await asyncio.to_thread(pack.unpack, image.folder, image.base)
                except (OSError, ValueError) as error:
                    raise EnvironmentFailure(f"snapshot {id} cannot be unpacked: {error}") from error
                image = msgspec.structs.replace(image, bytes=folder_size(image.folder), packed=False)
                self._images.update(image)
            return image

    async def _all(self) -> None:
        while True:
            async with self._lock:  # taken first: an image in use by then is not packed
                if (image := self._next()) is None:
                    return
                self._current = image.id
                try:
                    with self._images.retain(image):
                        await self._pack(image)
                finally:
                    self._current = ""

    async def _pack(self, image: SandboxImage) -> None:
        command = (sys.executable, "-I", "-S", pack.__file__, str(image.folder), *([str(image.base)] if image.base else []))
        process = await Child.start(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        try:
            _, output = await process.communicate()
        finally:
            await process.end()
        if process.returncode:
            self._refused.add(image.id)
            _logger.warning("snapshot %s could not be packed: %s", image.id, output.decode(errors="replace").strip().splitlines()[-1:])
        packed = any(image.folder.glob("*.packed"))
        self._images.update(msgspec.structs.replace(image, bytes=folder_size(image.folder), packed=packed))

    def _next(self) -> SandboxImage | None:
        return self._images.next_to_pack(self._refused)
