"""Access control of the live view: known hosts, requests from its own pages, and a token where it has one.

A page that a user visits elsewhere can make a browser send requests to this machine. So a request must name a known host (else a foreign
name could resolve to this machine), and must come from a page of the live view itself.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping

from exact.cross_site import host_of, is_loopback, is_own_origin

COOKIE = "exact_view"


def refusal(method: str, headers: Mapping[str, str], hosts: Collection[str], *, page: bool) -> str:
    """Return why a request is refused; empty where it is accepted. Header names are in lower case.

    hosts: names of the view besides loopback. page: whether the request is for a page, to which a link on another site may lead.
    """
    host = headers.get("host", "")
    name = host_of(host)
    if not name or not (is_loopback(name) or name in hosts):
        return f"this view is not known as {name or 'nothing'!r}: start it with --allow-host {name}"
    origin = headers.get("origin")
    if origin is not None and not is_own_origin(origin, host):
        return "a page of another site may not ask for this"
    if method not in ("GET", "HEAD") and origin is None:
        return "a command must come from a page of this view"
    site = headers.get("sec-fetch-site", "none")
    leads_here = page and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if site in ("cross-site", "same-site") and not leads_here:
        return "a page of another site may not ask for this"
    return ""


def is_let_in(token: str, given: str | None) -> bool:
    """Return whether a given token is the right one. Every request passes where no token is set."""
    return not token or hmac.compare_digest(token.encode(), (given or "").encode())
