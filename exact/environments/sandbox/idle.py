"""Pauses an idle sandbox: one that runs costs CPU time though nothing happens in it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from exact.environments.sandbox.sandbox import Sandbox
from exact.errors import EnvironmentFailure


class IdleTimer:
    """Idle timer of one sandbox. Call `wake` before each use and `pause_after` afterwards."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._timer: asyncio.TimerHandle | None = None
        self._pausing: asyncio.Task[None] | None = None

    async def wake(self) -> None:
        """Resume the sandbox if it was paused. If it cannot be resumed it is killed, and later calls fail."""
        await self.stop()  # a pause in progress ends first, so that none follows this
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
