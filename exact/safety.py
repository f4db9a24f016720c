"""Which addresses an environment may go to: pure functions over URLs."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB = {"ws": "http", "wss": "https"}


def origin(url: str) -> str:
    """`scheme://host[:port]` in lower case without a default port; a WebSocket's is that of its page. Empty where a URL has none.

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
    shown = f"[{host}]" if ":" in host else host.rstrip(".")
    scheme = _WEB.get(parts.scheme, parts.scheme)
    return f"{scheme}://{shown}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


def is_web(url: str) -> bool:
    """Whether a text is the address of a page: http or https, with a host, and with a port that can be if it has one."""
    return url.strip().partition(":")[0].lower() in ("http", "https") and bool(origin(url))


def origins(*urls: str) -> tuple[str, ...]:
    """The distinct origins of some URLs, in order; those that have none are left out."""
    return tuple(dict.fromkeys(found for url in urls if (found := origin(url))))


def refusal(url: str, allowed: Iterable[str]) -> str:
    """Why an environment whose origins are `allowed` may not request `url`; empty if it may.

    `data:` and `about:` hold nothing but what the page already has. A `blob:` is judged by the origin that made it. `file:`, `chrome:` and
    every other scheme is refused.
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
    """Why an agent may not go to `url` by itself; empty if it may. Only web pages are places to go to."""
    if not origin(url):
        return f"{url.partition(':')[0].lower()}: addresses are not allowed"
    return refusal(url, allowed)
