"""Takes credentials out of traffic that is to be written down. Pure functions over text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

GONE = "scrubbed"
"""What stands in their place."""
_NAME = (
    r"(?:pass(?:word|wd|code|phrase)?|pwd|secret|token|csrf|xsrf|otp|session_?id|\bsid\b|api_?-?key|authori[sz]ation|credential"
    r"|nonce|\bauth\b)"
)
_FORM = re.compile(rf"((?:^|[&?;])[^=&?;]*{_NAME}[^=&]*=)[^&#;]+", re.IGNORECASE)
_PART = re.compile(rf'(name="[^"]*{_NAME}[^"]*"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n).*?(?=\r\n--)', re.IGNORECASE | re.DOTALL)
_JSON = re.compile(rf'("[^"\\]*{_NAME}[^"\\]*"\s*:\s*")(?:[^"\\]|\\.)*(?=")', re.IGNORECASE)
_TAG = re.compile(r"<(?:input|meta)\b[^>]*>", re.IGNORECASE)
_NAMED = re.compile(rf"(?:name|id|type)\s*=\s*[\"']?[^\"'>\s]*{_NAME}", re.IGNORECASE)
_VALUE = re.compile(r"""(\b(?:value|content)\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)
_SIGNED = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")
"""JSON web tokens, whatever they are called."""
_COOKIE = re.compile(r"^([^=;]+=)[^;]*")
_DROPPED = ("authorization", "proxy-authorization", "cookie", "x-auth-token", "x-csrf-token", "x-xsrf-token", "x-api-key")
_TEXT = ("text/", "json", "xml", "javascript", "x-www-form-urlencoded")


def nothing(text: str) -> str:
    """Hides nothing."""
    return text


def headers(given: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Without credentials; cookies keep name and attributes."""
    for name, value in given:
        if name.lower() == "set-cookie":
            yield name, "\n".join(_COOKIE.sub(rf"\1{GONE}", line) for line in value.split("\n"))
        elif name.lower() == "location":
            yield name, address(value)
        elif name.lower() not in _DROPPED:
            yield name, value


def address(url: str) -> str:
    """A URL without the values of such parameters, and without user and password."""
    return _SIGNED.sub(GONE, _FORM.sub(rf"\1{GONE}", re.sub(r"^(\w+://)[^/@]*@", r"\1", url)))


def form(body: str) -> str:
    """What a page sent: a form, in parts or in one line, or JSON."""
    if "\r\n\r\n" in body:
        return _PART.sub(rf"\1{GONE}", body)
    return _SIGNED.sub(GONE, _JSON.sub(rf"\1{GONE}", _FORM.sub(rf"\1{GONE}", body)))


def body(data: bytes, kind: str, veil: Callable[[str], str] = nothing) -> bytes:
    """What a server answered, by its content type; what is no text stays."""
    if not any(each in kind.lower() for each in _TEXT):
        return data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    text = _TAG.sub(lambda tag: _VALUE.sub(rf'\1"{GONE}"', tag[0]) if _NAMED.search(tag[0]) else tag[0], text)
    return veil(_SIGNED.sub(GONE, _JSON.sub(rf"\1{GONE}", text))).encode()
