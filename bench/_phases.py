"""What the time of a restore, or of an action, is made of: its parts, timed one by one."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from exact.environments.browser.environment import BrowserEnvironment
from exact.environments.browser.episode import BrowserEpisode
from exact.environments.browser.fork import browser as fork_browser
from exact.environments.browser.fork.factory import ForkedBackend
from exact.environments.browser.fork.relay import Relay
from exact.environments.browser.fork.store import ForkStore
from exact.environments.browser.interaction import Interaction
from exact.environments.browser.observer import Observer
from exact.environments.browser.page.cdp import CdpConnection
from exact.environments.browser.tabs import Tabs
from exact.environments.sandbox.sandbox import Sandbox

Seconds = dict[str, list[float]]
Parts = tuple[tuple[str, Any, str], ...]
"""Parts by what they do, in order, with the object and the coroutine function that does it."""
ACTION: Parts = (
    ("the element is found, scrolled to and pressed", Interaction, "act"),
    ("until nothing is in flight and the page is quiet", Tabs, "settle"),
    ("snapshot, accessibility tree, elements and text", Observer, "observe_page"),
    ("whether the log-in has expired", BrowserEpisode, "login_has_expired"),
    ("the whole step", BrowserEnvironment, "step"),
)
RESTORE: Parts = (
    ("start of runsc", Sandbox, "run"),
    ("until the browser answers first, over our connection", CdpConnection, "send"),
    ("until Playwright is connected, beside it", fork_browser, "_over_cdp"),
    ("handlers, scripts, interception", BrowserEpisode, "connect"),
    ("sessions with the pages, beside it", Tabs, "watch_all"),
    ("settle and observe", Interaction, "observe"),
    ("the whole of the fork's browser", ForkStore, "fork_browser"),
    ("the whole of the reconnection", BrowserEnvironment, "resume"),
)
SNAPSHOT: Parts = (
    ("pages collect garbage", ForkedBackend, "_collect_garbage"),
    ("until no frame is in the pipes", Relay, "hold"),
    ("runsc writes the image", Sandbox, "checkpoint"),
    ("the whole snapshot", ForkedBackend, "take"),
)

FIRST = "Target.getTargets"
"""The first question to a restored browser; of a connection, only this one is timed."""


@contextmanager
def timed(parts: Parts) -> Iterator[Seconds]:
    """Time the parts during the block."""
    found: Seconds = {step: [] for step, _, _ in parts}
    before = [(owner, name, owner.__dict__[name]) for _, owner, name in parts]
    for step, owner, name in parts:
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


def rows(found: Seconds, digits: int = 0) -> list[list[str]]:
    """Return a row for each part, with the median in milliseconds."""
    return [[step, f"{1000 * statistics.median(seconds):.{digits}f}"] for step, seconds in found.items() if seconds]
