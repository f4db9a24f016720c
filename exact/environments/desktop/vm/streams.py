"""Connections to ports of a desktop's loopback, made for a host that has no network into the sandbox. `tunnel.py` is the host's side."""

from __future__ import annotations

import base64
import contextlib
import selectors
import socket
from typing import Any

_MOST = 4 << 20
"""Most bytes of one connection in one exchange."""
_CONNECT_SECONDS = 5.0


class Streams:
    """Open connections, by the ids that the host gave them."""

    def __init__(self) -> None:
        self._open: dict[str, socket.socket] = {}
        self._waiting: dict[str, bytearray] = {}
        """Bytes that a connection has not taken yet."""

    def exchange(self, opened: dict[str, int], sent: dict[str, str], closed: list[str], seconds: float) -> dict[str, Any]:
        """Open, feed and close connections, then wait until one has something to say, at most `seconds`.

        `opened`: ports by id. `sent`: bytes in base64 by id. Return `received`, bytes by id, and `ended`, the ids of those that ended.
        """
        ended = [id for id, port in opened.items() if not self._connect(id, port)]
        for id, data in sent.items():
            if id in self._open:
                self._waiting[id] += base64.b64decode(data)
        for id in closed:
            self._close(id)
        received: dict[str, bytes] = {}
        with selectors.DefaultSelector() as selector:
            for id, stream in self._open.items():
                selector.register(stream, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting[id] else 0), id)
            for key, events in selector.select(seconds) if self._open else ():
                if not self._serve(key.data, events, received):
                    ended.append(key.data)
                    self._close(key.data)
        return {"received": received, "ended": ended}

    def close(self) -> None:
        """Close all connections."""
        for id in list(self._open):
            self._close(id)

    def _connect(self, id: str, port: int) -> bool:
        try:
            stream = socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS)
        except OSError:
            return False
        stream.setblocking(False)
        self._open[id], self._waiting[id] = stream, bytearray()
        return True

    def _serve(self, id: str, events: int, received: dict[str, bytes]) -> bool:
        """Write what waits and read what is there. Return whether the connection goes on."""
        stream, waiting = self._open[id], self._waiting[id]
        try:
            if events & selectors.EVENT_WRITE:
                del waiting[: stream.send(waiting)]
            if not events & selectors.EVENT_READ:
                return True
            parts = bytearray()
            with contextlib.suppress(BlockingIOError):
                while len(parts) < _MOST:
                    part = stream.recv(1 << 18)
                    parts += part
                    if not part:
                        received[id] = bytes(parts)
                        return False
            received[id] = bytes(parts)
        except OSError:
            return False
        return True

    def _close(self, id: str) -> None:
        if stream := self._open.pop(id, None):
            stream.close()
            del self._waiting[id]
