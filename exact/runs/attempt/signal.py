"""A wake-up call for every coroutine that waits for a change."""

from __future__ import annotations

import asyncio


class Signal:
    """Wakes every coroutine that is waiting when it fires. A coroutine that begins to wait later waits for the next firing."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None

    def fire(self) -> None:
        """Wake all waiting coroutines."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self) -> None:
        """Wait until the signal fires."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiting)
