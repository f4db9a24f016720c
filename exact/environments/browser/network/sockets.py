"""What a page's own session tells its gate: messages on WebSockets, which CDP's Fetch does not see, and the documents that it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.message import SOCKET, BrowserMessage

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Event = dict[str, Any]
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

    def _created(self, event: Event) -> None:
        self._urls[event["requestId"]] = event["url"]

    def _closed(self, event: Event) -> None:
        self._urls.pop(event["requestId"], None)

    def _sent(self, event: Event) -> None:
        frame = event["response"]
        if frame["opcode"] in (_TEXT, _BINARY) and (url := self._urls.get(event["requestId"])):
            body = frame["payloadData"] if frame["opcode"] == _TEXT else ""
            self._gate().record_message(BrowserMessage(SOCKET, url, body))

    def _shown(self, event: Event) -> None:
        frame = event["frame"]
        self._gate().document_shown(frame["id"], frame["url"], is_main="parentId" not in frame)
