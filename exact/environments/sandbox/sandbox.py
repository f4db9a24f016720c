"""One sandbox: a process whose pipes are the guest's stdin and stdout.

The limit of a sandbox's memory, which is monitored from outside: runsc is started without control groups.
"""

# The gauge of memory reads hundreds of links for each sandbox, and pathlib takes several times as long.
# ruff: noqa: PTH110, PTH115, PTH116, PTH123, PTH208
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from exact.environments.process.process import StderrReader
from exact.environments.sandbox.runsc import Runsc
from exact.errors import EnvironmentFailure
from exact.machine import Child

_NAME = "environment"
_READ_AHEAD = 1 << 20
"""Bytes of output read ahead."""
_COMMAND_TIMEOUT = 60.0
"""Seconds that one command of runsc may take."""
_LOW_SPACE = 16 << 20
"""Free bytes below which the disk was full at a failed checkpoint, even if runsc reports another error."""
_GRACE = 1.0
"""Seconds that a guest has to end by itself after its stdin is closed."""


class Sandbox:
    """A guest in a sandbox, running or paused. Made by Sandboxes. It dies with this process."""

    def __init__(self, runsc: Runsc, state: Path, bundle: Path, process: Child, log: Path | None, memory: int = 0) -> None:
        self._runsc, self._state, self.bundle, self._process = runsc, state, bundle, process
        self._gate: ImageGate | None = None
        self._paused, self._exceeded = False, ""
        self._watch = asyncio.ensure_future(watch_memory(process.pid, memory, self._take_too_much)) if memory else None
        self._lock = asyncio.Lock()
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin, self.stdout, self._stderr = process.stdin, process.stdout, StderrReader(process.stderr, process.pid, log)

    @classmethod
    async def run(
        cls, runsc: Runsc, state: Path, bundle: Path, image: Path | None = None, *, log: Path | None = None, memory: int = 0
    ) -> Sandbox:
        """Start the guest of a bundle, or restore it from an image. `log`: see StderrReader. `memory`: maximum bytes; 0: no limit."""
        verb = ("run",) if image is None else ("restore", f"--image-path={image}")
        process = await Child.start(
            *runsc.command(state, *verb, f"--bundle={bundle}", _NAME),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_READ_AHEAD,
            start_new_session=True,
        )
        return cls(runsc, state, bundle, process, log, memory)

    @classmethod
    async def without_guest(cls, runsc: Runsc, state: Path, bundle: Path, *, log: Path | None = None, memory: int = 0) -> Sandbox:
        """Start a sandbox that waits for the image of a guest of a bundle: see `load`. It dies with this process as any other does."""
        gate = await asyncio.to_thread(ImageGate, state, bundle)
        try:
            made = await cls.run(runsc, state, gate.folder, gate.image, log=log, memory=memory)
        except BaseException:
            gate.close()
            raise
        made.bundle, made._gate = bundle, gate
        return made

    def load(self, image: Path) -> None:
        """Restore the guest from an image, in a sandbox that was started without one."""
        assert self._gate is not None
        self._gate.open(image)

    @property
    def pid(self) -> int:
        """Process id on the host."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the sandbox has not ended."""
        return self._process.returncode is None

    @property
    def paused(self) -> bool:
        """Return whether its processes are paused."""
        return self._paused

    async def checkpoint(self, image: Path) -> None:
        """Write the guest's memory to a folder; the guest continues. Raises EnvironmentFailure, and then deletes the folder."""
        try:
            await self._control("checkpoint", "--compression=none", f"--image-path={image}", "--leave-running", _NAME)
        except BaseException as error:
            free = _free(image.parent)
            shutil.rmtree(image, ignore_errors=True)
            if isinstance(error, EnvironmentFailure) and free < _LOW_SPACE and "no space left" not in str(error):
                raise EnvironmentFailure(f"{error}: no space left on device ({free >> 10} KiB at {image.parent})") from error
            raise

    async def pause(self) -> None:
        """Pause its processes, which then use memory only. Does nothing if they are paused."""
        async with self._lock:
            if not self._paused:
                await self._control("pause", _NAME)
                self._paused = True

    async def resume(self) -> None:
        """Resume its processes. Does nothing if they run."""
        async with self._lock:
            if self._paused:
                await self._control("resume", _NAME)
                self._paused = False

    async def end(self) -> None:
        """Let it end, with all processes that it started. Never raises; may be called twice."""
        self.stdin.close()
        if self._gate is not None:
            if not self._gate.image.is_symlink():  # there is no guest that would end by itself
                self.kill()
            self._gate.close()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if not self._paused:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._process.wait()
        self.kill()
        await self._stderr.end(_GRACE)
        await self._process.end()
        await self._stderr.close()
        shutil.rmtree(self._state, ignore_errors=True)

    def kill(self) -> None:
        """Kill it at once, without waiting."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def why(self) -> str:
        """Return its last message, or its exit status. Waits until it has ended."""
        await self._process.wait()
        await self._stderr.end(_GRACE)
        if self._exceeded:
            return self._exceeded
        return _last(self.log) or f"it ended with status {self._process.returncode}"

    def _take_too_much(self, used: int) -> None:
        self._exceeded = f"it took {used >> 20} MiB of memory and was killed: raise sandbox.memory_bytes"
        self.kill()

    @property
    def log(self) -> tuple[str, ...]:
        """Last lines of its stderr."""
        return self._stderr.lines

    async def _control(self, *arguments: str) -> None:
        if not self.alive:
            raise EnvironmentFailure(f"{arguments[0]}: the environment is gone: {await self.why()}")
        process = await Child.start(*self._runsc.command(self._state, *arguments), stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        try:
            async with asyncio.timeout(_COMMAND_TIMEOUT):
                _, output = await process.communicate()
        except TimeoutError as error:
            raise EnvironmentFailure(f"runsc {arguments[0]} did not end within {_COMMAND_TIMEOUT:g} s") from error
        finally:
            await process.end()
        if process.returncode:
            lines = output.decode(errors="replace").splitlines()
            raise EnvironmentFailure(f"runsc {arguments[0]} failed: {_last(lines) or f'status {process.returncode}'}")


class ImageGate:
    """What a sandbox without a guest waits at: a hook of its bundle, which runsc calls when all but the guest is there.

    The image is a link that is made before the gate opens. Both are in the folder of the sandbox's state, which is private.
    """

    def __init__(self, state: Path, bundle: Path) -> None:
        """Make the gate and the bundle of the sandbox, from that of the guest."""
        self.folder = state / "gate"
        self.image, pipe = self.folder / "image", self.folder / "pipe"
        self.folder.mkdir()
        os.mkfifo(pipe, 0o600)
        self._descriptor = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)  # an end that both can open without waiting for the other
        spec = json.loads((bundle / "config.json").read_text())
        wait = ["setpriv", "--pdeathsig", "KILL", "--", "/bin/sh", "-c", 'read -r _ < "$1"', "sh", str(pipe)]
        spec["hooks"] = {"prestart": [{"path": shutil.which("setpriv"), "args": wait}]}
        (self.folder / "config.json").write_text(json.dumps(spec))

    def open(self, image: Path) -> None:
        """Let the sandbox go on with an image."""
        self.image.symlink_to(image)
        os.write(self._descriptor, b"\n")

    def close(self) -> None:
        """Close the gate's pipe. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _free(folder: Path) -> int:
    """Return the bytes free on the file system of a folder; sys.maxsize if there is no such folder."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return sys.maxsize


def _last(lines: Sequence[str]) -> str:
    """Return the last line with a message, skipping Go stack traces. Empty if there is none."""
    return next((line for line in reversed(lines) if ": " in line and not line[0].isspace()), "")


_SHORTEST, _LONGEST = 0.25, 2.0
"""Seconds between two looks, near the limit and far from it."""
_GROWTH = 1 << 30
"""Bytes a second that a guest may add before the next measurement, which waits as long as the rest of the limit lasts at this rate."""
_SEARCH = 8
"""Measurements after which processes and files are searched again. Between two searches only the known ones are read, which takes a
tenth."""


async def watch_memory(pid: int, limit: int, exceeded: Callable[[int], None]) -> None:
    """Call `exceeded` with the bytes in use once a sandbox takes more than `limit` bytes. `pid`: the process that was started.

    Ends with the sandbox.
    """
    gauge = MemoryGauge(pid)
    while (used := await asyncio.to_thread(gauge.read)) is not None:
        if used > limit:
            exceeded(used)
            return
        await asyncio.sleep(seconds_to_next_look(used, limit))


def seconds_to_next_look(used: int, limit: int) -> float:
    """Return the pause before the next measurement of memory, in [0.25, 2] s: the less is left, the shorter."""
    return min(_LONGEST, max(_SHORTEST, (limit - used) / _GROWTH))


class MemoryGauge:
    """Measures the memory of a process and its descendants, shared files in memory counted once."""

    def __init__(self, pid: int) -> None:
        self._pid, self._looks = pid, 0
        self._processes, self._files = list[int](), list[str]()
        """Processes of the tree, and paths of open files in memory, as of the last search."""

    def read(self) -> int | None:
        """Return the bytes in use; None if the process has ended."""
        if not os.path.exists(f"/proc/{self._pid}/stat"):
            return None
        if self._looks % _SEARCH == 0:
            self._processes = list(_tree(self._pid))
            self._files = [path for each in self._processes for path in _memory_files(each)]
        self._looks += 1
        shared = dict[tuple[int, int], int]()
        for path in self._files:
            with suppress(OSError):
                status = os.stat(path)
                shared[status.st_dev, status.st_ino] = status.st_blocks * 512
        return sum(map(_anonymous, self._processes)) + sum(shared.values())


def _tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    waiting = [pid]
    while waiting:
        yield (here := waiting.pop())
        with suppress(OSError):
            for task in os.listdir(f"/proc/{here}/task"):
                waiting += map(int, _text(f"/proc/{here}/task/{task}/children").split())


def _anonymous(pid: int) -> int:
    """Return the bytes of a process's own memory; 0 if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        for line in _text(f"/proc/{pid}/status").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


def _memory_files(pid: int) -> Iterator[str]:
    """Yield the paths of the deleted files in memory that a process holds: the memory of the guest is one."""
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(path := f"/proc/{pid}/fd/{name}").startswith("/memfd:"):
                    yield path


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()
