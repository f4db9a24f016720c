"""The request policy of a browser context: which requests are sent, and which side effects they had."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from exact.environments.base import SideEffect
from exact.environments.browser.network.scrub import unchanged
from exact.safety import origin, refusal

READS = ("GET", "HEAD", "OPTIONS")
"""HTTP methods that do not write."""


class Frames(Protocol):
    """The frames of one browser context."""

    def has(self, frame: str) -> bool:
        """Return whether the frame with an id is known to belong to the context."""
        ...

    async def ask(self) -> None:
        """Ask the browser for all frames. A blocked page answers late. Raises Playwright's Error where a page is gone."""
        ...


class RequestPolicy:
    """The requests that one browser context may send, and the side effects since they were last taken."""

    def __init__(self, allowed: Iterable[str], *, writes: bool, frames: Frames, only: Iterable[str] | None = None) -> None:
        """Create a policy that sends reads to the `allowed` origins.

        `writes`: whether writes are sent too, to the origins in `only` where that is given: those whose writes can be undone. `frames`:
        the frames of the context.
        """
        self.allowed, self.frames = tuple(allowed), frames
        self.writable = () if not writes else self.allowed if only is None else tuple(each for each in self.allowed if each in set(only))
        """Origins to which writes are sent."""
        self.task_origins: tuple[str, ...] = ()
        """The task's own origins, to which `headers` are sent."""
        self.headers: dict[str, str] = {}
        """Headers that are added to requests, by name."""
        self.unrestricted_writes = False
        """Flag that writes are sent to all allowed origins, while logging in."""
        self.blank_pages: set[str] = set()
        """Addresses that are answered with an empty page, without a request to the server."""
        self.unauthorized = ""
        """The address of a page that the server answered with status 401; the reader empties it."""
        self.is_inside: Callable[[str], bool] = lambda url: False
        """Returns whether an address is answered in the sandbox, so that what is sent there stays in it."""
        self.document_bytes = 1 << 30
        """Most bytes of a PDF whose text is shown."""
        self._effects: list[SideEffect] = []
        self._pending: dict[str, SideEffect] = {}
        """Writes without an answer yet, by request id."""
        self.mask: Callable[[str], str] = unchanged
        """Masks secrets in what is recorded."""
        self._popups: set[str] = set()
        self._popups_done = asyncio.Event()
        self._popups_done.set()

    def expect_popup(self, target: str) -> None:
        """Note a popup, by its CDP target id, that is not watched yet."""
        self._popups.add(target)
        self._popups_done.clear()

    def forget_popup(self, target: str) -> bool:
        """Forget a popup that is watched now, or gone. Return False if it was not expected."""
        known = target in self._popups
        self._popups.discard(target)
        if not self._popups:
            self._popups_done.set()
        return known

    async def no_popups(self) -> None:
        """Wait until every popup is watched or gone."""
        await self._popups_done.wait()

    def record(self, effect: SideEffect) -> None:
        """Record a side effect of the context."""
        self._effects.append(effect)

    def record_write(self, request: str, effect: SideEffect) -> None:
        """Record a write that is being sent, by its request id, whether or not it will be answered."""
        self._pending[request] = effect

    def record_answer(self, request: str, status: int) -> None:
        """Record the status of a write. Do nothing where the write was taken before, or sent under another policy."""
        if sent := self._pending.pop(request, None):
            self.record(msgspec.structs.replace(sent, status=status))

    def take_effects(self) -> tuple[SideEffect, ...]:
        """Return the side effects since the last call. Each write is returned once, without a status where it has no answer yet."""
        effects, self._effects, self._pending = (*self._effects, *self._pending.values()), [], {}
        return effects

    def refusal(self, method: str, url: str) -> str:
        """Return the reason why a request is not sent; empty if it is sent."""
        if not self.unrestricted_writes and method not in READS and origin(url) in self.allowed and origin(url) not in self.writable:
            return "a write while exploring"
        return refusal(url, self.allowed)

    def content_security_policy(self) -> str:
        """Return the content security policy that restricts what CDP's Fetch does not see: WebSockets and WebTransport."""
        sockets = [o.replace("http", "ws", 1) for o in self.writable if o.startswith("http")]
        return " ".join(("connect-src http: https: data: blob: filesystem:", *sockets))
