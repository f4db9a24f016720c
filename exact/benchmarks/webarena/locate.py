"""Pages for an evaluation: opening them, and running the task file's own JavaScript in them. No text of a page or model is ever run.

The rules of url_match, by which an address is the wanted one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from exact.benchmarks.webarena.format import OR, Dialect
from exact.benchmarks.webarena.variables import Addresses
from exact.environments.browser.page.settle import load, loaded, whole
from exact.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from playwright.async_api import Page


_KNOWN = re.compile(r"(document\.|\[\.\.\.document\.)(querySelector|querySelectorAll|getElementById|getElementsBy\w+)\(", re.S)
_FUNCTION = re.compile(r"\(\s*\(\s*\)\s*=>\s*\{.*\}\s*\)\s*\(\s*\)\s*;?\s*", re.S)
_GONE = ("has been closed", "Target crashed", "Page crashed")
_STATUS = "performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0"
_MOVED = (
    *("context was destroyed", "Cannot find context", "Promise was collected"),
    *("navigation", "navigating", "navigated or closed", "detached"),
)
_TRIES = 5
"""Times that a page is asked which goes elsewhere meanwhile."""
T = TypeVar("T")


def check(locator: str) -> None:
    """Raise UsageError for a locator of an unknown form."""
    script = locator.strip()
    if not script or _KNOWN.match(script):
        return
    if script.startswith("lambda:") and _FUNCTION.fullmatch(script.removeprefix("lambda:").strip()):
        return
    raise UsageError(
        f"unknown locator {locator[:80]!r}: write document.querySelector(...), [...document.querySelectorAll(...)], "
        "lambda:(() => {...})(), or func: with a call"
    )


@asynccontextmanager
async def looking_at(page: Page, url: str, addresses: Addresses, quiet: float = 3.0) -> AsyncIterator[Page]:
    """Provide the page itself for `last`, else another one at `url`, closed afterwards.

    quiet: seconds for which it may continue loading once it is there. Raises EnvironmentFailure if it does not answer, or with an error of
    the server's own (5xx); for `last`, if it did so when the agent arrived.
    """
    from playwright.async_api import Error

    if url == "last":
        await answered(page, addresses)
        yield page
        return
    other = await page.context.new_page()
    try:
        try:
            answer = await load(other, url)
        except Error as error:
            raise _unseen(url, str(error).strip().splitlines()[0].removeprefix("Page.goto: "), addresses) from error
        if answer is not None and answer.status >= 500:  # not 4xx: a page that is not there may be the requested one
            raise _unseen(url, f"status {answer.status}", addresses)
        if quiet:
            with suppress(Error):  # it keeps loading something: use the part that is loaded
                await other.wait_for_load_state("networkidle", timeout=quiet * 1000)
        yield other
    finally:
        with suppress(Error):
            await other.close()


async def answered(page: Page, addresses: Addresses) -> None:
    """Raise EnvironmentFailure if a page shows an error of the browser or the server (5xx), or does not finish loading in time."""
    await whole(page)
    unreachable, status = await _steady(page, lambda: _answer(page))
    if unreachable:
        raise _unseen(unreachable, "the browser shows an error of its own", addresses)
    if status >= 500:
        raise _unseen(page.url, f"status {status}", addresses)


async def _steady(page: Page, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer of a page. Ask again if the page navigated meanwhile. Raises Playwright's Error."""
    from playwright.async_api import Error

    for _ in range(_TRIES - 1):
        try:
            return await ask()
        except Error as error:
            if page.is_closed() or not any(words in str(error) for words in _MOVED):
                raise
            await loaded(page)
    return await ask()


async def _answer(page: Page) -> tuple[str, int]:
    """Return the address that a browser's own error page stands for, else empty; and the status of its site's answer, 0 if unknown."""
    from playwright.async_api import Error

    cdp = await page.context.new_cdp_session(page)
    try:
        frame = (await cdp.send("Page.getFrameTree"))["frameTree"]["frame"]
        if unreachable := frame.get("unreachableUrl", ""):
            return unreachable, 0
        # in an isolated environment: a clock that is held takes the page's `performance` away
        environment = await cdp.send("Page.createIsolatedWorld", {"frameId": frame["id"]})
        found = await cdp.send("Runtime.evaluate", {"expression": _STATUS, "contextId": environment["executionContextId"]})
        return "", int(found["result"].get("value", 0))
    finally:
        with suppress(Error):
            await cdp.detach()


def _unseen(url: str, why: str, addresses: Addresses) -> EnvironmentFailure:
    return EnvironmentFailure(f"the page {url} cannot be looked at for the verdict ({why}){addresses.way_out(url)}")


async def in_page(page: Page, script: str, *arguments: object) -> Any:
    """Return the result of JavaScript in the page; None if it throws because the page lacks the element that it looks for.

    Raises playwright's Error if the page itself is gone.
    """
    from playwright.async_api import Error

    try:
        return await _steady(page, lambda: page.evaluate(script, *arguments))
    except Error as error:
        if page.is_closed() or any(words in str(error) for words in (*_GONE, *_MOVED)):
            raise
        return None


async def found(page: Page, locator: str, prepare: tuple[str, ...] = ()) -> str | float | None:
    """Return the text that a locator finds: the source for an empty one; None if a `lambda:` finds nothing."""
    script = locator.strip()
    if not script:
        return await _steady(page, page.content)
    if script.startswith("lambda:"):
        value = await in_page(page, script.removeprefix("lambda:"))
        return _written(value) if value not in (None, "", False, 0) else None
    for each in prepare:
        if not await in_page(page, f"async () => {{ await ({each.strip().rstrip(';')}); return true }}"):
            break  # it found nothing: skip the rest
    value = await in_page(page, f"() => {script}")
    return str(_written(value))


def _written(value: Any) -> str | float:
    """Return a value as a text that references are compared with; nothing is an empty one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, float | int) else str(value)


Rule = str
"""Rule of comparison: `EXACT` or `GOLD in PRED`."""

DEFAULT: dict[Dialect, Rule] = {"webarena": "GOLD in PRED", "visualwebarena": "EXACT"}


def matches(wanted: str, url: str, rule: Rule, dialect: Dialect) -> bool:
    """Return whether `url` is one of the addresses between ` |OR| `.

    EXACT: the same except for a last slash. GOLD in PRED: VisualWebArena looks for the text; WebArena for host and path in host and
    path, and for one of the wanted values of each parameter that the reference has.
    """
    return any(_matches(_plain(each, dialect), _plain(url, dialect), rule, dialect) for each in wanted.split(OR))


def _matches(wanted: str, url: str, rule: Rule, dialect: Dialect) -> bool:
    if rule == "EXACT":
        return wanted == url
    if dialect == "visualwebarena":
        return wanted in url
    one, other = urlsplit(wanted), urlsplit(url)
    if one.netloc + one.path not in other.netloc + other.path:
        return False
    given = parse_qs(other.query)
    return all(set(values) & set(given.get(name, ())) for name, values in parse_qs(one.query).items())


def _plain(url: str, dialect: Dialect) -> str:
    if dialect == "webarena":
        return url.strip().rstrip("/")
    return url.strip().replace("localhost", "127.0.0.1").removesuffix("/")
