"""What the time of a restore is made of: the steps of a fork, timed one by one."""

from __future__ import annotations

import functools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from exact.environments.browser.environment import BrowserEnvironment
from exact.environments.browser.episode import EpisodeSetup
from exact.environments.browser.fork import browser as fork_browser
from exact.environments.browser.fork.environment import ForkingEnvironment
from exact.environments.browser.fork.store import ForkStore
from exact.environments.browser.interaction import Interaction
from exact.environments.browser.page.connection import CdpConnection
from exact.environments.sandbox.sandbox import Sandbox

Seconds = dict[str, list[float]]
STEPS: tuple[tuple[str, Any, str], ...] = (
    ("start of runsc", Sandbox, "run"),
    ("until the browser answers first, over our connection", CdpConnection, "send"),
    ("until Playwright is connected, beside it", fork_browser, "_over_cdp"),
    ("handlers, scripts, interception", EpisodeSetup, "connect"),
    ("sessions with the pages, beside it", ForkingEnvironment, "_watch_pages"),
    ("settle and observe", Interaction, "observe"),
    ("the whole of the fork's browser", ForkStore, "fork_browser"),
    ("the whole of the reconnection", BrowserEnvironment, "resume"),
)
"""Steps by what they do, in order, with the object and the coroutine function that does it."""


FIRST = "Target.getTargets"
"""The first question to a restored browser; of a connection, only this one is timed."""


@contextmanager
def timed_steps() -> Iterator[Seconds]:
    """Time the steps of all forks during the block."""
    found: Seconds = defaultdict(list)
    before = [(owner, name, owner.__dict__[name]) for _, owner, name in STEPS]
    for step, owner, name in STEPS:
        inner = getattr(owner, name)
        bound = isinstance(owner.__dict__[name], classmethod)
        setattr(owner, name, staticmethod(_timed(inner, found[step])) if bound else _timed(inner, found[step]))
    try:
        yield found
    finally:
        for owner, name, was in before:
            setattr(owner, name, was)


def _timed(inner: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    @functools.wraps(inner)
    async def outer(*args: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return await inner(*args, **options)
        finally:
            if inner.__name__ != "send" or FIRST in args:
                seconds.append(time.perf_counter() - began)

    return outer


def rows(found: Seconds) -> list[list[str]]:
    """Return a row for each step, with the median in milliseconds."""
    return [[step, f"{1000 * statistics.median(found[step]):.0f}"] for step, _, _ in STEPS if found[step]]
