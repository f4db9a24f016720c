"""A page's CDP session on a line of ours: a command takes half the time that it takes by way of Playwright's driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a command; the message that answers it. Raises EnvironmentFailure where the browser is gone."""

GONE = -32001
"""The code by which CDP says that there is no such session."""
CLOSED = "the page, its context or the browser has been closed"


class Session:
    """`on`, `send` and what they raise are as in Playwright's CDPSession. Made by `Line.attach`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of that name from now on."""
        self._handlers[event].append(handler)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a command. Raises Playwright's Error where it is refused, or the page is gone."""
        from playwright.async_api import Error

        try:
            answer = await self._ask(method, params or {})
        except EnvironmentFailure as lost:
            raise Error(f"{method}: {CLOSED}: {lost}") from lost
        if error := answer.get("error"):
            raise Error(f"{method}: {CLOSED if error.get('code') == GONE else error.get('message', 'refused')}")
        return dict(answer.get("result", {}))

    def hear(self, event: str, params: dict[str, Any]) -> None:
        """One event of the page."""
        for handler in self._handlers.get(event, ()):
            handler(params)


Cdp: TypeAlias = "CDPSession | Session"
"""What a page is asked through."""
