"""Something happened: wakes all that wait for it."""

from __future__ import annotations

import asyncio


class Signal:
    """Wakes every coroutine that waits when it fires; what comes later waits for the next time."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None

    def fire(self) -> None:
        """Wake all."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self) -> None:
        """Until it fires next."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiting)
