"""The conversation that outlives a restore: bytes cut anywhere, and a browser that goes."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.page import websocket
from exact.environments.browser.page.websocket import CdpState, WebSocketConnection
from exact.errors import EnvironmentFailure

HEAD = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\r\n"


def framed(message: dict[str, Any]) -> bytes:
    text = json.dumps(message).encode()
    size = len(text)
    length = bytes((size,)) if size < 126 else struct.pack("!BH", 126, size) if size < 65536 else struct.pack("!BQ", 127, size)
    return b"\x81" + length + text


async def nobody(data: bytes) -> None:
    """Accept everything that is sent."""


@given(st.lists(st.integers(0, 70000), max_size=4), st.lists(st.integers(1, 300), max_size=6), st.integers(0, 200))
def test_a_connection_cut_anywhere_continues_in_another(sizes: list[int], cuts: list[int], switch: int) -> None:
    async def heard() -> list[int]:
        stream = HEAD + b"".join(framed({"method": "Said", "params": {"text": "x" * size}}) for size in sizes)
        found: list[int] = []
        line, at = WebSocketConnection(nobody, CdpState()), 0
        line.on("Said", lambda event: found.append(len(event["text"])))
        for cut in [*cuts, len(stream)]:
            if piece := stream[at : at + cut]:
                line.feed(piece)
            at += cut
            if at > switch:
                line = WebSocketConnection(nobody, line.state)
                line.on("Said", lambda event: found.append(len(event["text"])))
        return found

    assert asyncio.run(heard()) == sizes


async def test_answers_reach_their_caller_and_answers_to_earlier_commands_are_dropped() -> None:
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        sent.append(data)

    line = WebSocketConnection(send, CdpState(b"", 5, True))
    asking = asyncio.ensure_future(line.send("Fetch.enable", {"text": "y" * 200}))
    await asyncio.sleep(0)
    number = json.loads(sent[0][8:])["id"]
    line.feed(framed({"id": 6, "result": {"of": "before"}}) + framed({"id": number, "result": {"of": "now"}}))
    assert await asking == {"of": "now"}
    refused = asyncio.ensure_future(line.send("Fetch.enable"))
    await asyncio.sleep(0)
    line.feed(framed({"id": number + 1, "error": {"message": "no"}}))
    with pytest.raises(EnvironmentFailure, match=r"Fetch\.enable: no"):
        await refused


async def test_events_wait_until_they_are_requested() -> None:
    line, found = WebSocketConnection(nobody, CdpState(b"", 0, True), ("Said", "Other")), list[Any]()
    line.feed(framed({"method": "Said", "params": {"n": 1}}) + framed({"method": "Changed", "params": {"n": 2}}))
    assert len(line._unhandled) == 1, "what nobody will ask about is not kept"
    line.on("Other", found.append)
    line.on("Said", found.append)
    assert found == [{"n": 1}]


@pytest.mark.parametrize("end", [b"", b"\x88\x00"])
async def test_a_closed_browser_is_reported_to_waiting_and_to_later_callers(end: bytes) -> None:
    line = WebSocketConnection(nobody, CdpState(b"", 0, True))
    asking = asyncio.ensure_future(line.send("Fetch.enable"))
    await asyncio.sleep(0)
    line.feed(end)
    for late in (asking, line.send("Fetch.enable")):
        with pytest.raises(EnvironmentFailure, match="the browser is gone"):
            await late


async def test_a_browser_that_refuses_is_named() -> None:
    line = WebSocketConnection(nobody, CdpState())
    beginning = asyncio.ensure_future(line.begin("/devtools/browser/1"))
    await asyncio.sleep(0)
    line.feed(b"HTTP/1.1 404 Not Found\r\n\r\n")
    with pytest.raises(EnvironmentFailure, match="refuses a WebSocket"):
        await beginning


@pytest.mark.parametrize("cut", [10_000, 70_000])
async def test_an_answer_that_is_too_large_fails_its_command_and_is_not_kept(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    monkeypatch.setattr(websocket, "MOST_BYTES", 50_000)
    line, found = WebSocketConnection(nobody, CdpState(b"", 0, True)), list[Any]()
    line.on("Said", found.append)
    asking = asyncio.ensure_future(line.send("DOMSnapshot.captureSnapshot"))
    await asyncio.sleep(0)
    number = line.state.number
    stream = framed({"id": number, "result": {"text": "x" * 200_000}}) + framed({"method": "Said", "params": {"text": "y" * 200_000}})
    stream += framed({"method": "Said", "params": {"n": 1}})
    for at in range(0, len(stream), cut):
        line.feed(stream[at : at + cut])
        assert len(line.state.received) <= 50_000
    with pytest.raises(EnvironmentFailure, match="the answer is too large: 200,"):
        await asking
    assert found == [{"n": 1}]


@pytest.mark.parametrize("url", ["http://a.test/w", "http://a.test/" + "p" * 9000])
async def test_of_a_paused_request_that_is_too_large_its_number_comes_through(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(websocket, "MOST_BYTES", 50_000)
    line, found = WebSocketConnection(nobody, CdpState(b"", 0, True)), list[Any]()
    line.on("Fetch.requestPaused", found.append)
    request = {"url": url, "method": "POST", "headers": {}, "postData": "x" * 90_000}
    line.feed(framed({"method": "Fetch.requestPaused", "params": {"requestId": "interception-job-4.0", "request": request}}))
    line.feed(framed({"method": "Fetch.requestPaused", "params": {"requestId": "interception-job-5.0", "request": {"url": "b"}}}))
    first, second = found
    assert first["requestId"] == "interception-job-4.0" and first["tooLarge"] and second["request"] == {"url": "b"}
    assert first["request"]["url"] == (url if len(url) < 4096 else "")
