"""Recording of a browser context's requests as a HAR, from some moment on.

Playwright writes a HAR only when the context closes, and with all credentials. This one can be read while the episode goes on, and holds
what evaluators compare.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from exact.environments.browser.network.durable import DurableBodies
from exact.environments.browser.network.har_entry import HarExchange, Kept, entry
from exact.origins import split_url

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Request, Response

STATIC = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf", ".ico", ".webp")
"""Endings of the paths of files that are the same for every visitor. They are not recorded."""
_LATE = 3.0
"""Seconds for which the answers of requests under way are waited for, once the HAR is asked for."""
_LARGEST = 1 << 20
"""Bytes of the largest JSON that is read."""


class HarRecorder:
    """Recorder of the requests that a browser context makes, in the order in which they begin."""

    def __init__(self, context: BrowserContext, kept: Kept) -> None:
        """Record the requests from now on; `of` keeps bodies too. `kept`: what an evaluator reads beyond addresses, forms and headers."""
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
        """Return a recorder that keeps the bodies of the open pages' answers, also where a page goes on before they are read."""
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
        """Read what the events do not say: the headers as they were sent, and the answer's."""
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
        """Return an answer's body. Raises Playwright's Error where the browser does not have it any more."""
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
