"""Rate limits of an endpoint: requests at once, requests and tokens a minute, and fewer of them after a 429.

Rate limits that several processes use together, so that all of them stay within what a provider allows one key.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from exact.errors import UsageError
from exact.machine import wait_for_lock
from exact.models.retry import RequestError, Sleep

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

        A caller that is cancelled before that has used nothing of the rates. Raises RequestError if the wait would take longer than
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

        Usage that a server reports beyond the estimate counts as at most one minute's worth: the report may be wrong.
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
        """Count a further amount as used; if the rates are shared, with the next request."""
        if self._shared is None:
            self._requests.correct(requests)
            self._tokens.correct(tokens)
        else:
            self._owed = self._owed[0] + requests, self._owed[1] + tokens

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()


Limits = tuple[float | None, float | None]
"""Requests and tokens a minute; None: no limit."""


class SharedRates(Protocol):
    """Counts the usage of an endpoint by all processes."""

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Count requests and tokens as used, and return the seconds to wait before they may be used.

        Negative amounts are given back. `blocked`: seconds for which the endpoint asked this process to wait, which then all processes do.
        """
        ...


class RateTable:
    """Usage of each endpoint, and the time until which it is blocked. The times are those of the caller's clock."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[float, float, float]] = {}
        """For each endpoint the times from which the next request and token may be used, and until which it is blocked."""

    def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float, *, now: float) -> float:
        """Count an amount at a time, as `SharedRates.take` does."""
        row = self.rows.get(endpoint, (now - BURST, now - BURST, now))
        rates = [Rate(limit, next) for limit, next in zip(limits, row, strict=False)]
        waits = [rate.take(amount, now) for rate, amount in zip(rates, (requests, tokens), strict=True)]
        until = max(row[2], now + blocked)
        self.rows[endpoint] = rates[0].next, rates[1].next, until
        return max(*waits, until - now)


class RateFile:
    """SharedRates in a file of this machine, which is locked for each request."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Implement SharedRates. Raises UsageError if the file cannot be written or holds something else."""
        return await asyncio.to_thread(self._take, endpoint, limits, requests, tokens, blocked)

    def _take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        table = RateTable()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+") as file:
                wait_for_lock(file.fileno())
                file.seek(0)
                table.rows = {name: (row[0], row[1], row[2]) for name, row in json.loads(file.read() or "{}").items()}
                wait = table.take(endpoint, limits, requests, tokens, blocked, now=self._clock())
                file.seek(0)
                file.truncate()
                file.write(json.dumps(table.rows))
        except OSError as error:
            raise UsageError(f"models.shared_limits: cannot write {self._path}: {error.strerror}: name another file") from error
        except (ValueError, AttributeError, TypeError, IndexError) as error:
            raise UsageError(f"models.shared_limits: {self._path} holds something else: name another file") from error
        return wait


_used: SharedRates | None = None
"""Shared rates that this process uses."""


def use_shared_rates(rates: SharedRates | None) -> None:
    """Count requests of this process by these rates from now on; None: each process by itself."""
    global _used
    _used = rates


def shared_rates(path: str) -> SharedRates | None:
    """Return the rates to count by: those of `use_shared_rates`, or of a file; None if there is neither."""
    return _used or (RateFile(Path(path)) if path else None)
