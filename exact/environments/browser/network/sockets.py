"""Messages that a page sends on WebSockets, which CDP's Fetch does not see. They are writes like any other request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exact.environments.browser.network.policy import PageRequest, RequestPolicy

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Event = dict[str, Any]
METHOD = "WEBSOCKET"
"""Stands for the HTTP method of a message."""
_TEXT, _BINARY = 1, 2
"""Opcodes of frames with data; the others open, close and keep a connection."""


class SocketMessages:
    """Reports the messages that one page sends. In a simulation its sockets are refused before they open."""

    def __init__(self, cdp: Cdp, policy: Callable[[], RequestPolicy]) -> None:
        """Listen to a page's session. `policy`: returns the request policy of the present episode."""
        self._policy = policy
        self._urls: dict[str, str] = {}
        """Addresses of open sockets, by request id."""
        cdp.on("Network.webSocketCreated", self._created)
        cdp.on("Network.webSocketClosed", self._closed)
        cdp.on("Network.webSocketFrameSent", self._sent)

    def _created(self, event: Event) -> None:
        self._urls[event["requestId"]] = event["url"]

    def _closed(self, event: Event) -> None:
        self._urls.pop(event["requestId"], None)

    def _sent(self, event: Event) -> None:
        frame = event["response"]
        if frame["opcode"] in (_TEXT, _BINARY) and (url := self._urls.get(event["requestId"])):
            body = frame["payloadData"] if frame["opcode"] == _TEXT else ""
            self._policy().record_message(PageRequest(METHOD, url, body))
