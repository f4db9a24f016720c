"""Long answers of the browser, as they come."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Send = Callable[[str, dict[str, Any]], Awaitable[Any]]


def plainly(cdp: Cdp) -> Send:
    """`send` of a session, without Playwright's search of every answer for objects of its own.

    Answers of the DevTools protocol are JSON and have none; of a page with a thousand elements the search takes as long as all else that
    this process does to observe it. Where Playwright is built otherwise it is the session's own `send`.
    """
    inner = getattr(getattr(cdp, "_impl_obj", None), "send", None)
    if inner is None:
        return cdp.send
    further = inspect.signature(inner).parameters.keys() - {"method", "params"}
    if not further <= {"timeout"}:
        return cdp.send
    limit = dict.fromkeys(further, 0)  # 0: no limit, as when none is given
    return lambda method, params: inner(method, params, **limit)
