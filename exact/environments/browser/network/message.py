"""What would leave a browser context: one form for requests, redirects, forms, beacons, downloads and WebSockets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

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
