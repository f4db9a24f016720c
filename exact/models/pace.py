"""How fast a server may be asked: requests at once, requests and tokens a minute, and less of it after a 429."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from exact.models.retry import Sleep

BURST = 6.0
"""Seconds' worth of a rate that may be used at once."""


class Rate:
    """So many units a minute, by the generic cell rate algorithm (ITU-T I.371)."""

    def __init__(self, per_minute: float | None) -> None:
        self._second = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = float("-inf")

    def take(self, amount: float, now: float) -> float:
        """Seconds to wait before so much may be used; it counts as used from then on."""
        self._next = max(self._next, now - BURST)
        wait = max(0.0, self._next - now)
        self._next += amount * self._second
        return wait

    def correct(self, amount: float) -> None:
        """More was used than was taken, or with a negative amount less."""
        self._next += amount * self._second


class Pace:
    """One endpoint's. `clock` and `sleep` are the event loop's unless given; several models may share one.

    A 429 halves how many requests may be under way, once for all that were under way then, and holds everybody back as long as the
    server asks; a request that succeeds allows the n-th part of one more.
    """

    def __init__(
        self,
        *,
        concurrency: int = 32,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._most = concurrency
        self._allowed = float(concurrency)
        self._requests, self._tokens = Rate(requests_per_minute), Rate(tokens_per_minute)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._active = 0
        self._held = self._slowed = float("-inf")

    @property
    def allowed(self) -> int:
        """Requests that may be under way at once now."""
        return max(1, int(self._allowed))

    @asynccontextmanager
    async def slot(self, tokens: float) -> AsyncIterator[float]:
        """Holds a place for one request of about so many tokens; gives the time at which it may be sent.

        Who gives up before that has used nothing of the rates.
        """
        await self._enter()
        try:
            await self._rates(tokens)
            yield self._now()
        finally:
            self._active -= 1
            self._wake()

    def succeeded(self, estimated: float, used: float) -> None:
        """A request took so many tokens."""
        self._tokens.correct(used - estimated if used else 0.0)
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)
        self._wake()

    def limited(self, sent: float, after: float | None) -> None:
        """A request that was sent then had a 429; the server asks to wait for so many seconds."""
        now = self._now()
        if after is not None:
            self._held = max(self._held, now + after)
        if sent >= self._slowed:
            self._allowed = max(1.0, self._allowed / 2)
            self._slowed = now

    async def _enter(self) -> None:
        if self._active < self.allowed and not self._waiting:
            self._active += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._active -= 1
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self._active < self.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)

    async def _rates(self, tokens: float) -> None:
        now = self._now()
        until = max(now + max(self._requests.take(1.0, now), self._tokens.take(tokens, now)), self._held)
        try:
            while until > now:
                await self._sleep(until - now)
                now = max(until, self._now())
                until = max(until, self._held)  # a 429 that came meanwhile
        except BaseException:
            self._requests.correct(-1.0)
            self._tokens.correct(-tokens)
            raise

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()
