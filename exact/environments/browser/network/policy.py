"""Decides what a browser context may request, and collects what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from exact.environments.base import SideEffect
from exact.environments.browser.network.scrub import nothing
from exact.safety import origin, refusal

READS = ("GET", "HEAD", "OPTIONS")
"""Methods that do not change the server."""


class Frames(Protocol):
    """Those of one browser context."""

    def has(self, frame: str) -> bool:
        """Whether a frame, by its id, is known to be one of them: as far as events told, and answers."""
        ...

    async def ask(self) -> None:
        """Know all that there are now. A page that stands still answers late. Raises Playwright's Error where one has gone."""
        ...


class RequestPolicy:
    """What one browser context may do, and what it did since it was last asked."""

    def __init__(self, allowed: Iterable[str], *, writes: bool, frames: Frames, only: Iterable[str] | None = None) -> None:
        """`allowed`: origins. `writes`: whether methods that change the outside are sent, `only` to these origins where there are some
        that others are not undone with. `frames`: the context's."""
        self.allowed, self.frames = tuple(allowed), frames
        self.writable = () if not writes else self.allowed if only is None else tuple(each for each in self.allowed if each in set(only))
        """Origins to which writes are sent."""
        self.own: tuple[str, ...] = ()
        """The task's own origins: `headers` are sent to them."""
        self.headers: dict[str, str] = {}
        self.unlocked = False
        """Whether writes are sent wherever requests are: while logging in."""
        self.blanks: set[str] = set()
        """Addresses that are answered from here, with an empty page."""
        self.unauthorized = ""
        """A page's address that was answered with status 401."""
        self.most = 1 << 30
        """Bytes of a document that is read here."""
        self._effects: list[SideEffect] = []
        self._sent: dict[str, SideEffect] = {}
        """Writes that were not answered yet, by the ids of their requests."""
        self.mask: Callable[[str], str] = nothing
        """Hides what must not be written down."""
        self._popups: set[str] = set()
        self._settled = asyncio.Event()
        self._settled.set()

    def expect_popup(self, target: str) -> None:
        """A popup was opened: a page nobody looks at yet."""
        self._popups.add(target)
        self._settled.clear()

    def forget_popup(self, target: str) -> bool:
        """The popup is looked at or gone. False if it was not expected."""
        known = target in self._popups
        self._popups.discard(target)
        if not self._popups:
            self._settled.set()
        return known

    async def no_popups(self) -> None:
        """Return when every popup is looked at or gone."""
        await self._settled.wait()

    def record(self, effect: SideEffect) -> None:
        """Note something the context did."""
        self._effects.append(effect)

    def record_write(self, request: str, effect: SideEffect) -> None:
        """Note a write that is on its way from now on, whether or not it will be answered."""
        self._sent[request] = effect

    def record_answer(self, request: str, status: int) -> None:
        """A write was answered. Nothing where it was told of before that, or was sent under other rules."""
        if sent := self._sent.pop(request, None):
            self.record(msgspec.structs.replace(sent, status=status))

    def take_effects(self) -> tuple[SideEffect, ...]:
        """What happened since the last call. Each write is told once, without a status where it is not answered yet."""
        effects, self._effects, self._sent = (*self._effects, *self._sent.values()), [], {}
        return effects

    def refusal(self, method: str, url: str) -> str:
        """Why a request is not sent; empty if it is."""
        if not self.unlocked and method not in READS and origin(url) in self.allowed and origin(url) not in self.writable:
            return "a write while exploring"
        return refusal(url, self.allowed)

    def content_security_policy(self) -> str:
        """A content security policy that holds for what `Fetch` does not see: WebSockets and WebTransport."""
        sockets = [o.replace("http", "ws", 1) for o in self.writable if o.startswith("http")]
        return " ".join(("connect-src http: https: data: blob: filesystem:", *sockets))
