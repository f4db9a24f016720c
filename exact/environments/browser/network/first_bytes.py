"""The first bytes of a connection: they tell requests and TLS from everything else that a browser could say to a server.

A destination that may be read from may not be written to: raw TURN and WebSockets of a page write without a request that CDP's Fetch sees.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from enum import Enum

MOST = 1 << 18
"""Most bytes of a request's head, as of Chromium's own limit."""
_METHOD = re.compile(rb"[A-Za-z][A-Za-z-]{0,31} ")
_HANDSHAKE, _HEAD = 0x16, 5
"""Type of a TLS record that begins a connection, and bytes before a record's content (RFC 8446, 5.1)."""


class Kind(Enum):
    """What a connection is used for."""

    HTTP = "a request"
    TLS = "TLS"
    SOCKET = "a WebSocket"
    SECURE_SOCKET = "a WebSocket over TLS"
    OTHER = "neither a request nor TLS"


async def read_first(read: Callable[[], Awaitable[bytes]]) -> bytes:
    """Read as many bytes of a connection as tell its kind: a request's head, or the first record of TLS. Empty where none come."""
    data = b""
    while part := await read():
        data += part
        if is_whole(data) or len(data) > MOST:
            break
    return data


def is_whole(data: bytes) -> bool:
    """Return whether the first bytes tell the kind of their connection."""
    if data[:1] == bytes((_HANDSHAKE,)):
        return len(data) >= _HEAD and len(data) >= _HEAD + int.from_bytes(data[3:_HEAD], "big")
    return b"\r\n\r\n" in data or not data[:1].isalpha()


def kind_of(first: bytes) -> Kind:
    """Return what a connection is used for, by the first bytes that Chromium sends on it.

    A WebSocket asks for an upgrade or, in TLS, offers HTTP/1.1 alone, where for anything else Chromium offers HTTP/2 first.
    """
    if first[:1] == bytes((_HANDSHAKE,)):
        return Kind.TLS if b"\x02h2" in first else Kind.SECURE_SOCKET
    if not _METHOD.match(first) or b"\r\n\r\n" not in first:
        return Kind.OTHER
    return Kind.SOCKET if b"\r\nupgrade: websocket" in first.partition(b"\r\n\r\n")[0].lower() else Kind.HTTP
