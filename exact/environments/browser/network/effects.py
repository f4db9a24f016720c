"""The side effects of a browser context: what was sent that changes something, and what was refused."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from exact.environments.base import SideEffect
from exact.environments.browser.network.message import BrowserMessage
from exact.environments.browser.network.rules import kind_of
from exact.origins import host_name, origin

_FAILURES: tuple[tuple[type[OSError], str], ...] = (
    (socket.gaierror, "NameNotResolved"),
    (ConnectionRefusedError, "ConnectionRefused"),
    (TimeoutError, "TimedOut"),
)
"""Errors of connections, and their names in CDP's Network.ErrorReason."""


MOST_REFUSED = 500
"""Requests of one step that are refused. The browser holds further ones back without an answer, until it sends no more."""


class _Noted(NamedTuple):
    """A side effect, and the kind of its message if that may be learned."""

    effect: SideEffect
    kind: str = ""


class EffectLog:
    """The side effects since they were last taken, and the failures of connections."""

    def __init__(self, is_learned: Callable[[str], bool]) -> None:
        """Make an empty log. `is_learned` returns whether pages send a kind of message by themselves."""
        self._is_learned = is_learned
        self._effects: list[_Noted] = []
        self._pending: dict[str, _Noted] = {}
        """Writes without an answer yet, by request id."""
        self.has_write = False
        """Whether a write was sent since side effects were last taken."""
        self._refused = 0
        """Requests that were refused since side effects were last taken."""
        self._once: set[str] = set()
        """Addresses of connections that were refused since side effects were last taken."""
        self._failures: dict[str, str] = {}
        """Reasons why servers could not be connected to, as CDP names them, by `host:port`."""

    def record(self, effect: SideEffect, message: BrowserMessage | None = None) -> None:
        """Record a side effect. `message`: what caused it, if its kind may be learned."""
        self.has_write = self.has_write or effect.is_write
        self._effects.append(_Noted(effect, kind_of(message) if message else ""))

    def record_refused(self, effect: SideEffect, message: BrowserMessage) -> bool:
        """Record the side effect of a request that is refused. Return False if so many were that this one is not to be answered."""
        self._refused += 1
        if self._refused == MOST_REFUSED:
            effect = msgspec.structs.replace(effect, detail=f"{effect.detail}; {MOST_REFUSED} requests were refused, more are not answered")
        if self._refused <= MOST_REFUSED:
            self.record(effect, message)
        return self._refused <= MOST_REFUSED

    def record_once(self, url: str, effect: SideEffect, message: BrowserMessage | None = None) -> None:
        """Record the side effect of a refused connection, once a step: pages try again."""
        if url not in self._once:
            self._once.add(url)
            self.record(effect, message)

    def record_write(self, id: str, effect: SideEffect, message: BrowserMessage) -> None:
        """Record a write that is being sent, by its request id, whether or not it will be answered."""
        self.has_write = self.has_write or effect.is_write
        self._pending[id] = _Noted(effect, kind_of(message))

    def record_answer(self, id: str, status: int) -> None:
        """Record the status of a write. Do nothing if the write was taken before, or sent under another policy."""
        if sent := self._pending.pop(id, None):
            self._effects.append(sent._replace(effect=msgspec.structs.replace(sent.effect, status=status)))

    def take(self) -> tuple[SideEffect, ...]:
        """Return the side effects since the last call. Each write is returned once, without a status if it has no answer yet."""
        noted, self._effects, self._pending = (*self._effects, *self._pending.values()), [], {}
        self._once.clear()
        self.has_write, self._refused = False, 0
        return tuple(self._settled(each) for each in noted)

    def _settled(self, noted: _Noted) -> SideEffect:
        """Return a side effect with the present knowledge of its kind."""
        learned = noted.effect.write is None and noted.kind and self._is_learned(noted.kind)
        return msgspec.structs.replace(noted.effect, write=False) if learned else noted.effect

    def connection_failed(self, host: str, port: int, reason: OSError | str) -> None:
        """Note the reason why a server could not be connected to: an error, or its name in CDP."""
        found = next((name for kind, name in _FAILURES if isinstance(reason, kind)), "ConnectionFailed")
        self._failures[f"{host_name(host)}:{port}"] = reason if isinstance(reason, str) else found

    def failure(self, url: str) -> str:
        """Return the reason of a failed connection to a URL's server, as CDP's Network.ErrorReason; empty if it is not known."""
        parts = urlsplit(origin(url))
        return self._failures.pop(f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}", "")
