"""What would leave a browser context: one form for requests, redirects, forms, beacons, downloads and WebSockets."""

from __future__ import annotations

from typing import NamedTuple

SOCKET = "WEBSOCKET"
"""Stands for the HTTP method of a WebSocket, its handshake and its messages."""
SOCKET_REPORTS = "https://exact.invalid/refused-socket"
"""Address to which the browser reports the WebSockets that it refuses. The reports are answered here and never sent."""


class Message(NamedTuple):
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
    is_whole: bool = True
    """Whether the body was read as a whole."""
