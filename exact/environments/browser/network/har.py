"""Recording of a browser context's requests as a HAR, from a given moment on.

Playwright writes a HAR only when the context closes, and with all credentials. This one can be read while the episode continues, and holds
the fields that evaluators compare.

Entries of a HAR file (HTTP Archive 1.2) from exchanges of a browser, without credentials.

A credential is recognized by its name, in addresses, headers, forms and JSON. The text of any other field stays as it was sent: evaluators
compare it.

Bodies of answers that outlive their document.

The browser drops the body of an answer as soon as its page opens another document. Some programs post and then continue at once, before
anyone could ask for the body.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import msgspec

from exact.environments.browser.network import scrub
from exact.origins import split_url

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page, Request, Response


STATIC = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf", ".ico", ".webp")
"""Endings of the paths of files that are the same for every visitor. They are not recorded."""
_LATE = 3.0
"""Seconds for which the answers of requests under way are waited for, once the HAR is requested."""
_LARGEST = 1 << 20
"""Bytes of the largest JSON that is read."""


class HarRecorder:
    """Recorder of the requests that a browser context makes, in the order in which they begin."""

    def __init__(self, context: BrowserContext, kept: Kept) -> None:
        """Record the requests from now on; `of` keeps bodies too. `kept`: the parts read besides addresses, forms and headers."""
        self._kept = kept
        self._bodies: list[DurableBodies] = []
        self._exchanges: dict[Request, HarExchange] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._under_way: set[Request] = set()
        self._changed = asyncio.Event()
        context.on("request", self._began)
        context.on("response", self._answered)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._ended)
        if kept.json:
            context.on("page", self._page_opened)

    @classmethod
    async def of(cls, context: BrowserContext, kept: Kept) -> HarRecorder:
        """Return a recorder that keeps the bodies of the open pages' answers, even if a page moves on before they are read."""
        recorder = cls(context, kept)
        if kept.json:
            await asyncio.gather(*map(recorder._keep_bodies, context.pages))
        return recorder

    async def entries(self) -> list[dict[str, Any]]:
        """Return the entries up to now. Requests under way are waited for a moment; one without an answer has the status -1."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LATE):
                while self._under_way:
                    self._changed.clear()
                    await self._changed.wait()
        for request in self._under_way:
            self._exchanges[request].headers = tuple(request.headers.items())
        return [entry(exchange, self._kept) for exchange in self._exchanges.values()]

    def _page_opened(self, page: Page) -> None:
        self._start(self._keep_bodies(page))

    async def _keep_bodies(self, page: Page) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # the page is gone
            self._bodies.append(await DurableBodies.of(page, _LARGEST))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    def _began(self, request: Request) -> None:
        parts = split_url(request.url)
        if parts.scheme in ("http", "https") and not parts.path.endswith(STATIC):
            self._exchanges[request] = HarExchange(
                method=request.method, url=request.url, started=time.time(), sent=request.post_data_buffer
            )
            self._under_way.add(request)

    def _answered(self, response: Response) -> None:
        if exchange := self._exchanges.get(response.request):
            exchange.status, exchange.status_text = response.status, response.status_text

    def _ended(self, request: Request) -> None:
        if request not in self._under_way:
            return
        self._start(self._read(request))

    async def _read(self, request: Request) -> None:
        """Read the headers that the events lack: the request's as they were sent, and the answer's."""
        from playwright.async_api import Error

        exchange = self._exchanges[request]
        exchange.headers = tuple(request.headers.items())
        try:
            exchange.headers = tuple((each["name"], each["value"]) for each in await request.headers_array())
            if exchange.status > 0 and (response := await request.response()):
                exchange.answer_headers = tuple((each["name"], each["value"]) for each in await response.headers_array())
                if self._kept.json and _is_short_json(exchange):
                    exchange.body = await self._body(response)
        except Error:
            pass  # the page is gone, or the answer has no body: the rest is known
        finally:
            self._under_way.discard(request)
            self._changed.set()

    async def _body(self, response: Response) -> bytes:
        """Return an answer's body. Raises Playwright's Error if the browser no longer has it."""
        from playwright.async_api import Error

        try:
            return await response.body()
        except Error:
            bodies = next((each for each in self._bodies if each.knows(response.request)), None)
            if bodies is None:
                raise
            return await bodies.body(response.request)


def _is_short_json(exchange: HarExchange) -> bool:
    found = {name.lower(): value for name, value in exchange.answer_headers}
    length = found.get("content-length", "0")
    return "json" in found.get("content-type", "") and (not length.isdigit() or int(length) <= _LARGEST)


Headers = tuple[tuple[str, str], ...]
NO_ANSWER = -1
"""Status of a request that got no answer, as Playwright writes it."""
_ADDRESSES = ("referer", "origin", "location")
_FORM_KEY = re.compile(r"(/key/)[0-9a-f]{32,}")
"""Matches the secret that an administration of Magento puts in each path."""


class HarExchange(msgspec.Struct, kw_only=True):
    """One request, and the known part of its answer."""

    method: str
    url: str
    started: float
    """Seconds since 1970."""
    headers: Headers = ()
    sent: bytes | None = None
    status: int = NO_ANSWER
    status_text: str = ""
    answer_headers: Headers = ()
    body: bytes | None = None
    """Body of the answer, if it was read."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that a HAR keeps beyond addresses, forms and headers, because an evaluator reads it."""

    cookies: Callable[[str], bool] = lambda name: False
    """Returns whether the value of a cookie of that name is kept, of those that a site sets."""
    sent_cookies: Callable[[str], bool] | None = None
    """Returns whether the value of a cookie of that name is kept, of those that the browser sends. None: no header `Cookie` is kept."""
    json: bool = False
    """Whether the JSON of answers is kept."""


def har(entries: Iterable[dict[str, Any]], version: str) -> dict[str, Any]:
    """Return a HAR file of these entries as plain data. `version`: that of this package."""
    return {"log": {"version": "1.2", "creator": {"name": "exact", "version": version}, "entries": list(entries)}}


def entry(exchange: HarExchange, kept: Kept) -> dict[str, Any]:
    """Return the HAR entry of an exchange, without credentials."""
    url, answered = _address(exchange.url), {name.lower(): value for name, value in exchange.answer_headers}
    request: dict[str, Any] = {
        "method": exchange.method, "url": url, "httpVersion": "HTTP/1.1", "cookies": [],
        "headers": [*_headers(exchange.headers), *_sent_cookies(exchange.headers, kept)],
        "queryString": [{"name": name, "value": value} for name, value in parse_qsl(split_url(url).query, keep_blank_values=True)],
        "headersSize": -1, "bodySize": len(exchange.sent or b""),
    }  # fmt: skip
    if exchange.sent is not None:
        kind = next((value for name, value in exchange.headers if name.lower() == "content-type"), "")
        request["postData"] = {"mimeType": kind, "text": body(exchange.sent.decode("utf-8", "replace"), kind)}
    content: dict[str, Any] = {"size": len(exchange.body or b""), "mimeType": answered.get("content-type", "")}
    if kept.json and exchange.body is not None:
        content["text"] = body(exchange.body.decode("utf-8", "replace"), content["mimeType"])
    return {
        "startedDateTime": datetime.fromtimestamp(exchange.started, UTC).isoformat(), "time": -1, "request": request,
        "response": {
            "status": exchange.status, "statusText": exchange.status_text, "httpVersion": "HTTP/1.1",
            "cookies": list(_set_cookies(exchange.answer_headers, kept)), "headers": _headers(exchange.answer_headers),
            "content": content, "redirectURL": _address(answered.get("location", "")), "headersSize": -1, "bodySize": -1,
        },
        "cache": {}, "timings": {"send": -1, "wait": -1, "receive": -1},
    }  # fmt: skip


def body(text: str, kind: str) -> str:
    """Return the body of a request or an answer without the values of credentials, by its content type: a form, JSON, or any other."""
    if "urlencoded" in kind:
        return "&".join(map(_pair, text.split("&")))
    if "json" in kind:
        try:
            return json.dumps(_value(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return text
    return scrub.form(text) if "multipart/form-data" in kind else text


def _pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    return f"{name}={quote(scrub.SCRUBBED)}" if sign and value and scrub.names_credential(name) else pair


def _value(value: Any) -> Any:
    """Return JSON in which each value with a credential's name is replaced."""
    if isinstance(value, dict):
        return {name: scrub.SCRUBBED if each and scrub.names_credential(name) else _value(each) for name, each in value.items()}
    return [_value(each) for each in value] if isinstance(value, list) else value


def _address(url: str) -> str:
    return _FORM_KEY.sub(rf"\1{scrub.SCRUBBED}", scrub.address(url))


def _headers(headers: Headers) -> list[dict[str, str]]:
    return [
        {"name": name, "value": _address(value) if name.lower() in _ADDRESSES else value}
        for name, value in scrub.headers(headers)
        if not name.startswith(":")
    ]


def _sent_cookies(headers: Headers, kept: Kept) -> list[dict[str, str]]:
    """Return the header `Cookie` with the values that are kept."""
    given = next((value for name, value in headers if name.lower() == "cookie"), "")
    if kept.sent_cookies is None or not given:
        return []
    pairs = (pair.strip().partition("=") for pair in given.split(";"))
    shown = (f"{name}={value if kept.sent_cookies(name) else scrub.SCRUBBED}" for name, _, value in pairs)
    return [{"name": "Cookie", "value": "; ".join(shown)}]


def _set_cookies(headers: Headers, kept: Kept) -> Iterable[dict[str, str]]:
    """Yield the cookies that an answer sets, with the values that are kept."""
    for line in (line for name, value in headers if name.lower() == "set-cookie" for line in value.split("\n")):
        name, _, value = line.partition(";")[0].strip().partition("=")
        yield {"name": name, "value": value if kept.cookies(name) else scrub.SCRUBBED}


_TOTAL = 64 << 20
"""Bytes of bodies that the browser keeps for a page."""


class DurableBodies:
    """Reads bodies of one page's answers, also after the page has left their document."""

    def __init__(self, cdp: CDPSession) -> None:
        self._cdp = cdp
        self._ids: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """CDP's ids of the requests of a method and address, in the order in which they began."""
        self._places: dict[Request, int] = {}
        """Index of a request among those of its method and address."""
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)

    @classmethod
    async def of(cls, page: Page, largest: int) -> DurableBodies:
        """Keep the bodies of a page's answers from now on. `largest`: bytes of the largest body. May raise Playwright's Error."""
        bodies = cls(await page.context.new_cdp_session(page))
        limits = {"maxTotalBufferSize": _TOTAL, "maxResourceBufferSize": largest}
        await bodies._cdp.send("Network.configureDurableMessages", limits)
        await bodies._cdp.send("Network.enable")
        bodies._cdp.on("Network.requestWillBeSent", bodies._began)
        page.on("request", bodies._count)
        return bodies

    def knows(self, request: Request) -> bool:
        """Return whether a request began on the page since."""
        return self._places.get(request, sys.maxsize) < len(self._ids[request.method, request.url])

    async def body(self, request: Request) -> bytes:
        """Return the body of the answer of a request that `knows` names. May raise Playwright's Error."""
        id = self._ids[request.method, request.url][self._places[request]]
        found = await self._cdp.send("Network.getResponseBody", {"requestId": id})
        return base64.b64decode(found["body"]) if found["base64Encoded"] else found["body"].encode()

    def _began(self, event: dict[str, Any]) -> None:
        self._ids[event["request"]["method"], event["request"]["url"] + event["request"].get("urlFragment", "")].append(event["requestId"])

    def _count(self, request: Request) -> None:
        key = (request.method, request.url)
        self._places[request] = self._counts[key]
        self._counts[key] += 1
