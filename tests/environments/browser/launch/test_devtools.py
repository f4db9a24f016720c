"""What answers at browser.cdp_url is not trusted: every answer is a browser or a typed failure, and leads nowhere else."""

import asyncio
import base64
import hashlib
import json
import re
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.browser.launch.connect import connect, websocket_of
from exact.errors import EnvironmentFailure

VERSION = {"protocolVersion": "1.3", "product": "HeadlessChrome/1", "revision": "@1", "userAgent": "x", "jsVersion": "1"}


@asynccontextmanager
async def speaking(kind: str) -> AsyncIterator[str]:
    """Yield the address of a WebSocket that answers each command of the DevTools protocol with something that no browser says."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            key = re.search(rb"Sec-WebSocket-Key: (\S+)", await reader.readuntil(b"\r\n\r\n"), re.I)[1]
            accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            upgrade = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            writer.write(upgrade + accept + b"\r\n\r\n")
            while True:
                head, size = await reader.readexactly(2)
                size &= 127
                size = struct.unpack(">H", await reader.readexactly(2))[0] if size == 126 else size
                mask, data = await reader.readexactly(4), await reader.readexactly(size)
                if head & 15 != 1:  # it closes the connection
                    break
                asked = json.loads(bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)))
                said = {"id": asked["id"], **({"sessionId": asked["sessionId"]} if "sessionId" in asked else {})}
                said |= {"error": {"message": "\x1b[31m" + "no" * 10_000}} if kind == "errors" else {"result": VERSION}
                said |= {"result": [1]} if kind == "list" else {}
                answer = json.dumps(said).encode()
                writer.write(b"\x81" + (struct.pack(">BH", 126, len(answer)) if len(answer) > 125 else bytes([len(answer)])) + answer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/devtools"


async def refused(address: str) -> str:
    """Return the one line with which a connection fails."""
    with pytest.raises(EnvironmentFailure) as failure:
        async with connect(BrowserConfig(cdp_url=address), {}):
            pass
    text = str(failure.value)
    assert "\n" not in text and "\x1b" not in text and len(text) < 600 and "no browser answers at browser.cdp_url" in text
    return text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "no JSON object"),
        ("[" * 60_000, "no JSON object"),
        ("[]", "no JSON object"),
        ("{}", "names no WebSocket"),
        ('{"webSocketDebuggerUrl": 7}', "names no WebSocket"),
        ('{"webSocketDebuggerUrl": "file:///etc/passwd"}', "names no WebSocket"),
        ('{"webSocketDebuggerUrl": "ws://[/"}', "names no WebSocket"),
        ('{"webSocketDebuggerUrl": "ws://10.0.0.7:9222/x"}', "leads to another host, ws://10.0.0.7:9222"),
        ("x" * 70_000, "more than 65536 bytes"),
    ],
)
async def test_an_answer_that_is_no_browsers_is_a_failure_in_one_line(body, says, httpserver):
    httpserver.expect_request("/json/version").respond_with_data(body, content_type="application/json")
    assert says in await refused(httpserver.url_for("/"))


async def test_a_redirect_of_the_devtools_is_not_followed(httpserver):
    httpserver.expect_request("/json/version").respond_with_data("", status=302, headers={"Location": httpserver.url_for("/else")})
    assert "status 302" in await refused(httpserver.url_for(""))
    assert [request.path for request, _ in httpserver.log[-1:]] == ["/json/version"]


async def test_devtools_that_say_nothing_are_given_up(httpserver):
    answered = threading.Event()

    def slow(request: Request) -> Response:
        answered.wait(20)
        return Response("{}")

    httpserver.expect_request("/json/version").respond_with_handler(slow)
    with pytest.raises(EnvironmentFailure, match="no answer within"):
        await websocket_of(httpserver.url_for(""), seconds=0.2)
    assert not answered.is_set()
    answered.set()


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", "http://[", "http://", "http://\x00"])
async def test_what_is_no_address_is_a_failure_in_one_line(address):
    await refused(address)


async def test_a_token_in_the_address_is_sent_and_not_shown(httpserver):
    httpserver.expect_request("/room/json/version", query_string="token=Kx71Q").respond_with_data("{}")
    assert "Kx71Q" not in await refused(httpserver.url_for("/room?token=Kx71Q"))
    assert [request.query_string for request, _ in httpserver.log[-1:]] == [b"token=Kx71Q"]


@pytest.mark.parametrize("kind", ["errors", "empty", "list"])
async def test_a_browser_that_answers_nonsense_is_a_failure_in_one_line(kind):
    async with speaking(kind) as address:
        await refused(address)
