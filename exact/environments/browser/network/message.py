"""What would leave a browser context: one form for requests, redirects, forms, beacons, downloads and WebSockets.

A page's own session tells the messages on WebSockets, which CDP's Fetch does not see, and the documents that the page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from exact.environments.base import SAFE_METHODS
from exact.environments.browser.network.form import field_names, request_body
from exact.environments.browser.presume.address import overriding_methods
from exact.origins import origin

if TYPE_CHECKING:
    from exact.environments.browser.network.gate import Gate
    from exact.environments.browser.page.cdp import Cdp

SOCKET = "WEBSOCKET"
"""Stands for the HTTP method of a WebSocket, its handshake and its messages."""
SOCKET_REPORTS = "https://exact.invalid/refused-socket"
"""Address to which the browser reports the WebSockets that it refuses. The reports are answered here and never sent."""


PARTS = ("Script", "Stylesheet", "Font", "Image", "Media", "Manifest", "TextTrack")
"""Types of resources that are parts of a page, and that its address alone asks for."""
Channel = Literal["page", "form", "request", "upload", "part", "beacon", "report", "redirect", "socket"]
"""Ways out of a browser context. A download leaves as a `page`, a worker's request as a `request`, a frame of a WebSocket as a `socket`."""


class StoredCookie(NamedTuple):
    """A cookie of a browser context."""

    domain: str
    path: str
    name: str
    value: str


class BrowserMessage(NamedTuple):
    """Something that would leave a browser context, before it does."""

    method: str
    url: str
    body: str = ""
    fields: tuple[str, ...] = ()
    """Names of the fields in the body."""
    frame: str = ""
    """CDP id of the frame."""
    referrer: str = ""
    """Address of the document that sent it; empty if the page does not report it."""
    is_document: bool = False
    """Whether it is a navigation."""
    is_beacon: bool = False
    """Whether its answer never reaches the page, as with `navigator.sendBeacon`."""
    is_report: bool = False
    """Whether the browser reports a violation of the page's content security policy, which neither the page nor the agent does."""
    kind: str = ""
    """CDP's type of the requested resource: Document, XHR, Image, ..."""
    overrides: tuple[str, ...] = ()
    """Methods that headers of the request ask for in place of the sent one."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names and values of the headers."""
    source: str = ""
    """Address whose answer redirected here; empty if no answer did."""
    sent: str = ""
    """Body of the request that was redirected here."""
    fragment: str = ""
    """The part of a navigation's address behind `#`, with it. It is not sent, but the document there reads it."""
    cookies: Iterable[StoredCookie] = ()
    """Cookies that a request carries, if its sender may know a typed secret."""
    is_chosen: bool = False
    """Whether the agent itself goes there, to an address that no page which may know a secret told it."""
    is_whole: bool = True
    """Whether the body was read as a whole."""

    @property
    def channel(self) -> Channel:
        """The way by which it would leave."""
        if self.method == SOCKET:
            return "socket"
        if self.source:
            return "redirect"
        if self.is_report:
            return "report"
        if self.is_beacon:
            return "beacon"
        if self.is_document:
            return "page" if self.method == "GET" else "form"
        if self.body or not self.is_whole:
            return "upload"
        return "part" if self.kind in PARTS else "request"


def reported_socket(body: str) -> str:
    """Return the address of the WebSocket in a report of a violated policy; empty if it reports something else."""
    try:
        report = msgspec.json.decode(body.encode("utf-8", "replace"), type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, RecursionError):
        return ""
    url = str(report.get("csp-report", {}).get("blocked-uri", ""))
    return url if url.startswith(("ws:", "wss:")) and origin(url) else ""


def message_of(event: dict[str, Any]) -> BrowserMessage:
    """Return the request of a CDP Fetch.requestPaused."""
    request = event["request"]
    kind, body = event["resourceType"], request_body(request)
    fields = () if request["method"] in SAFE_METHODS else field_names(request)
    referrer = header(request, "referer")
    return BrowserMessage(
        request["method"],
        request["url"],
        body,
        fields,
        event["frameId"],
        referrer,
        kind == "Document",
        is_beacon=kind == "Ping",
        is_report=kind == "CSPViolationReport",
        kind=kind,
        headers=tuple((name, str(value)) for name, value in request["headers"].items()),
        fragment=request.get("urlFragment", ""),
        is_whole=bool(body) or not request.get("hasPostData", False),
        overrides=overriding_methods((name, str(value)) for name, value in request["headers"].items()),
    )


def header(request: dict[str, Any], name: str) -> str:
    """Return a header of a CDP request by its name in lower case; empty if there is none."""
    return next((str(value) for given, value in request["headers"].items() if given.lower() == name), "")


_TEXT, _BINARY = 1, 2
"""Opcodes of frames with data; the others open, close and keep a connection."""


class PageReports:
    """Reports the messages and the documents of one page. In a simulation its sockets are refused before they open."""

    def __init__(self, cdp: Cdp, gate: Callable[[], Gate]) -> None:
        """Listen to a page's session. `gate`: returns the gate of the present episode."""
        self._gate = gate
        self._urls: dict[str, str] = {}
        """Addresses of open sockets, by request id."""
        cdp.on("Network.webSocketCreated", self._created)
        cdp.on("Network.webSocketClosed", self._closed)
        cdp.on("Network.webSocketFrameSent", self._sent)
        cdp.on("Page.frameNavigated", self._shown)

    def _created(self, event: dict[str, Any]) -> None:
        self._urls[event["requestId"]] = event["url"]

    def _closed(self, event: dict[str, Any]) -> None:
        self._urls.pop(event["requestId"], None)

    def _sent(self, event: dict[str, Any]) -> None:
        frame = event["response"]
        if frame["opcode"] in (_TEXT, _BINARY) and (url := self._urls.get(event["requestId"])):
            body = frame["payloadData"] if frame["opcode"] == _TEXT else ""
            self._gate().record_message(BrowserMessage(SOCKET, url, body))

    def _shown(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        self._gate().document_shown(frame["id"], frame["url"], is_main="parentId" not in frame)
