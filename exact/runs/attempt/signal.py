"""A wake-up call for every coroutine that waits for a change."""

from __future__ import annotations

import asyncio


class Signal:
    """Wakes every coroutine that is waiting when it fires. A coroutine that begins to wait later waits for the next firing."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self.count = 0
        """Number of times that it has fired."""

    def fire(self) -> None:
        """Wake all waiting coroutines."""
        self.count += 1
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self, since: int | None = None) -> None:
        """Wait until the signal fires. `since`: a count; if the signal has fired since then, return at once."""
        if since is not None and self.count != since:
            return
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiting)
