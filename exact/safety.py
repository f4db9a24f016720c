"""Addresses that an environment may visit: pure functions over URLs."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB = {"ws": "http", "wss": "https"}


def host_name(host: str) -> str:
    """Return a host name in the one form in which names are compared: lower case, no dots at its end, Unicode as punycode.

    >>> host_name("Büro.Example.")
    'xn--bro-hoa.example'
    """
    name = host.strip().lower().rstrip(".")
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii").rstrip(".")
    except UnicodeError:
        return name


def split_url(url: str) -> SplitResult:
    """Split a URL as urlsplit does. What is none, such as `http://[`, is all path."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")


def origin(url: str) -> str:
    """Return `scheme://host[:port]` in lower case without a default port; a WebSocket gets the origin of its page. Empty if a URL has none.

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
    """Return why an environment with the origins `allowed` may not request `url`. Empty if it may.

    `data:` and `about:` hold only what the page already has. A `blob:` counts as the origin that made it. `file:`, `chrome:` and every
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
    """Return why an agent may not navigate to `url`. Empty if it may. Only web pages are valid targets."""
    if not origin(url):
        return f"{url.partition(':')[0].lower()}: addresses are not allowed"
    return refusal(url, allowed)
