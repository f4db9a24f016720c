"""Retries with exponential backoff, a bounded number of times and within a deadline.

Concurrent calls whose results are all needed.
"""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import itertools
import random
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from exact.errors import ModelError, PromptRefused

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Backoff in seconds: it doubles from the first to the longest."""
LONGEST_ASKED = 3600.0
"""Most seconds that a server can ask to wait: other calls wait too, those of other processes among them, and it may be wrong."""

_REMAINING = re.compile(r"(?P<dated>anthropic-ratelimit-[\w-]+)-remaining|x-ratelimit-remaining-(?P<timed>[\w-]+)")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


class RequestError(Exception):
    """Raised when one request failed: the fact and the way out."""

    def __init__(
        self,
        fact: str,
        way_out: str,
        *,
        retry: bool = False,
        after: float | None = None,
        elsewhere: bool = True,
        resumable: bool = True,
        filtered: bool = False,
        starting: bool = False,
    ) -> None:
        """Describe a failed request.

        `retry`: another try is worth it, after at least `after` seconds. `elsewhere`: another endpoint may do better. `resumable`: False if
        the configuration must change, which a run keeps. `filtered`: the provider's filter refuses the prompt. `starting`: the server still
        loads the model, which uses up no retry.
        """
        super().__init__(fact)
        self.way_out, self.retry, self.after, self.elsewhere = way_out, retry, after, elsewhere
        self.resumable, self.filtered, self.starting = resumable, filtered, starting


async def retried(attempt: Callable[[], Awaitable[T]], *, retries: int, deadline: float, sleep: Sleep) -> T:
    """Return the first result of at most `1 + retries` attempts; those that meet a server that is starting are not counted.

    `deadline` is a time of the event loop's clock. The wait is as long as the server asks, else twice as long each time; a random part
    keeps many callers from retrying at once. Raises ModelError; PromptRefused if the provider's filter refuses the prompt.
    """
    counted = 0
    for tried in itertools.count(1):
        try:
            return await attempt()
        except RequestError as error:
            failed = error
        counted += not failed.starting
        times = "" if tried == 1 else f", {tried} times"
        if not failed.retry or counted > retries:
            break
        wait = _wait(tried, failed.after)
        left = deadline - asyncio.get_running_loop().time()
        if wait >= left:
            times += f", and the wait of {failed.after or wait:.3g} s before the next try passes its timeout"
            break
        await sleep(wait)
    gave_up = (PromptRefused if failed.filtered else ModelError)(f"{failed}{times}: {failed.way_out}")
    raise gave_up if failed.resumable else gave_up.final()


def _wait(tried: int, after: float | None) -> float:
    if after is not None:
        return after * random.uniform(1.0, 1.1)
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tried - 1)) * random.uniform(0.5, 1.0)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. None: it asks for none.

    Without these headers, it is the time until all of its exhausted limits are full again, if the server reports them. It is an hour at
    most.
    """
    asked = _asked(headers)
    return None if asked is None else min(asked, LONGEST_ASKED)


def _asked(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    if date := headers.get("retry-after", ""):
        return _until(date)
    return _reset(headers)


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until all exhausted limits are full again: `x-ratelimit-reset-tokens: 6m0s`, or Anthropic's, with a date."""
    waits = list[float | None]()
    for name, left in headers.items():
        if left.strip() == "0" and (limit := _REMAINING.fullmatch(name.lower())):
            reset = f"{limit['dated']}-reset" if limit["dated"] else f"x-ratelimit-reset-{limit['timed']}"
            waits.append(_duration(headers.get(reset, "")))
    return max((wait for wait in waits if wait is not None), default=None)


def _duration(text: str) -> float | None:
    """Return the seconds of `1m30.5s` or `120ms`, or until a date of ISO 8601; None for another text."""
    if _SPAN.fullmatch(text):
        return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    try:
        return max(0.0, datetime.datetime.fromisoformat(text).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def _until(date: str) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):
        return None


R = TypeVar("R")


async def together(calls: Sequence[Coroutine[Any, Any, R]]) -> list[R]:
    """Return all results in order. The first failure, or a cancellation, cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        failure = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise failure


async def all_results(calls: Sequence[Coroutine[Any, Any, R]]) -> list[R]:
    """Return all results in order, once all calls have ended.

    A failure does not cancel the others, because their results are paid for and recorded. Raises the first failure, in order. A
    cancellation cancels all.
    """
    found = await asyncio.gather(*calls, return_exceptions=True)
    results = list[R]()
    for one in found:
        if isinstance(one, BaseException):
            raise one
        results.append(one)
    return results
