"""Packs images in the background when memory gets scarce, and unpacks them when they are wanted."""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE

import msgspec

from exact.child import Child
from exact.environments.sandbox import pack
from exact.environments.sandbox.images import ImageStore, SandboxImage, folder_size
from exact.errors import EnvironmentFailure

_logger = logging.getLogger("exact.sandbox")


class ImagePacker:
    """Packs the images of a store, one at a time, in a process of low priority."""

    def __init__(self, images: ImageStore) -> None:
        self._images = images
        self._refused: set[str] = set()
        self._lock, self._current = asyncio.Lock(), ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to pack what is to be packed, unless packing is in progress."""
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
        """Return an image in use with its files unpacked. Raises EnvironmentFailure where it is damaged, or memory does not suffice."""
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
