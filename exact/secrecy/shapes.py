"""Secrets by their shape: private keys, tokens, keys of services, basic credentials."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

from exact.secrecy.views import readings, views


class Shaped(NamedTuple):
    """Something that has the shape of a secret."""

    start: int
    what: str


_SHAPES = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
        ("bearer token", r"(?i:\bbearer)\s+(?=[A-Za-z0-9._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}=*"),
        ("AWS access key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
        ("AWS secret key", r"(?i:aws.{0,20}?(?:secret|key).{0,20}?[=:]\s*[\"']?)(?=[A-Za-z0-9/+]*\d)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"),
        ("key of a service", r"\b(?:sk|rk|pk)[-_](?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{20,}"),
        ("key of a service", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{35})"),
        ("signed token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
        ("basic credentials", r"(?i:\bbasic)\s+(?P<pair>[A-Za-z0-9+/]{8,}={0,2})"),
        ("basic credentials", r"\b[a-z][a-z0-9+.-]{1,12}://(?P<user>[^\s/:@\"'<>\\]{1,64}):(?P<word>[^\s/@\"'<>\\]{1,128})@[\w.-]"),
    )
)
_HIDDEN = re.compile(r"(?i)\*+|x+|\.+|(?:pass(?:word)?|secret|scrubbed|redacted|removed|\$\{?\w+\}?)")
"""Words that stand for a password."""


def shapes(text: str) -> list[Shaped]:
    """Return the parts of a text that have the shape of a secret, also below escapes, in order."""
    if not any(True for reading in readings(text) for _ in _found(reading)):
        return []
    places = {(view.place(at, at + 1)[0], what) for view in views(text) for at, what in _found(view.text)}
    return [Shaped(*each) for each in sorted(places)]


def _found(text: str) -> Iterator[tuple[int, str]]:
    for what, pattern in _SHAPES:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            if groups.get("pair") and not _is_pair(groups["pair"]):
                continue
            if groups.get("word") and _HIDDEN.fullmatch(groups["word"]):
                continue
            yield match.start(), what


def _is_pair(encoded: str) -> bool:
    """Return whether base64 says `user:password`."""
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except ValueError:
        return False
    user, colon, word = text.partition(":")
    return bool(colon and user and word) and text.isprintable() and not _HIDDEN.fullmatch(word)
