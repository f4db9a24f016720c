"""Pauses a sandbox that nobody uses: one that runs costs processor time though nothing happens."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from exact.environments.sandbox.sandbox import Sandbox
from exact.errors import EnvironmentFailure


class IdleTimer:
    """Of one sandbox. Roused before it is asked for something, at rest afterwards."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._timer: asyncio.TimerHandle | None = None
        self._dozing: asyncio.Task[None] | None = None

    async def rouse(self) -> None:
        """Let it go on if it was paused. One that cannot is killed, and whatever is asked of it fails."""
        await self.stop()  # a pause that has begun ends first, so that none comes after this
        try:
            await self._sandbox.resume()
        except EnvironmentFailure:
            self._sandbox.kill()

    def rest(self, seconds: float) -> None:
        """Pause it if it is not roused before `seconds` have passed."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._doze)

    async def stop(self) -> None:
        """Leave it as it is. May be called twice."""
        if self._timer is not None:
            self._timer.cancel()
        if self._dozing is not None:
            await asyncio.wait({self._dozing})  # whoever is cancelled here leaves the pause to its end

    def _doze(self) -> None:
        self._dozing = asyncio.ensure_future(self._pause())

    async def _pause(self) -> None:
        with suppress(EnvironmentFailure):  # it is gone, as the next call will find
            await self._sandbox.pause()
