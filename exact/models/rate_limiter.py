"""Rate limits of an endpoint: requests at once, requests and tokens a minute, and fewer of them after a 429."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from exact.models.retry import RequestError, Sleep

if TYPE_CHECKING:
    from exact.models.shared_rates import Limits, SharedRates


BURST = 6.0
"""Seconds' worth of a rate that may be used at once."""


class Rate:
    """A number of units a minute, by the generic cell rate algorithm (ITU-T I.371)."""

    def __init__(self, per_minute: float | None, next: float = float("-inf")) -> None:
        """Allow `per_minute` units; None: without limit. `next`: time from which the next one may be used."""
        self._second = 0.0 if per_minute is None else 60.0 / per_minute
        self.next = next

    def take(self, amount: float, now: float) -> float:
        """Count an amount as used, and return the seconds to wait before it may be used."""
        self.next = max(self.next, now - BURST)
        wait = max(0.0, self.next - now)
        self.next += amount * self._second
        return wait

    def correct(self, amount: float) -> None:
        """Count a further amount as used; a negative one is given back."""
        self.next += amount * self._second


class RateLimiter:
    """Rate limiter of one endpoint, which several models may share: concurrency, requests and tokens per minute; backs off on 429.

    A 429 halves the allowed concurrency, once for all requests that were in flight then, and delays all requests for as long as the server
    asks. Each success raises the concurrency n by 1/n, up to its configured limit.
    """

    def __init__(
        self,
        *,
        concurrency: int = 32,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] | None = None,
        sleep: Sleep = asyncio.sleep,
        shared: SharedRates | None = None,
        name: str = "",
    ) -> None:
        """Start at full concurrency. `clock` and `sleep` are the event loop's unless given.

        `shared` counts the requests and tokens of all processes, under the endpoint's `name`; concurrency is this process's own.
        """
        self._shared, self._name, self._owed = shared, name, (0.0, 0.0)
        self._limits: Limits = (requests_per_minute, tokens_per_minute)
        self._clock, self._sleep = clock, sleep
        self._most = concurrency
        self._allowed = float(concurrency)
        self._requests, self._tokens = Rate(requests_per_minute), Rate(tokens_per_minute)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._active = 0
        self._blocked = self._slowed = float("-inf")

    @property
    def allowed(self) -> int:
        """Requests that may be in flight at once now, at least 1."""
        return max(1, int(self._allowed))

    @property
    def health(self) -> float:
        """Share of the configured concurrency that is allowed now, in (0, 1]: 429s lower it."""
        return self.allowed / self._most

    @asynccontextmanager
    async def slot(self, tokens: float, within: float = float("inf")) -> AsyncIterator[float]:
        """Reserve a slot for one request of an estimated number of tokens, and give the time at which it may be sent.

        A caller that is cancelled before that has used nothing of the rates. Raises RequestError where the wait would take longer than
        `within` seconds.
        """
        await self._enter()
        try:
            await self._rates(tokens, within)
            yield self._now()
        finally:
            self._active -= 1
            self._wake()

    def succeeded(self, estimated: float, used: float) -> None:
        """Record a success, with the tokens that were estimated and those that were used (0: unknown).

        What a server says to have used beyond the estimate counts as a minute's worth at most: it may say anything.
        """
        self._correct(0.0, min(used - estimated, self._limits[1] or 0.0) if used else 0.0)
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)
        self._wake()

    def limited(self, sent: float, after: float | None) -> None:
        """Record a 429 for a request that was sent at time `sent`. `after`: the seconds that the server asks to wait."""
        now = self._now()
        if after is not None:
            self._blocked = max(self._blocked, now + after)
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

    async def _rates(self, tokens: float, within: float) -> None:
        now = self._now()
        until = max(now + await self._taken(tokens, now), self._blocked)
        now = max(now, self._now())
        try:
            while until > now:
                if (wait := until - now) > within:
                    fact = f"the rate limits of this model ask for a wait of {wait:.0f} s"
                    raise RequestError(fact, "resume later, or raise the model's timeout", retry=True, after=wait)
                await self._sleep(until - now)
                now = max(until, self._now())
                until = max(until, self._blocked)  # a 429 that arrived meanwhile
        except BaseException:
            self._correct(-1.0, -tokens)
            raise

    async def _taken(self, tokens: float, now: float) -> float:
        """Count a request, and return the seconds to wait for it."""
        if self._shared is None:
            return max(self._requests.take(1.0, now), self._tokens.take(tokens, now))
        (requests, more), self._owed = self._owed, (0.0, 0.0)
        return await self._shared.take(self._name, self._limits, 1.0 + requests, tokens + more, max(0.0, self._blocked - now))

    def _correct(self, requests: float, tokens: float) -> None:
        """Count a further amount as used; where the rates are shared, with the next request."""
        if self._shared is None:
            self._requests.correct(requests)
            self._tokens.correct(tokens)
        else:
            self._owed = self._owed[0] + requests, self._owed[1] + tokens

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()
