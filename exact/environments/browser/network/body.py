"""The bodies of responses, which the interceptor reads as a whole, up to a limit.

Some documents never end: their received part is shown.

The first bytes of a connection: they tell requests and TLS from everything else that a browser could send to a server.

A destination may be readable and yet not writable: raw TURN and WebSockets of a page write without a request that CDP's Fetch sees.

The treatment of the response to a navigation: every document gets the content security policy, whatever its status and type.

Only responses of which Chromium makes no document are passed on unchanged: redirects, answers without content, and downloads. A response
that it downloads because of its type is marked as a download, so that content sniffing cannot make it a document.

The text of a PDF as a page: the headless browser has no PDF viewer, and agents read text.
"""

from __future__ import annotations

import asyncio
import base64
import io
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.browser.page.cdp import MOST_BYTES
from exact.errors import EnvironmentFailure
from exact.slowness import Limit

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.cdp import CdpConnection


_BLOCKS = (4096, 64, 1)
"""Sizes in bytes of the blocks in which a slow body is read, in as many requests. CDP keeps a block back until it is complete, and each
request reads what the one before has read at once."""
_WHOLE = 1 << 20
"""Size in bytes of the blocks in which a body that comes in time is read."""
_AT_ONCE = MOST_BYTES // 2
"""Bytes of the largest body that comes in one message."""
_STALL = 1.0
"""Seconds without a block after which the rest of a slow body is given up."""


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

        `most`: bytes. None: let the browser request it again, which yields more of it. Raises BodyTooLarge; may raise Playwright's Error.
        """
        url = event["request"]["url"]
        if slow := self._slow.get(url):
            return await self._read_slowly(event, slow, seconds / 10, most)
        try:
            async with Limit(seconds / 3 if event["request"]["method"] == "GET" else math.inf):
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
        """Return the bytes of a body that arrive, and whether they are all of it."""
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
    """Return the bytes of a body; None if its head does not show them, because it is compressed or comes in chunks."""
    headers = {each["name"].lower(): each["value"].strip() for each in event.get("responseHeaders", ())}
    if headers.keys() & {"content-encoding", "transfer-encoding"}:
        return None
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


MOST = 1 << 18
"""Maximum bytes of a request's head, as of Chromium's own limit."""
_METHOD = re.compile(rb"[A-Za-z][A-Za-z-]{0,31} ")
_HANDSHAKE, _HEAD = 0x16, 5
"""Type of a TLS record that begins a connection, and bytes before a record's content (RFC 8446, 5.1)."""


class Kind(Enum):
    """Use of a connection."""

    HTTP = "a request"
    TLS = "TLS"
    SOCKET = "a WebSocket"
    SECURE_SOCKET = "a WebSocket over TLS"
    OTHER = "neither a request nor TLS"


async def read_first(read: Callable[[], Awaitable[bytes]]) -> bytes:
    """Read as many bytes of a connection as show its kind: a request's head, or the first record of TLS. Empty if none come."""
    data = b""
    while part := await read():
        data += part
        if is_whole(data) or len(data) > MOST:
            break
    return data


def is_whole(data: bytes) -> bool:
    """Return whether the first bytes tell the kind of their connection."""
    if data[:1] == bytes((_HANDSHAKE,)):
        return len(data) >= _HEAD and len(data) >= _HEAD + int.from_bytes(data[3:_HEAD], "big")
    return b"\r\n\r\n" in data or not data[:1].isalpha()


def kind_of(first: bytes) -> Kind:
    """Return the use of a connection, by the first bytes that Chromium sends on it.

    A WebSocket asks for an upgrade or, in TLS, offers HTTP/1.1 alone, whereas for anything else Chromium offers HTTP/2 first.
    """
    if first[:1] == bytes((_HANDSHAKE,)):
        return Kind.TLS if b"\x02h2" in first else Kind.SECURE_SOCKET
    if not _METHOD.match(first) or b"\r\n\r\n" not in first:
        return Kind.OTHER
    return Kind.SOCKET if b"\r\nupgrade: websocket" in first.partition(b"\r\n\r\n")[0].lower() else Kind.HTTP


_REDIRECTS = (301, 302, 303, 307, 308)
_NO_CONTENT = (204, 205)
ATTACHMENT = {"name": "Content-Disposition", "value": "attachment"}
"""The header that marks a response as a download. Chromium names the file by the address."""
_ATTACHMENT = re.compile(r"\s*attachment\s*(;.*)?", re.IGNORECASE | re.DOTALL)
_TYPE = re.compile(r"\s*([a-z-]+/[a-z0-9!#$&^_.+-]+)\s*(;.*)?", re.IGNORECASE | re.DOTALL)
_SHOWN = re.compile(
    r".*(html|xml|json|script|rss|atom|manifest|multipart|mpegurl|dash).*|application/(ogg|mp4|unknown)|unknown/.*|image/.*|audio/.*|video/.*"
    r"|text/(?!(x-)?(csv|v?calendar|vcard|vcf|qif|comma-separated-values)|tab-separated-values|tsv|rtf|directory|ldif|ofx).*",
    re.IGNORECASE,
)
"""Types that may become documents."""


class DocumentFate(Enum):
    """Treatment of a response to a navigation."""

    PASSED = "passed on"
    DOWNLOAD = "named a download"
    DOCUMENT = "a document with the policy"


def fate_of(status: int, headers: Iterable[Mapping[str, str]]) -> DocumentFate:
    """Return the treatment of a response, by its status and CDP's headers."""
    given = list(headers)
    if status in _NO_CONTENT or (status in _REDIRECTS and any(each.strip() for each in _values(given, "location"))):
        return DocumentFate.PASSED
    disposition, types = _values(given, "content-disposition"), _values(given, "content-type")
    if len(disposition) == 1 and _ATTACHMENT.fullmatch(disposition[0]):
        return DocumentFate.PASSED
    if 200 <= status < 300 and not disposition and len(types) == 1 and is_download(types[0]):
        return DocumentFate.DOWNLOAD
    return DocumentFate.DOCUMENT


def is_download(kind: str) -> bool:
    """Return whether Chromium downloads a content type, by its name alone."""
    found = _TYPE.fullmatch(kind)
    return found is not None and _SHOWN.fullmatch(found[1]) is None


def _values(headers: Iterable[Mapping[str, str]], name: str) -> list[str]:
    return [each["value"] for each in headers if each["name"].lower() == name]


MAX_PAGES = 200
"""Maximum number of pages of a document whose text is shown."""
MISSING = "The text of PDF documents is not shown here: pip install 'exact-agent[pdf]'."


def as_page(data: bytes, name: str) -> bytes:
    """Return the text of a PDF as HTML, page by page. An unreadable PDF becomes a page with a note about that."""
    title = name.rpartition("/")[2] or "document.pdf"
    try:
        import pypdf
        from pypdf.errors import PyPdfError
    except ModuleNotFoundError:
        return _page(title, f"<p>{escape(MISSING)}")
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        total = len(reader.pages)
        pages = [_section(i + 1, total, reader.pages[i].extract_text()) for i in range(min(total, MAX_PAGES))]
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, RecursionError) as error:
        return _page(title, f"<p>This PDF cannot be read: {escape(type(error).__name__)}.")
    rest = f"<p>{total - MAX_PAGES} more pages are left out." if total > MAX_PAGES else ""
    return _page(title, "".join(pages) + rest)


def _section(number: int, total: int, text: str) -> str:
    lines = "".join(f"<p>{escape(line)}" for line in text.splitlines() if line.strip())
    return f"<section aria-label='Page {number} of {total}'><h2>Page {number} of {total}</h2>{lines or '<p>(no text)'}</section>"


def _page(title: str, body: str) -> bytes:
    return f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title><main>{body}</main>".encode()
