"""The DevTools address of a browser that another user or program runs. Its answers are not trusted."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from exact.errors import EnvironmentFailure
from exact.origins import host_name, split_url
from exact.text import inert

_LONGEST = 2**16
"""Maximum bytes of the answer of `/json/version`."""
_LINE = 300
"""Maximum characters of a text of the browser in an error."""


async def websocket_of(address: str, *, seconds: float) -> str:
    """Return the WebSocket of the DevTools at an address: the address itself, or the one that `/json/version` there names.

    Raises EnvironmentFailure if nothing or no browser answers in time, and if the answer leads to another host: a redirect is not
    followed.
    """
    if address.startswith(("ws://", "wss://")):
        return address
    import msgspec

    connection = _connection(address, seconds)
    try:
        async with asyncio.timeout(seconds):
            status, body = await asyncio.to_thread(_get, connection, _version(address))
    except TimeoutError as error:
        raise no_browser(address, f"no answer within {seconds:g} s") from error
    except (OSError, HTTPException, ValueError) as error:
        raise no_browser(address, str(error) or type(error).__name__) from error
    finally:
        _close(connection)
    if status != 200 or len(body) > _LONGEST:
        what = f"gives status {status}" if status != 200 else f"has more than {_LONGEST} bytes"
        raise no_browser(address, f"/json/version {what}")
    try:
        found = msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        raise no_browser(address, "/json/version gives no JSON object") from error
    return _same_host(address, found.get("webSocketDebuggerUrl"))


def _connection(address: str, seconds: float) -> HTTPConnection:
    parts = split_url(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        return kind(parts.hostname or "", parts.port, timeout=seconds)
    except (ValueError, HTTPException) as error:
        raise no_browser(address, "this is no address of DevTools") from error


def _get(connection: HTTPConnection, path: str) -> tuple[int, bytes]:
    """Return the status and the beginning of the body of a path."""
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read(_LONGEST + 1)


def _close(connection: HTTPConnection) -> None:
    """Close a connection. A thread that still reads from it ends."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()


def no_browser(address: str, reason: str) -> EnvironmentFailure:
    """Return the failure of an address at which no browser answers. The reason may be the browser's own text."""
    said = inert(reason.strip().partition("\n")[0].replace(address, shown(address)), _LINE)
    return EnvironmentFailure(
        f"no browser answers at browser.cdp_url {shown(address)}: {said}: start one with --remote-debugging-port=9222"
    )


def shown(address: str) -> str:
    """Return an address without the path and query, which may hold a token of a hosted browser."""
    parts = split_url(address)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # no number, or too large a one
        port = ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else "(not an address)"


def _version(address: str) -> str:
    """Return the path at which a browser at an address describes itself."""
    parts = split_url(address)
    return f"{parts.path.rstrip('/')}/json/version{f'?{parts.query}' if parts.query else ''}"


def _same_host(address: str, found: object) -> str:
    """Return the WebSocket that DevTools named, if it belongs to the requested host."""
    parts = split_url(found) if isinstance(found, str) else None
    if parts is None or parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise no_browser(address, "/json/version names no WebSocket")
    if host_name(parts.hostname) != host_name(split_url(address).hostname or ""):
        raise no_browser(address, f"it leads to another host, {shown(parts.geturl())}; if you trust that, give its address")
    return parts.geturl()
