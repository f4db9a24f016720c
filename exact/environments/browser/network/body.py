"""The bodies of responses, which the interceptor reads as a whole, up to a limit.

Some documents never end: they are shown as far as they have come.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.browser.page.cdp import MOST_BYTES
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.connection import CdpConnection

_BLOCKS = (4096, 64, 1)
"""Sizes in bytes of the blocks in which a slow body is read, in as many requests. CDP keeps a block back until it is complete, and each
request reads what the one before has read at once."""
_WHOLE = 1 << 20
"""Size in bytes of the blocks in which a body is read that comes in time."""
_AT_ONCE = MOST_BYTES // 2
"""Bytes of the largest body that comes in one message."""
_STALL = 1.0
"""Seconds without a block after which a slow body has come as far as it will."""


class BodyTooLarge(Exception):
    """A body that has more bytes, once decompressed, than may be read."""


class _Slow(NamedTuple):
    """How to read a slow body next."""

    known: int = 0
    """Bytes that have come before."""
    level: int = 0
    """Index of the size of blocks."""


class Bodies:
    """Reads bodies of responses through CDP's Fetch."""

    def __init__(self, cdp: CDPSession | CdpConnection) -> None:
        self._cdp = cdp
        self._slow: dict[str, _Slow] = {}
        """Addresses whose body did not end in time. CDP gives a body as a whole or as a stream, which is decided before it is read."""

    async def read(self, event: dict[str, Any], seconds: float, most: int) -> tuple[bytes, bool] | None:
        """Return the body of a paused response, as far as it comes within about `seconds`, and whether that is all of it.

        `most`: bytes. None: let the browser request it again, which brings more of it. Raises BodyTooLarge; may raise Playwright's Error.
        """
        url = event["request"]["url"]
        if slow := self._slow.get(url):
            return await self._read_slowly(event, slow, seconds / 10, most)
        try:
            async with asyncio.timeout(seconds / 3 if event["request"]["method"] == "GET" else None):
                return await self.whole(event, most), True
        except TimeoutError:
            self._slow[url] = _Slow()
            return None

    async def whole(self, event: dict[str, Any], most: int) -> bytes:
        """Return a body once it is complete. `most`: bytes. Raises BodyTooLarge; may raise Playwright's Error."""
        id, length = event["requestId"], _length(event)
        if length is not None and length <= min(most, _AT_ONCE):
            found = await self._cdp.send("Fetch.getResponseBody", {"requestId": id})
            return base64.b64decode(found["body"]) if found["base64Encoded"] else found["body"].encode()
        if length is not None and length > most:
            raise BodyTooLarge
        stream, body = (await self._cdp.send("Fetch.takeResponseBodyAsStream", {"requestId": id}))["stream"], bytearray()
        while True:
            part = await self._cdp.send("IO.read", {"handle": stream, "size": min(_WHOLE, most + 1 - len(body))})
            body += _bytes(part)
            if len(body) > most:
                await self._close(stream)
                raise BodyTooLarge
            if part["eof"]:
                return bytes(body)

    async def _read_slowly(self, event: dict[str, Any], slow: _Slow, seconds: float, most: int) -> tuple[bytes, bool] | None:
        url = event["request"]["url"]
        stream = (await self._cdp.send("Fetch.takeResponseBodyAsStream", {"requestId": event["requestId"]}))["stream"]
        body, ended = await self._read_stream(stream, slow.known, _BLOCKS[slow.level], seconds, most)
        self._slow.pop(url, None)
        if not ended and slow.level + 1 < len(_BLOCKS):
            self._slow[url] = _Slow(len(body), slow.level + 1)
            return None
        if not ended:
            self._slow[url] = _Slow()
        return body, ended

    async def _read_stream(self, stream: str, known: int, block: int, seconds: float, most: int) -> tuple[bytes, bool]:
        """Return what comes of a body, and whether that is all of it."""
        body, end = bytearray(), asyncio.get_running_loop().time() + _STALL + seconds
        while len(body) < most and asyncio.get_running_loop().time() < end:
            try:
                async with asyncio.timeout(_STALL):
                    part = await self._cdp.send("IO.read", {"handle": stream, "size": block if body else known or block})
            except TimeoutError:
                break
            body += _bytes(part)
            if part["eof"]:
                return bytes(body), True
        return bytes(body), False

    async def _close(self, stream: str) -> None:
        from playwright.async_api import Error

        with suppress(Error, EnvironmentFailure):  # the page is gone
            await self._cdp.send("IO.close", {"handle": stream})


def _bytes(part: dict[str, Any]) -> bytes:
    return base64.b64decode(part["data"]) if part.get("base64Encoded") else part["data"].encode()


def _length(event: dict[str, Any]) -> int | None:
    """Return the bytes of a body; None where its head does not tell, because it is compressed or comes in chunks."""
    headers = {each["name"].lower(): each["value"].strip() for each in event.get("responseHeaders", ())}
    if headers.keys() & {"content-encoding", "transfer-encoding"}:
        return None
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None
