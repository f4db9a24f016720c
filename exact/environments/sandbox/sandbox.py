"""One running sandbox: a process whose pipes are the guest's stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from pathlib import Path

from exact.child import Child
from exact.environments.process.stderr import StderrReader
from exact.environments.sandbox.runsc import Runsc
from exact.errors import EnvironmentFailure

_NAME = "environment"
_LIMIT = 1 << 20
"""Bytes read ahead of what the guest says."""
_PATIENCE = 60.0
"""Seconds for one command of runsc."""
_LITTLE = 16 << 20
"""Bytes: with fewer free after a checkpoint that failed, it had no room; runsc may fall over that and say something else."""
_GRACE = 1.0
"""Seconds in which a guest whose stdin is closed may end by itself."""


class Sandbox:
    """A guest that runs, was restored, or is paused. Made by Sandboxes; it dies with this process."""

    def __init__(self, runsc: Runsc, state: Path, bundle: Path, process: Child, log: Path | None) -> None:
        self._runsc, self._state, self.bundle, self._process = runsc, state, bundle, process
        self._paused = False
        self._turn = asyncio.Lock()
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin, self.stdout, self._stderr = process.stdin, process.stdout, StderrReader(process.stderr, process.pid, log)

    @classmethod
    async def run(cls, runsc: Runsc, state: Path, bundle: Path, image: Path | None = None, *, log: Path | None = None) -> Sandbox:
        """Start the guest of a bundle, or bring it back from an image. `log`: see StderrReader."""
        verb = ("run",) if image is None else ("restore", f"--image-path={image}")
        process = await Child.start(
            *runsc.command(state, *verb, f"--bundle={bundle}", _NAME),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LIMIT,
            start_new_session=True,
        )
        return cls(runsc, state, bundle, process, log)

    @property
    def pid(self) -> int:
        """Of the process outside."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def paused(self) -> bool:
        return self._paused

    async def checkpoint(self, image: Path) -> None:
        """Write the guest's memory to a folder; the guest goes on. Raises EnvironmentFailure; the folder is empty then."""
        try:
            await self._control("checkpoint", "--compression=none", f"--image-path={image}", "--leave-running", _NAME)
        except BaseException as error:
            free = _free(image.parent)
            shutil.rmtree(image, ignore_errors=True)
            if isinstance(error, EnvironmentFailure) and free < _LITTLE and "no space left" not in str(error):
                raise EnvironmentFailure(f"{error}: no space left on device ({free >> 10} KiB at {image.parent})") from error
            raise

    async def pause(self) -> None:
        """Stop its processes, which then cost memory only. Does nothing where they are stopped."""
        async with self._turn:
            if not self._paused:
                await self._control("pause", _NAME)
                self._paused = True

    async def resume(self) -> None:
        """Let its processes go on. Does nothing where they run."""
        async with self._turn:
            if self._paused:
                await self._control("resume", _NAME)
                self._paused = False

    async def end(self) -> None:
        """Let it go, and all that it started. Never raises; may be called twice."""
        self.stdin.close()
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
        """End it at once, from where nothing can be awaited."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def why(self) -> str:
        """The last thing it said before it ended, for messages."""
        await self._process.wait()
        await self._stderr.end(_GRACE)
        return _last(self.log) or f"it ended with status {self._process.returncode}"

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of its stderr."""
        return self._stderr.lines

    async def _control(self, *arguments: str) -> None:
        if not self.alive:
            raise EnvironmentFailure(f"{arguments[0]}: the environment is gone: {await self.why()}")
        process = await Child.start(*self._runsc.command(self._state, *arguments), stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        try:
            async with asyncio.timeout(_PATIENCE):
                _, said = await process.communicate()
        except TimeoutError as error:
            raise EnvironmentFailure(f"runsc {arguments[0]} did not end within {_PATIENCE:g} s") from error
        finally:
            await process.end()
        if process.returncode:
            lines = said.decode(errors="replace").splitlines()
            raise EnvironmentFailure(f"runsc {arguments[0]} failed: {_last(lines) or f'status {process.returncode}'}")


def _free(folder: Path) -> int:
    """Bytes free where a folder lies; without end where there is none."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return sys.maxsize


def _last(lines: Sequence[str]) -> str:
    """The last of them that says something: not those of a Go stack. Empty where none does."""
    return next((line for line in reversed(lines) if ": " in line and not line[0].isspace()), "")
