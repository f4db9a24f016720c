"""Entries of a HAR file (HTTP Archive 1.2) from exchanges of a browser, without credentials.

A credential is recognized by its name, in addresses, headers, forms and JSON. The text of any other field stays as it was sent: evaluators
compare it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec

from exact.environments.browser.network import scrub
from exact.origins import split_url

Headers = tuple[tuple[str, str], ...]
NO_ANSWER = -1
"""Status of a request that got no answer, as Playwright writes it."""
_ADDRESSES = ("referer", "origin", "location")
_FORM_KEY = re.compile(r"(/key/)[0-9a-f]{32,}")
"""Matches the secret that an administration of Magento puts in each path."""


class HarExchange(msgspec.Struct, kw_only=True):
    """One request, and what is known of its answer."""

    method: str
    url: str
    started: float
    """Seconds since 1970."""
    headers: Headers = ()
    sent: bytes | None = None
    status: int = NO_ANSWER
    status_text: str = ""
    answer_headers: Headers = ()
    body: bytes | None = None
    """Body of the answer, where it was read."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a HAR keeps beyond addresses, forms and headers, because an evaluator reads it."""

    cookies: Callable[[str], bool] = lambda name: False
    """Returns whether the value of a cookie of that name is kept, of those that a site sets."""
    sent_cookies: Callable[[str], bool] | None = None
    """Returns whether the value of a cookie of that name is kept, of those that the browser sends. None: no header `Cookie` is kept."""
    json: bool = False
    """Whether the JSON of answers is kept."""


def har(entries: Iterable[dict[str, Any]], version: str) -> dict[str, Any]:
    """Return a HAR file of these entries as plain data. `version`: that of this package."""
    return {"log": {"version": "1.2", "creator": {"name": "exact", "version": version}, "entries": list(entries)}}


def entry(exchange: HarExchange, kept: Kept) -> dict[str, Any]:
    """Return the HAR entry of an exchange, without credentials."""
    url, answered = _address(exchange.url), {name.lower(): value for name, value in exchange.answer_headers}
    request: dict[str, Any] = {
        "method": exchange.method, "url": url, "httpVersion": "HTTP/1.1", "cookies": [],
        "headers": [*_headers(exchange.headers), *_sent_cookies(exchange.headers, kept)],
        "queryString": [{"name": name, "value": value} for name, value in parse_qsl(split_url(url).query, keep_blank_values=True)],
        "headersSize": -1, "bodySize": len(exchange.sent or b""),
    }  # fmt: skip
    if exchange.sent is not None:
        kind = next((value for name, value in exchange.headers if name.lower() == "content-type"), "")
        request["postData"] = {"mimeType": kind, "text": body(exchange.sent.decode("utf-8", "replace"), kind)}
    content: dict[str, Any] = {"size": len(exchange.body or b""), "mimeType": answered.get("content-type", "")}
    if kept.json and exchange.body is not None:
        content["text"] = body(exchange.body.decode("utf-8", "replace"), content["mimeType"])
    return {
        "startedDateTime": datetime.fromtimestamp(exchange.started, UTC).isoformat(), "time": -1, "request": request,
        "response": {
            "status": exchange.status, "statusText": exchange.status_text, "httpVersion": "HTTP/1.1",
            "cookies": list(_set_cookies(exchange.answer_headers, kept)), "headers": _headers(exchange.answer_headers),
            "content": content, "redirectURL": _address(answered.get("location", "")), "headersSize": -1, "bodySize": -1,
        },
        "cache": {}, "timings": {"send": -1, "wait": -1, "receive": -1},
    }  # fmt: skip


def body(text: str, kind: str) -> str:
    """Return the body of a request or an answer without the values of credentials, by its content type: a form, JSON, or any other."""
    if "urlencoded" in kind:
        return "&".join(map(_pair, text.split("&")))
    if "json" in kind:
        try:
            return json.dumps(_value(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return text
    return scrub.form(text) if "multipart/form-data" in kind else text


def _pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    return f"{name}={quote(scrub.SCRUBBED)}" if sign and value and scrub.names_credential(name) else pair


def _value(value: Any) -> Any:
    """Return JSON in which each value with a credential's name is replaced."""
    if isinstance(value, dict):
        return {name: scrub.SCRUBBED if each and scrub.names_credential(name) else _value(each) for name, each in value.items()}
    return [_value(each) for each in value] if isinstance(value, list) else value


def _address(url: str) -> str:
    return _FORM_KEY.sub(rf"\1{scrub.SCRUBBED}", scrub.address(url))


def _headers(headers: Headers) -> list[dict[str, str]]:
    return [
        {"name": name, "value": _address(value) if name.lower() in _ADDRESSES else value}
        for name, value in scrub.headers(headers)
        if not name.startswith(":")
    ]


def _sent_cookies(headers: Headers, kept: Kept) -> list[dict[str, str]]:
    """Return the header `Cookie` with the values that are kept."""
    given = next((value for name, value in headers if name.lower() == "cookie"), "")
    if kept.sent_cookies is None or not given:
        return []
    pairs = (pair.strip().partition("=") for pair in given.split(";"))
    shown = (f"{name}={value if kept.sent_cookies(name) else scrub.SCRUBBED}" for name, _, value in pairs)
    return [{"name": "Cookie", "value": "; ".join(shown)}]


def _set_cookies(headers: Headers, kept: Kept) -> Iterable[dict[str, str]]:
    """Yield the cookies that an answer sets, with the values that are kept."""
    for line in (line for name, value in headers if name.lower() == "set-cookie" for line in value.split("\n")):
        name, _, value = line.partition(";")[0].strip().partition("=")
        yield {"name": name, "value": value if kept.cookies(name) else scrub.SCRUBBED}
