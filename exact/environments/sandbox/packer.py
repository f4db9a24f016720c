"""Images are made small in the background where room gets scarce, and as they were when they are wanted."""

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
    """Of one owner's images. It takes processor time of low priority, a process of its own, and one image at a time."""

    def __init__(self, images: ImageStore) -> None:
        self._images = images
        self._refused: set[str] = set()
        self._turn, self._at = asyncio.Lock(), ""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Pack what is to be packed, if that is not under way."""
        if (self._task is None or self._task.done()) and self._next():
            self._task = asyncio.ensure_future(self._all())

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def close(self) -> None:
        """Stop. Never raises; may be called twice."""
        if self._task is not None:
            self._task.cancel()
            await self.settled()

    async def unpacked(self, image: SandboxImage) -> SandboxImage:
        """An image, which somebody holds, as it was. Raises EnvironmentFailure where it is damaged, or there is no room."""
        if not image.packed and self._at != image.id:
            return image
        return await asyncio.shield(asyncio.ensure_future(self._unpack(image.id)))

    async def _unpack(self, id: str) -> SandboxImage:
        async with self._turn:
            image = self._images.find(id)
            if image.packed:
                try:
                    await asyncio.to_thread(pack.unpack, image.folder, image.base)
                except (OSError, ValueError) as error:
                    raise EnvironmentFailure(f"snapshot {id} cannot be unpacked: {error}") from error
                image = msgspec.structs.replace(image, bytes=folder_size(image.folder), packed=False)
                self._images.change(image)
            return image

    async def _all(self) -> None:
        while True:
            async with self._turn:  # first: what is held when its turn comes is not packed
                if (image := self._next()) is None:
                    return
                self._at = image.id
                try:
                    with self._images.pin(image):
                        await self._pack(image)
                finally:
                    self._at = ""

    async def _pack(self, image: SandboxImage) -> None:
        command = (sys.executable, "-I", "-S", pack.__file__, str(image.folder), *([str(image.base)] if image.base else []))
        process = await Child.start(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        try:
            _, said = await process.communicate()
        finally:
            await process.end()
        if process.returncode:
            self._refused.add(image.id)
            _logger.warning("snapshot %s stays as large as it is: %s", image.id, said.decode(errors="replace").strip().splitlines()[-1:])
        packed = any(image.folder.glob("*.packed"))
        self._images.change(msgspec.structs.replace(image, bytes=folder_size(image.folder), packed=packed))

    def _next(self) -> SandboxImage | None:
        return self._images.scarce(self._refused)
