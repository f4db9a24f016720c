"""Bodies of answers that outlive their document.

The browser drops the body of an answer as soon as its page opens another document. Some programs post and then go on at once, before
anyone could ask for the body.
"""

from __future__ import annotations

import base64
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Request

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
