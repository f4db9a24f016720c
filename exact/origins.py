"""Addresses that an environment may visit: pure functions over URLs.

One HTTP request of this process itself, not of a browser: to http addresses only, bounded in bytes and time.

Requests that a web page makes a browser send to a server on this machine.

Any page that a person visits can make their browser send requests to ports of this machine. Browsers say so in headers, which programs do
not send: the rules for them stand here, for all servers of this package.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import time
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    import email.message
    import urllib.request

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB = {"ws": "http", "wss": "https"}


_STOPS = re.compile("[\u3002\uff0e\uff61]")
"""Full stops of other scripts, which separate the labels of a name too."""
_IGNORED = re.compile("[\u00ad\u200b\u2060\ufeff\ufe00-\ufe0f]")
"""Characters that a name does not contain, since nobody sees them."""


def host_name(host: str) -> str:
    """Return a host name in the one form in which names are compared: lower case, no dots at its end, Unicode as punycode.

    Characters are mapped as browsers do (UTS 46, not transitional): `ß` stays a letter of its own.

    >>> host_name("Büro.Example."), host_name("straße.test")
    ('xn--bro-hoa.example', 'xn--strae-oqa.test')
    """
    name = host.strip().lower().rstrip(".")
    if name.isascii():
        return name
    name = unicodedata.normalize("NFKC", _IGNORED.sub("", _STOPS.sub(".", name))).lower()
    labels = (each if each.isascii() else f"xn--{each.encode('punycode').decode('ascii')}" for each in name.split("."))
    return ".".join(labels).rstrip(".")


def split_url(url: str) -> SplitResult:
    """Split a URL as urlsplit does. A malformed URL, such as `http://[`, is all path."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")


def origin(url: str) -> str:
    """Return `scheme://host[:port]` in lower case without a default port; empty for a URL without one.

    A WebSocket gets the origin of its page.

    >>> origin("HTTPS://Shop.Example:443/cart?id=3")
    'https://shop.example'
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return ""
    shown = f"[{host}]" if ":" in host else host_name(host)
    if not shown:
        return ""
    scheme = _WEB.get(parts.scheme, parts.scheme)
    return f"{scheme}://{shown}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


def is_web(url: str) -> bool:
    """Return whether a text is the address of a page: http or https, with a host and, if it has a port, a valid one."""
    return url.strip().partition(":")[0].lower() in ("http", "https") and bool(origin(url))


def origins(*urls: str) -> tuple[str, ...]:
    """Return the distinct origins of some URLs, in order. URLs without an origin are left out."""
    return tuple(dict.fromkeys(found for url in urls if (found := origin(url))))


def refusal(url: str, allowed: Iterable[str]) -> str:
    """Return the reason if an environment with the origins `allowed` may not request `url`. Empty if it may.

    `data:` and `about:` hold only data that the page already has. A `blob:` counts as the origin that made it. `file:`, `chrome:` and every
    other scheme is refused.
    """
    scheme, _, rest = url.strip().partition(":")
    scheme = scheme.lower()
    if scheme in ("data", "about"):
        return ""
    if scheme in ("blob", "filesystem"):
        return refusal(rest, allowed) if rest.lower() != "null" and not rest.lower().startswith("null/") else ""
    found = origin(url)
    if not found:
        return f"{scheme}: addresses are not allowed"
    if found in set(allowed):
        return ""
    return f"{found} is outside the task's origins"


def target_refusal(url: str, allowed: Iterable[str]) -> str:
    """Return the reason if an agent may not navigate to `url`. Empty if it may. Only web pages are valid targets."""
    if not origin(url):
        return f"{url.partition(':')[0].lower()}: addresses are not allowed"
    return refusal(url, allowed)


_CHUNK = 1 << 16
_NO_HEADERS: Mapping[str, str] = {}


def fetch(
    url: str, body: bytes | None = None, *, method: str = "", headers: Mapping[str, str] = _NO_HEADERS, seconds: float, most: int
) -> bytes:
    """Return the content at an address, of at most `most` bytes, within `seconds`.

    Redirects are followed to http addresses alone; headers are not sent along to another origin. `method`: POST with a body and GET
    without one, by default.

    Raises OSError if the answer is not such content: HTTPError for a status from 400 on; and http.client's HTTPException.
    """
    import urllib.request  # not above: most commands fetch nothing, and it takes a tenth of their start

    end = time.monotonic() + seconds
    if not is_web(url):
        raise OSError(f"{url[:200]!r} is no web address: write http://host/path")
    try:
        request = urllib.request.Request(url, body, dict(headers), method=method or None)
        with urllib.request.build_opener(_web_redirects()()).open(request, timeout=seconds) as response:
            return _read(response, end, most)
    except ValueError as error:  # a header, a name or an address that cannot be sent
        raise OSError(str(error)) from error


def _read(response: IO[bytes], end: float, most: int) -> bytes:
    data = bytearray()
    length = getattr(response, "length", None)
    while part := response.read1(_CHUNK):  # type: ignore[attr-defined] # http.client's, which returns the bytes that have arrived
        data += part
        if len(data) > most:
            raise OSError(f"the answer has more than {most:,} bytes")
        if time.monotonic() > end:
            raise TimeoutError("the answer did not end in time")
    if length is not None and len(data) < length:
        import http.client

        raise http.client.IncompleteRead(bytes(data), length - len(data))
    return bytes(data)


@functools.cache
def _web_redirects() -> type[urllib.request.HTTPRedirectHandler]:
    """Return the class that follows redirects to web addresses, and sends no headers along to another origin."""
    import urllib.request

    class WebRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(
            self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: email.message.Message, newurl: str
        ) -> urllib.request.Request | None:
            if not is_web(newurl):
                raise OSError(f"it redirects to {newurl[:200]!r}, which is no web address")
            found = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type] # typeshed wants HTTPMessage
            if found is not None and origin(newurl) != origin(req.full_url):
                found.headers.clear()
            return found

    return WebRedirects


_HOST = re.compile(r"\[(?P<address>[0-9a-f:.]+)\](?::\d*)?|(?P<name>[^\s:@/?#,\[\]\\]+)(?::\d*)?", re.IGNORECASE)


def host_of(header: str) -> str:
    """Return the host of a Host header or an origin's authority: lower case, without port and brackets. Empty unless it is one."""
    found = _HOST.fullmatch(header)
    return (found["address"] or found["name"]).lower().rstrip(".") if found else ""


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address, an IPv4 one in IPv6 notation included, or `localhost`."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def is_own_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header names the server that a Host header names."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def is_own_host(header: str, names: Collection[str] = (), *, local: bool = False) -> bool:
    """Return whether a Host header names this server, and no name that its owner lets lead here.

    names: those by which the server is known, in lower case. local: it was asked at a loopback address, so that other addresses and names
    without a dot, which are not public either, are foreign too.
    """
    host = host_of(header)
    if not host or host in names or is_loopback(host):
        return bool(host)
    return not local and ("." not in host or ":" in host or host.replace(".", "").isdecimal())


_REFUSED = (
    b"requests of other origins, and under names that lead here, are refused: ask for this server by its address, or use --allow-host"
)


class SameOrigin:
    """ASGI middleware that refuses requests of web pages of other servers, and all requests under foreign names.

    A page may let its own name lead to this machine, so that it counts as the same origin. A browser may leave out `Origin` and
    `Sec-Fetch-Site` of a GET at an http address, so that the name alone tells.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], names: Collection[str] = ()) -> None:
        """Wrap an application. names: those by which the server is known, besides its addresses."""
        self._app, self._names = app, {each.lower() for each in names}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope.get("headers", ())]
        headers, host = dict(pairs), ",".join(value for name, value in pairs if name == "host")
        foreign = "origin" in headers and not is_own_origin(headers["origin"], host)
        foreign = foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")
        foreign = foreign or not is_own_host(host, self._names, local=is_loopback((scope.get("server") or ("",))[0]))
        if scope["type"] in ("http", "websocket") and foreign:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008})
                return
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": _REFUSED})
            return
        await self._app(scope, receive, send)
