"""Requests that pages make in the background, learned when a page did not become quiet because of them."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

MOST_KEYS = 1024
"""Kinds of requests that are remembered. The one that was learned first is forgotten first."""
MOST_AT_ONCE = 1000
"""Requests of a kind that may be in flight together if a page does not wait for the answer to one before it begins another."""
_LENGTH = 2000
"""Characters of an address and of a body that distinguish kinds."""
_NUMBERS = re.compile(r"\d{5,}")
"""Times, random numbers and session numbers. Shorter ones may be pages or items of a list that is being loaded."""
_CURSORS = frozenset(
    {"_", "t", "ts", "time", "timestamp", "rnd", "rand", "random", "nocache", "cb", "since", "cursor", "seq", "last", "lasteventid", "sid"}
)
"""Names of parameters that differ between two requests of a page that repeats a request."""


class _Known(NamedTuple):
    at_once: int
    """Maximum number of requests of the kind that the page makes together."""
    seconds: float
    """Seconds for which a page was waited for in vain."""
    repeated: bool
    """Flag that the page began another one when one had ended."""


class BackgroundRequests:
    """Kinds of requests that a page makes without end, or that are not answered in time. They belong to no action.

    Environments that are opened together share them, so that only the first one waits for each kind in vain.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def learn(self, key: str, at_once: int, seconds: float, *, repeated: bool) -> None:
        """Remember a kind of request for which a page was waited for in vain for `seconds`.

        `at_once`: how many of them had no answer. `repeated`: whether the page begins another one when one has ended.
        """
        before = self._known.get(key, _Known(1, 0.0, False))
        limit = max(at_once, before.at_once) if at_once <= 1 else MOST_AT_ONCE
        self._known[key] = _Known(limit, max(seconds, before.seconds), repeated or before.repeated)
        if len(self._known) > MOST_KEYS:
            self._known.popitem(last=False)

    def ended(self, key: str, seconds: float) -> None:
        """Forget a kind of request of which one was answered in time, after `seconds`, unless pages repeat it."""
        if (known := self._known.get(key)) and not known.repeated and seconds < known.seconds:
            del self._known[key]

    def at_once(self, key: str) -> int:
        """Return how many requests of a kind may be in flight without being waited for. 0: the kind is not known."""
        known = self._known.get(key)
        return known.at_once if known else 0


def request_key(event: dict[str, Any]) -> str:
    """Return the kind of a request, from CDP's Network.requestWillBeSent: type, method, address and body, without varying parts."""
    request = event["request"]
    address, _, query = request["url"][:_LENGTH].partition("?")
    asked = [(name, "" if name.lower() in _CURSORS else value) for name, value in parse_qsl(query, keep_blank_values=True)]
    said = f"{address} {asked} {request.get('postData', '')[:_LENGTH]}"
    digest = hashlib.sha256(_NUMBERS.sub("#", said).encode(errors="replace")).hexdigest()
    return f"{event.get('type', '')} {request['method']} {digest}"
