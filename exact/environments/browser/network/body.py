"""The bodies of documents, which the interceptor reads as a whole. Some never end: they are shown as far as they have come."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.connection import CdpConnection

_BLOCKS = (4096, 64, 1)
"""Sizes in bytes of the blocks in which a slow body is read, in as many requests. CDP keeps a block back until it is complete, and each
request reads what the one before has read at once."""
_STALL = 1.0
"""Seconds without a block after which a slow body has come as far as it will."""
_MOST = 8 << 20
"""Most bytes of a slow body."""


class _Slow(NamedTuple):
    """How to read a slow body next."""

    known: int = 0
    """Bytes that have come before."""
    level: int = 0
    """Index of the size of blocks."""


class DocumentBodies:
    """Reads bodies of documents through CDP's Fetch."""

    def __init__(self, cdp: CDPSession | CdpConnection) -> None:
        self._cdp = cdp
        self._slow: dict[str, _Slow] = {}
        """Addresses whose body did not end in time. CDP gives a body as a whole or as a stream, which is decided before it is read."""

    async def read(self, event: dict[str, Any], seconds: float) -> str | None:
        """Return the body of a paused response in base64, as far as it comes within about `seconds`.

        None: let the browser request it again, which brings more of it. May raise Playwright's Error.
        """
        id, url = event["requestId"], event["request"]["url"]
        if slow := self._slow.get(url):
            return await self._read_slowly(id, url, slow, seconds / 10)
        limit = seconds / 3 if event["request"]["method"] == "GET" else None
        try:
            async with asyncio.timeout(limit):
                body = await self._cdp.send("Fetch.getResponseBody", {"requestId": id})
        except TimeoutError:
            self._slow[url] = _Slow()
            return None
        return str(body["body"]) if body["base64Encoded"] else base64.b64encode(body["body"].encode()).decode()

    async def _read_slowly(self, id: str, url: str, slow: _Slow, seconds: float) -> str | None:
        stream = (await self._cdp.send("Fetch.takeResponseBodyAsStream", {"requestId": id}))["stream"]
        body, ended = await self._read_stream(stream, slow.known, _BLOCKS[slow.level], seconds)
        self._slow.pop(url, None)
        if not ended and slow.level + 1 < len(_BLOCKS):
            self._slow[url] = _Slow(len(body), slow.level + 1)
            return None
        if not ended:
            self._slow[url] = _Slow()
        return base64.b64encode(body).decode()

    async def _read_stream(self, stream: str, known: int, block: int, seconds: float) -> tuple[bytes, bool]:
        """Return what comes of a body, and whether that is all of it."""
        body, end = bytearray(), asyncio.get_running_loop().time() + _STALL + seconds
        while len(body) < _MOST and asyncio.get_running_loop().time() < end:
            try:
                async with asyncio.timeout(_STALL):
                    part = await self._cdp.send("IO.read", {"handle": stream, "size": block if body else known or block})
            except TimeoutError:
                break
            body += base64.b64decode(part["data"]) if part.get("base64Encoded") else part["data"].encode()
            if part["eof"]:
                return bytes(body), True
        return bytes(body), False
