"""Starts, copies and ends sandboxes; owns their folders and images."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import exact
from exact.environments.sandbox.bundle import GuestSpec, make_mount_points, oci_configuration
from exact.environments.sandbox.images import ImageStore, SandboxImage, folder_size
from exact.environments.sandbox.packer import ImagePacker
from exact.environments.sandbox.runsc import Runsc, find_runsc
from exact.environments.sandbox.sandbox import Sandbox
from exact.errors import EnvironmentFailure
from exact.scratch import ScratchFolder, sweep

LIMIT = 4 << 30
"""Bytes of images kept; never more than half of what is free where they lie."""
ENOUGH = 1 << 30
"""Bytes free on /dev/shm from which it is used; else the disk."""
_SHM = Path("/dev/shm")


class Sandboxes:
    """All sandboxes of one owner. Made by `open_sandboxes`."""

    def __init__(self, runsc: Runsc, room: ScratchFolder, limit: int, log: Path | None = None) -> None:
        self.runsc, self._room, self._log = runsc, room, log
        self.images = ImageStore(min(limit, shutil.disk_usage(room.path).free // 2))
        self.packing = ImagePacker(self.images)
        self._bases: dict[Path, Path] = {}
        self._numbers, self._mark = count(1), secrets.token_hex(3)
        self._running: set[Sandbox] = set()
        self._guests: dict[Path, GuestSpec] = {}

    @property
    def folder(self) -> Path:
        """Where all of it lies: bundles, images, state. Private, and gone afterwards."""
        return self._room.path

    @property
    def pids(self) -> list[int]:
        """Of those that run, outside."""
        return sorted(each.pid for each in self._running if each.alive)

    async def start(self, guest: GuestSpec) -> Sandbox:
        """Start a guest. It may not answer yet."""
        make_mount_points(guest)
        bundle = self._room.folder("bundles", str(next(self._numbers)))
        (bundle / "config.json").write_text(json.dumps(oci_configuration(guest, dict(os.environ))))
        self._guests[bundle] = guest
        return await self._run(bundle)

    async def checkpoint(self, sandbox: Sandbox, *, pinned: bool = False) -> SandboxImage:
        """Keep a sandbox as it is now; it goes on. Raises EnvironmentFailure."""
        id = f"environment-{self._mark}-{next(self._numbers)}"
        folder = self._room.folder("images", id)
        await sandbox.checkpoint(folder)
        versions = self._versions(sandbox.bundle)
        image = SandboxImage(
            id=id, folder=folder, bundle=sandbox.bundle, bytes=folder_size(folder), versions=versions, base=self._bases.get(sandbox.bundle)
        )
        if pinned:
            self._bases[sandbox.bundle] = folder
        self.images.keep(image, pinned=pinned)
        self.packing.begin()
        return image

    @asynccontextmanager
    async def branch(self, id: str) -> AsyncIterator[Sandbox]:
        """Another sandbox that goes on from an image, which stays while the block runs: until the guest answers. The sandbox is not ended.

        Raises EnvironmentFailure if the image is gone, or if what it was made with has changed.
        """
        image = self.images.find(id)
        with self.images.hold(image):
            if changed := [name for name, version in self._versions(image.bundle).items() if image.versions.get(name) != version]:
                raise EnvironmentFailure(f"snapshot {id} was taken with another {changed[0]}: it cannot be restored")
            image = await self.packing.unpacked(image)
            if not image.folder.is_dir() or folder_size(image.folder) != image.bytes:
                raise EnvironmentFailure(
                    f"snapshot {id} is damaged: {image.folder} does not hold the {image.bytes} bytes that were written"
                )
            yield await self._run(image.bundle, image.folder)
            self.packing.begin()

    async def end(self, sandbox: Sandbox) -> None:
        """Let a sandbox go. Never raises; may be called twice."""
        await sandbox.end()
        self._running.discard(sandbox)

    async def close(self) -> None:
        """End all sandboxes, delete all images."""
        await self.packing.close()
        await asyncio.gather(*(self.end(sandbox) for sandbox in list(self._running)))
        self._room.close()

    async def _run(self, bundle: Path, image: Path | None = None) -> Sandbox:
        state = self._room.folder("state", str(next(self._numbers)))
        sandbox = await Sandbox.run(self.runsc, state, bundle, image, log=self._log)
        self._running = {each for each in self._running if each.alive} | {sandbox}
        return sandbox

    def _versions(self, bundle: Path) -> dict[str, str]:
        """Of all that a restored guest must meet again."""
        guest = self._guests[bundle]
        first = Path(guest.args[0]) if guest.root is None else guest.root / guest.args[0].lstrip("/")
        programs = {str(path): _stamp(path) for path in (first, *guest.programs)}
        return {"exact": exact.__version__, "runsc": self.runsc.version, **programs}

    def abandon(self) -> None:
        """At the interpreter's exit, where nothing can be awaited."""
        for sandbox in self._running:
            sandbox.kill()
        self._room.close()


@asynccontextmanager
async def open_sandboxes(*, limit: int = LIMIT, parent: Path | None = None, log: Path | None = None) -> AsyncIterator[Sandboxes]:
    """Sandboxes while the block runs; none remains after it, nor after a crash. `limit`: bytes of images. `log`: a file
    that what they say on stderr is appended to.

    Raises EnvironmentFailure where there is no usable runsc, or no room for images.
    """
    sandboxes = Sandboxes(find_runsc(), ScratchFolder("environments", parent or _place()), limit, log)
    atexit.register(sandboxes.abandon)
    try:
        yield sandboxes
    finally:
        await sandboxes.close()
        atexit.unregister(sandboxes.abandon)


def _place() -> Path | None:
    """/dev/shm where it is large enough, once what a crash left there is gone; None for the folder for temporary files."""
    with suppress(OSError):
        if os.access(_SHM, os.W_OK):
            sweep(_SHM)
            if shutil.disk_usage(_SHM).free >= ENOUGH:
                return _SHM
    return None


def _stamp(path: Path) -> str:
    """Changes when a program is replaced."""
    try:
        found = path.stat()
    except OSError:
        return "missing"
    return f"{found.st_size}:{found.st_mtime_ns}"
