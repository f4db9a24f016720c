"""Trying again, a bounded number of times and within a deadline."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from exact.errors import ModelError

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds: the wait doubles from the first to the longest."""

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


class Trouble(Exception):
    """An attempt that failed: the fact, the way out, whether another is worth it, and after how many seconds at least.

    `elsewhere`: whether another endpoint may do better.
    """

    def __init__(self, fact: str, way_out: str, *, again: bool = False, after: float | None = None, elsewhere: bool = True) -> None:
        super().__init__(fact)
        self.way_out, self.again, self.after, self.elsewhere = way_out, again, after, elsewhere


async def retried(attempt: Callable[[], Awaitable[T]], *, retries: int, deadline: float, sleep: Sleep) -> T:
    """The first result of at most `1 + retries` attempts. `deadline` is on the loop's clock. Raises ModelError.

    Waits as long as the server asks, else twice as long each time; a random part keeps many callers from coming back at once.
    """
    for tried in range(1, retries + 2):
        try:
            return await attempt()
        except Trouble as trouble:
            failed = trouble
        times = "" if tried == 1 else f", {tried} times"
        if not failed.again or tried > retries:
            break
        wait = _wait(tried, failed.after)
        left = deadline - asyncio.get_running_loop().time()
        if wait >= left:
            times += f", and the wait of {failed.after or wait:.3g} s before the next try passes its timeout"
            break
        await sleep(wait)
    raise ModelError(f"{failed}{times}: {failed.way_out}")


def _wait(tried: int, after: float | None) -> float:
    if after is not None:
        return after * random.uniform(1.0, 1.1)
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tried - 1)) * random.uniform(0.5, 1.0)


def named_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait for: `retry-after-ms`, or `retry-after` in seconds or as a date; None without."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return _until(headers.get("retry-after", ""))


def _until(date: str) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
