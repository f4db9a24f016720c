"""Requests that a web page makes a browser send to a server on this machine.

Any page that a person visits can make their browser send requests to ports of this machine. Browsers say so in headers, which programs do
not send: the rules for them stand here, for all servers of this package.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit


def host_of(header: str) -> str:
    """Return the host of a Host header or an origin's authority: lower case, without port and brackets. Empty where there is none."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header names the server that a Host header names."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def is_from_browser(headers: Mapping[str, str]) -> bool:
    """Return whether a browser made a request: it sends its page's origin with all that changes something. Names are in lower case."""
    return "origin" in headers or "sec-fetch-site" in headers


_REFUSED = b"requests of other origins, and under names that lead here, are refused: ask for this server by its address"


class SameOrigin:
    """ASGI middleware that refuses requests of web pages of other servers.

    A page may let its own name lead to this machine, so that it counts as the same origin. Browsers are therefore served by address only.
    A browser may leave out both headers of a GET at an http address. So at a loopback address every request has to name this machine.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], name: str = "") -> None:
        """Wrap an application. name: the one by which the server was told to listen, if any."""
        self._app, self._name = app, name.lower()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        host = headers.get("host", "")
        foreign = "origin" in headers and not is_own_origin(headers["origin"], host)
        foreign = foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")
        local = is_loopback((scope.get("server") or ("",))[0])
        foreign = foreign or (is_from_browser(headers) and not _is_address(host))
        foreign = foreign or (local and not _is_address(host) and host_of(host) != self._name)
        if scope["type"] in ("http", "websocket") and foreign:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008})
                return
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": _REFUSED})
            return
        await self._app(scope, receive, send)


def _is_address(header: str) -> bool:
    """Return whether a Host header names an address, or this machine, and so no name that leads here by DNS."""
    host = host_of(header)
    try:
        return host == "localhost" or bool(ipaddress.ip_address(host))
    except ValueError:
        return False
