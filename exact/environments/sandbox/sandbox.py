"""One sandbox: a process whose pipes are the guest's stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from pathlib import Path

from exact.environments.process.process import StderrReader
from exact.environments.sandbox.limits import watch_memory
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


def _free(folder: Path) -> int:
    """Return the bytes free on the file system of a folder; sys.maxsize if there is no such folder."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return sys.maxsize


def _last(lines: Sequence[str]) -> str:
    """Return the last line with a message, skipping Go stack traces. Empty if there is none."""
    return next((line for line in reversed(lines) if ": " in line and not line[0].isspace()), "")
