"""The forms in which one secret value may be written."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus, unquote

from exact.secrecy.views import squeezed

SHORTEST = 3
"""Least number of characters of a value that is looked for; shorter ones occur everywhere."""
_SURE = 6
"""Least number of characters of a value that is also looked for in other cases, in other encodings and in parts."""
_JOINED = 4
"""Least number of letters and digits of a value that is looked for where they stand apart."""
_FRAGMENT = 8
"""Least number of characters of a part of base64 that is looked for."""


def placeholder(name: str) -> str:
    """Return the text that stands for a secret."""
    return f"<secret:{name}>"


@dataclass(frozen=True)
class Secret:
    """A value that nothing stored may contain."""

    name: str
    """Name in the placeholder that stands for it."""
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    @property
    def is_sure(self) -> bool:
        """Return whether the value is long enough to be looked for in every form."""
        return len(self.value) >= _SURE

    @cached_property
    def exact(self) -> frozenset[str]:
        """The forms that are looked for in the same case: encodings in addresses, forms, HTML and JSON, and parts of base64."""
        if len(self.value) < SHORTEST:
            return frozenset()
        value = self.value
        in_addresses = {quote(value, safe=""), quote(value, safe="!'()*"), unquote(value)}  # the second: encodeURIComponent
        in_forms = {quote_plus(value), quote_plus(value, safe="*").replace("~", "%7E")}  # the second: a browser's form
        in_html = {html.escape(value), html.escape(value, quote=False), html.escape(value, quote=False).replace('"', "&quot;")}
        written = {value, *in_addresses, *in_forms, *in_html}
        found = written | {json.dumps(each, ensure_ascii=ascii)[1:-1] for each in written for ascii in (True, False)}
        return frozenset(each for each in (*found, *(self._base64() if self.is_sure else ())) if len(each) >= SHORTEST)

    @cached_property
    def folded(self) -> frozenset[str]:
        """The forms in lower case that are looked for in any case: the value, reversed, and as hexadecimal digits."""
        if not self.is_sure:
            return frozenset()
        data = self.value.encode()
        digits = (data.hex(), data.hex(" "), data.hex(":"))
        return frozenset(each.lower() for each in (self.value, self.value[::-1], *digits))

    @cached_property
    def squeezed(self) -> frozenset[str]:
        """The letters and digits of all forms, in lower case, which are looked for where single letters stand apart."""
        if not self.is_sure:
            return frozenset()
        return frozenset(each for form in self.exact | self.folded if len(each := squeezed(form).lower()) >= _JOINED)

    def _base64(self) -> set[str]:
        """Return what base64 makes of the value at each of its three alignments, without the characters that depend on what is around."""
        data, found = self.value.encode(), set[str]()
        for before in range(3):
            whole = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
            bits = 8 * (before + len(data))
            part = whole[-(-8 * before // 6) : bits // 6]
            if len(part) >= _FRAGMENT:
                found |= {part, part.replace("+", "-").replace("/", "_")}
        return found
