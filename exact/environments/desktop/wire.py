"""D-Bus messages as bytes: method calls out, replies in. jeepney connects; its general codec is too slow for thousands of calls.

Little endian, as the D-Bus specification has it: https://dbus.freedesktop.org/doc/dbus-specification.html. No file descriptors.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
_PATH, _INTERFACE, _MEMBER, _REPLY, _DESTINATION, _SIGNATURE = 1, 2, 3, 5, 6, 8
_TYPES = {_REPLY: "u", _SIGNATURE: "g"}
_FIXED = struct.Struct("<cBBBIII")
"""Byte order, type, flags, version, bytes of the body, serial, bytes of the header's fields."""
_LARGEST = 1 << 27
"""Maximum bytes of a message, from the specification."""
_SIZES = {"y": 1, "b": 4, "n": 2, "q": 2, "i": 4, "u": 4, "x": 8, "t": 8, "d": 8}
_CODES = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d"}
_U32 = struct.Struct("<I")

Parser = Callable[[bytes, int], tuple[Any, int]]


class WireMessage(NamedTuple):
    """Message that arrived."""

    type: int
    reply_serial: int
    """Serial of the call that it answers; 0 for none."""
    body: tuple[Any, ...]


def method_call(
    serial: int, destination: str, path: str, interface: str, member: str, signature: str = "", arguments: tuple[Any, ...] = ()
) -> bytes:
    """Return a method call."""
    body = _body(signature, arguments) if signature else b""
    fields = _call_fields(destination, interface, member, signature) + _field(_PATH, "o", path)
    start = _FIXED.pack(b"l", CALL, 0, 1, len(body), serial, len(fields)) + fields
    return start + bytes(-len(start) % 8) + body


@functools.lru_cache(4096)
def _call_fields(destination: str, interface: str, member: str, signature: str) -> bytes:
    """Return the header fields of a call but the path, each with the padding before the next one."""
    named = ((_DESTINATION, destination), (_INTERFACE, interface), (_MEMBER, member))
    found = b"".join(_padded(_field(code, "s", text)) for code, text in named)
    return found + (_padded(_field(_SIGNATURE, "g", signature)) if signature else b"")


def _field(code: int, kind: str, text: str) -> bytes:
    data = text.encode()
    size = bytes([len(data)]) if kind == "g" else _U32.pack(len(data))
    return bytes([code, 1, ord(kind), 0]) + size + data + b"\0"


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _body(signature: str, arguments: tuple[Any, ...]) -> bytes:
    """Return arguments of the basic types as a body."""
    found = bytearray()
    for kind, value in zip(signature, arguments, strict=True):
        if kind in "so":
            data = value.encode()
            found += bytes(-len(found) % 4) + _U32.pack(len(data)) + data + b"\0"
        else:
            found += bytes(-len(found) % _SIZES[kind]) + struct.pack(f"<{_CODES[kind]}", value)
    return bytes(found)


def message_size(data: bytes | bytearray, at: int) -> int:
    """Return the size of the message that begins there; 0 if too little of it has arrived. Raises ValueError."""
    if len(data) - at < _FIXED.size:
        return 0
    order, _, _, _, body, _, fields = _FIXED.unpack_from(data, at)
    size = _FIXED.size + fields + (-fields % 8) + body
    if order != b"l" or size > _LARGEST:
        raise ValueError("the bus sent a message in another byte order, or of more than 128 MiB")
    return int(size)


def read_message(data: bytes) -> WireMessage:
    """Return a whole message. The body of one that is neither an answer nor an error is left out. Raises ValueError."""
    try:
        return _read(data)
    except (struct.error, LookupError, RecursionError) as error:
        raise ValueError(f"the bus sent a message that cannot be read ({error})") from error


def _read(data: bytes) -> WireMessage:
    _, kind, _, _, _, _, fields = _FIXED.unpack_from(data, 0)
    end = _FIXED.size + fields
    if kind not in (RETURN, ERROR):
        return WireMessage(kind, 0, ())
    at, signature, reply = _FIXED.size, "", 0
    while at < end:
        at += -at % 8
        code, type = data[at], chr(data[at + 2])
        if type != _TYPES.get(code, type):
            raise ValueError("the bus sent a message whose head has a field of another type")
        value, at = parser(type)(data, at + 4)
        if code == _REPLY:
            reply = value
        elif code == _SIGNATURE:
            signature = value
    if kind == ERROR or not signature:
        return WireMessage(kind, reply, ())
    return WireMessage(kind, reply, _tuple(signature)(data, end + -end % 8)[0])


@functools.lru_cache(256)
def parser(signature: str) -> Parser:
    """Return the reader of one complete type: it takes bytes and an offset, and returns the value and the offset behind it."""
    kind = signature[0]
    if kind in "so":
        return _text
    if kind == "g":
        return _signature
    if kind == "v":
        return _variant
    if kind == "a":
        return _dictionary(signature[2:-1]) if signature[1] == "{" else _array(signature[1:])
    if kind == "(":
        return _structure(signature[1:-1])
    return _number(kind)


def _text(data: bytes, at: int) -> tuple[str, int]:
    at += -at % 4
    end = at + 4 + _U32.unpack_from(data, at)[0]
    return data[at + 4 : end].decode("utf-8", "replace"), end + 1


def _signature(data: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + data[at]
    return data[at + 1 : end].decode("ascii"), end + 1


def _variant(data: bytes, at: int) -> tuple[tuple[str, Any], int]:
    signature, at = _signature(data, at)
    value, at = parser(signature)(data, at)
    return (signature, value), at


def _number(kind: str) -> Parser:
    size, unpack = _SIZES[kind], struct.Struct(f"<{_CODES[kind]}").unpack_from

    def read(data: bytes, at: int) -> tuple[Any, int]:
        at += -at % size
        value = unpack(data, at)[0]
        return (bool(value) if kind == "b" else value), at + size

    return read


def _array(inner: str) -> Parser:
    one, align = parser(inner), _alignment(inner)
    code = _CODES.get(inner, "") if inner in "nqiuxtd" else ""

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        at += -at % 4
        size = _U32.unpack_from(data, at)[0]
        at += 4
        at += -at % align
        end, found = at + size, []
        if code:
            return list(struct.unpack_from(f"<{size // align}{code}", data, at)), end
        while at < end:
            value, after = one(data, at)
            if after <= at:
                raise ValueError("the bus sent an array whose items take no bytes")
            at = after
            found.append(value)
        return found, end

    return read


def _dictionary(inner: str) -> Parser:
    pairs = _array(f"({inner})")
    return lambda data, at: (lambda found: (dict(found[0]), found[1]))(pairs(data, at))


def _structure(inner: str) -> Parser:
    parts = _tuple(inner)
    return lambda data, at: parts(data, at + -at % 8)


@functools.lru_cache(256)
def _tuple(signature: str) -> Parser:
    parts = [parser(each) for each in complete_types(signature)]

    def read(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        found = []
        for part in parts:
            value, at = part(data, at)
            found.append(value)
        return tuple(found), at

    return read


def complete_types(signature: str) -> list[str]:
    """Return the complete types that a signature consists of."""
    found, start, depth = [], 0, 0
    for at, char in enumerate(signature):
        depth += (char in "({") - (char in ")}")
        if depth == 0 and char != "a":
            found.append(signature[start : at + 1])
            start = at + 1
    return found


def _alignment(kind: str) -> int:
    return 8 if kind[0] in "({" else 4 if kind[0] in "sao" else 1 if kind[0] in "gv" else _SIZES[kind[0]]
