"""Starts, checkpoints, forks and ends sandboxes, and owns their folders and images.

Pauses an idle sandbox: one that runs costs CPU time although nothing happens in it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path

from exact.environments.sandbox.bundle import GuestSpec, make_mount_points, oci_configuration
from exact.environments.sandbox.images import ImagePacker, ImageStore, SandboxImage, folder_size
from exact.environments.sandbox.runsc import Runsc, find_runsc
from exact.environments.sandbox.sandbox import Sandbox
from exact.errors import EnvironmentFailure
from exact.machine import ScratchFolder, sweep
from exact.version import __version__

LIMIT = 4 << 30
"""Bytes of retained images; at most half of the free space on their file system."""
SHM_NEEDED = 1 << 30
"""Free bytes from which on /dev/shm is used instead of the disk."""
_SHM = Path("/dev/shm")


class Sandboxes:
    """All sandboxes of one owner. Made by `open_sandboxes`."""

    def __init__(self, runsc: Runsc, scratch: ScratchFolder, limit: int, log: Path | None = None) -> None:
        self.runsc, self._scratch, self._log = runsc, scratch, log
        self.images = ImageStore(min(limit, shutil.disk_usage(scratch.path).free // 2))
        self.packer = ImagePacker(self.images)
        self._bases: dict[Path, Path] = {}
        self._numbers, self._prefix = count(1), secrets.token_hex(3)
        self._running: set[Sandbox] = set()
        self._idle: Sandbox | None = None
        """Sandbox without a guest, for the next fork of the bundle that was forked last."""
        self._making: asyncio.Task[None] | None = None
        self._guests: dict[Path, GuestSpec] = {}

    @property
    def folder(self) -> Path:
        """Private folder of bundles, images and state, deleted on close."""
        return self._scratch.path

    @property
    def pids(self) -> list[int]:
        """Process ids, on the host, of the sandboxes that run."""
        return sorted(each.pid for each in self._running if each.alive)

    async def start(self, guest: GuestSpec) -> Sandbox:
        """Start a guest. It may not answer requests yet. Raises EnvironmentFailure if a mount point cannot be made."""
        make_mount_points(guest)
        bundle = self._scratch.folder("bundles", str(next(self._numbers)))
        (bundle / "config.json").write_text(json.dumps(oci_configuration(guest, dict(os.environ))))
        self._guests[bundle] = guest
        return await self._run(bundle)

    async def checkpoint(self, sandbox: Sandbox, *, pinned: bool = False) -> SandboxImage:
        """Store an image of a sandbox, which continues. A pinned image stays until it is dropped. Raises EnvironmentFailure."""
        id = f"environment-{self._prefix}-{next(self._numbers)}"
        folder = self._scratch.folder("images", id)
        await sandbox.checkpoint(folder)
        versions = self._versions(sandbox.bundle)
        image = SandboxImage(
            id=id, folder=folder, bundle=sandbox.bundle, bytes=folder_size(folder), versions=versions, base=self._bases.get(sandbox.bundle)
        )
        if pinned:
            self._bases[sandbox.bundle] = folder
        self.images.add(image, pinned=pinned)
        self.packer.start()
        return image

    @asynccontextmanager
    async def fork(self, id: str) -> AsyncIterator[Sandbox]:
        """Start another sandbox from an image, which is retained during the block.

        Leave the block when the guest answers; the sandbox keeps running. Raises EnvironmentFailure if the image is gone or damaged, or if
        a program that it depends on has changed.
        """
        image = self.images.find(id)
        with self.images.use(image):
            if changed := [name for name, version in self._versions(image.bundle).items() if image.versions.get(name) != version]:
                raise EnvironmentFailure(f"snapshot {id} was taken with another {changed[0]}: it cannot be restored")
            image = await self.packer.unpacked(image)
            if not image.folder.is_dir() or folder_size(image.folder) != image.bytes:
                raise EnvironmentFailure(
                    f"snapshot {id} is damaged: {image.folder} does not hold the {image.bytes} bytes that were written"
                )
            yield await self._run(image.bundle, image.folder)
            self.packer.start()
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make_idle(image.bundle))

    async def end(self, sandbox: Sandbox) -> None:
        """End a sandbox. Never raises; may be called twice."""
        await sandbox.end()
        self._running.discard(sandbox)

    async def close(self) -> None:
        """End all sandboxes and delete all images."""
        await self.packer.close()
        if self._making is not None:
            await asyncio.gather(self._making, return_exceptions=True)
        idle = [self._idle] if self._idle else []
        await asyncio.gather(*(self.end(sandbox) for sandbox in (*self._running, *idle)))
        self._scratch.close()

    async def _run(self, bundle: Path, image: Path | None = None) -> Sandbox:
        if image is not None and self._idle is not None and self._idle.alive and self._idle.bundle == bundle:
            sandbox, self._idle = self._idle, None
            sandbox.load(image)
        else:
            sandbox = await Sandbox.run(self.runsc, self._state(), bundle, image, log=self._log, memory=self._guests[bundle].memory)
        self._running = {each for each in self._running if each.alive} | {sandbox}
        return sandbox

    async def _make_idle(self, bundle: Path) -> None:
        """Start a sandbox without a guest for the next fork of a bundle, unless there is one: runsc's own start is half of a restore."""
        if self._idle is not None and self._idle.alive and self._idle.bundle == bundle:
            return
        last, self._idle = self._idle, None
        if last is not None:
            await self.end(last)
        with suppress(OSError):  # the next fork starts its own, and reports what is wrong
            self._idle = await Sandbox.without_guest(self.runsc, self._state(), bundle, log=self._log, memory=self._guests[bundle].memory)

    def _state(self) -> Path:
        return self._scratch.folder("state", str(next(self._numbers)))

    def _versions(self, bundle: Path) -> dict[str, str]:
        """Return the versions of everything that a restored guest needs unchanged."""
        guest = self._guests[bundle]
        first = Path(guest.args[0]) if guest.root is None else guest.root / guest.args[0].lstrip("/")
        programs = {str(path): _version(path) for path in (first, *guest.programs)}
        return {"exact": __version__, "runsc": self.runsc.version, **programs}

    def abandon(self) -> None:
        """Kill all sandboxes and delete all files, at the interpreter's exit, when nothing can be awaited."""
        for sandbox in (*self._running, *([self._idle] if self._idle else [])):
            sandbox.kill()
        self._scratch.close()


@asynccontextmanager
async def open_sandboxes(*, limit: int = LIMIT, parent: Path | None = None, log: Path | None = None) -> AsyncIterator[Sandboxes]:
    """Open sandboxes for the time of the block. Neither they nor their files remain after it, or if this process is killed.

    `limit`: bytes of retained images. `parent`: folder for their files; by default /dev/shm if it is large enough, else the folder for
    temporary files. `log`: file to which their stderr is appended. Raises EnvironmentFailure without a usable runsc or space for images.
    """
    sandboxes = Sandboxes(find_runsc(), ScratchFolder("environments", parent or _image_folder()), limit, log)
    with removed_with_us(sandboxes.folder):
        atexit.register(sandboxes.abandon)
        try:
            yield sandboxes
        finally:
            await sandboxes.close()
            atexit.unregister(sandboxes.abandon)


_REMOVE = 'read _; for _ in 1 2 3 4 5; do rm -rf -- "$1" && exit; sleep 0.2; done'
"""Script that waits for the end of its input, and removes a folder. A sandbox that is about to end may still write there."""


@contextmanager
def removed_with_us(folder: Path) -> Iterator[None]:
    """Let another process remove a folder when this one ends, however it ends: a script that SIGTERM ends cannot do so itself."""
    with subprocess.Popen(["/bin/sh", "-c", _REMOVE, "sh", str(folder)], env={}, stdin=subprocess.PIPE, start_new_session=True):
        yield


def _image_folder() -> Path | None:
    """Return /dev/shm if it is large enough, after deleting the remains of a crash there. None: the folder for temporary files."""
    with suppress(OSError):
        if os.access(_SHM, os.W_OK):
            sweep(_SHM)
            if shutil.disk_usage(_SHM).free >= SHM_NEEDED:
                return _SHM
    return None


def _version(path: Path) -> str:
    """Return a text that changes when a program is replaced."""
    try:
        found = path.stat()
    except OSError:
        return "missing"
    return f"{found.st_size}:{found.st_mtime_ns}"


class IdleTimer:
    """Idle timer of one sandbox. Call `wake` before each use and `pause_after` afterwards."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._timer: asyncio.TimerHandle | None = None
        self._pausing: asyncio.Task[None] | None = None

    async def wake(self) -> None:
        """Resume the sandbox if it was paused. If it cannot be resumed it is killed, and later calls fail."""
        await self.stop()  # a pause in progress ends first, so that none follows
        try:
            await self._sandbox.resume()
        except EnvironmentFailure:
            self._sandbox.kill()

    def pause_after(self, seconds: float) -> None:
        """Pause the sandbox in `seconds`, unless `wake` is called before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._start_pause)

    async def stop(self) -> None:
        """Cancel the timer and wait for a pause in progress. May be called twice."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pausing is not None:
            await asyncio.wait({self._pausing})  # if cancelled here, the pause still completes

    def _start_pause(self) -> None:
        self._pausing = asyncio.ensure_future(self._pause())

    async def _pause(self) -> None:
        with suppress(EnvironmentFailure):  # the sandbox is gone; the next call reports it
            await self._sandbox.pause()
