"""A page's session on a line of ours, beside others on the same line."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

import pytest
from playwright.async_api import Error

from exact.environments.browser.page.cdp import CdpSession
from exact.environments.browser.page.websocket import CdpState, WebSocketConnection


class Browser:
    """The far end of a line: what it was asked, and what it says."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.line = WebSocketConnection(self.take, CdpState(b"", 0, True))

    async def take(self, data: bytes) -> None:
        self.asked.append(json.loads(data[8 if data[1] & 127 == 126 else 6 :]))

    def say(self, **message: Any) -> None:
        text = json.dumps(message).encode()
        self.line.feed(b"\x81\x7e" + struct.pack("!H", len(text)) + text)

    async def attach(self, target: str) -> CdpSession:
        attaching = asyncio.ensure_future(self.line.attach(target))
        await asyncio.sleep(0)
        self.say(id=self.asked[-1]["id"], result={"sessionId": f"session of {target}"})
        return await attaching


async def test_commands_and_events_are_of_the_page_they_are_of() -> None:
    browser, heard = Browser(), list[tuple[str, Any]]()
    for target in ("one", "other"):
        (await browser.attach(target)).on("Page.closed", lambda event, of=target: heard.append((of, event)))
    browser.line.on("Page.closed", lambda event: heard.append(("browser", event)))
    browser.say(method="Page.closed", params={"n": 1}, sessionId="session of other")
    browser.say(method="Page.closed", params={"n": 2}, sessionId="of a stranger")
    browser.say(method="Page.closed", params={"n": 3})
    assert heard == [("other", {"n": 1}), ("browser", {"n": 3})]


async def test_a_command_names_its_session_and_gets_its_answer() -> None:
    browser = Browser()
    session = await browser.attach("one")
    asking = asyncio.ensure_future(session.send("DOM.enable", {"of": 1}))
    await asyncio.sleep(0)
    asked = browser.asked[-1]
    assert asked == {"id": asked["id"], "method": "DOM.enable", "params": {"of": 1}, "sessionId": "session of one"}
    browser.say(id=asked["id"], result={"done": True}, sessionId="session of one")
    assert await asking == {"done": True}


async def test_a_refused_command_is_a_playwright_error_that_names_it() -> None:
    browser = Browser()
    session = await browser.attach("one")
    asking = asyncio.ensure_future(session.send("Runtime.callFunctionOn"))
    await asyncio.sleep(0)
    browser.say(id=browser.asked[-1]["id"], error={"code": -32000, "message": "Cannot find context with specified id"})
    with pytest.raises(Error, match=r"Runtime\.callFunctionOn: Cannot find context"):
        await asking


async def test_a_closed_page_is_reported_to_waiting_and_to_later_callers() -> None:
    browser = Browser()
    session, other = await browser.attach("one"), await browser.attach("other")
    waiting, going_on = asyncio.ensure_future(session.send("Page.enable")), asyncio.ensure_future(other.send("Page.enable"))
    await asyncio.sleep(0)
    browser.say(method="Target.detachedFromTarget", params={"sessionId": "session of one"})
    browser.say(id=browser.asked[-1]["id"], result={})
    assert await going_on == {}
    later = asyncio.ensure_future(session.send("Page.disable"))
    await asyncio.sleep(0)
    browser.say(id=browser.asked[-1]["id"], error={"code": -32001, "message": "CdpSession with given id not found."})
    for asking in (waiting, later):
        with pytest.raises(Error, match="has been closed"):
            await asking


async def test_a_page_that_has_gone_before_it_is_looked_at_is_an_error_of_playwrights() -> None:
    browser = Browser()
    attaching = asyncio.ensure_future(browser.line.attach("one"))
    await asyncio.sleep(0)
    browser.say(id=browser.asked[-1]["id"], error={"code": -32602, "message": "No target with given id found"})
    with pytest.raises(Error, match="No target with given id found"):
        await attaching


async def test_a_browser_that_goes_takes_its_pages_along() -> None:
    browser = Browser()
    session = await browser.attach("one")
    waiting = asyncio.ensure_future(session.send("Page.enable"))
    await asyncio.sleep(0)
    browser.line.feed(b"")
    for asking in (waiting, session.send("Page.disable")):
        with pytest.raises(Error, match="has been closed: the browser is gone"):
            await asking


async def test_halves_of_surrogate_pairs_arrive_as_they_are() -> None:
    browser = Browser()
    session = await browser.attach("one")
    asking = asyncio.ensure_future(session.send("Runtime.evaluate", {"expression": "'\ud83d'"}))
    await asyncio.sleep(0)
    browser.say(id=browser.asked[-1]["id"], result={"value": "\ud83d"}, sessionId="session of one")
    assert await asking == {"value": "\ud83d"}
    assert browser.asked[-1]["params"] == {"expression": "'\ud83d'"}
