"""The forms in which one secret value may be written."""

from __future__ import annotations

import base64
import html
import json
import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus, unquote

from exact.secrecy.views import squeezed

SHORTEST = 3
"""Least number of characters of a value that is looked for; shorter ones occur everywhere."""
_WITHIN = 8
"""Least number of characters of a value that is looked for within words too; the letters of shorter ones stand in ordinary words."""
_SURE = 6
"""Least number of characters of a value that is also looked for in other cases, in other encodings and in parts."""
_JOINED = 4
"""Least number of letters and digits of a value that is searched for if they stand apart."""
_FRAGMENT = 8
"""Least number of characters of a part of base64 that is looked for."""
_USER = re.compile(r"(?i)(?:\w+[._-])?(?:(?:user|login|account)(?:[._-]?(?:name|id|e?-?mail))?|e-?mail)\d*")
"""Names of secrets that are user names."""


def placeholder(name: str) -> str:
    """Return the text that stands for a secret."""
    return f"<secret:{name}>"


@dataclass(frozen=True)
class Secret:
    """A value that nothing stored may contain."""

    name: str
    """Name in the placeholder that stands for it."""
    value: str
    presumed: bool = False
    """Whether the value only looks like a secret, as that of a cookie may."""
    within: bool = False
    """Whether the value is looked for within words although it is short."""

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    @property
    def is_sure(self) -> bool:
        """Return whether the value is long enough to be looked for in every form."""
        return len(self.value) >= _SURE

    @property
    def is_word(self) -> bool:
        """Return whether the value is looked for as a whole word only: it is short, or a user name."""
        return not self.within and (len(self.value) < _WITHIN or self._is_user)

    def is_stated_in(self, goal: str) -> bool:
        """Return whether a goal itself states a user name, or a value that only looks like a secret: agents know it then."""
        if not (self.presumed or self._is_user):
            return False
        return re.search(rf"(?<!\w){re.escape(self.value)}(?!\w)", goal, re.IGNORECASE) is not None

    @property
    def _is_user(self) -> bool:
        return _USER.fullmatch(self.name) is not None

    @cached_property
    def exact(self) -> frozenset[str]:
        """The forms that are looked for in the same case: encodings in addresses, forms, HTML and JSON."""
        if len(self.value) < SHORTEST:
            return frozenset()
        value = self.value
        in_addresses = {quote(value, safe=""), quote(value, safe="!'()*"), unquote(value)}  # the second: encodeURIComponent
        in_forms = {quote_plus(value), quote_plus(value, safe="*").replace("~", "%7E")}  # the second: a browser's form
        in_html = {html.escape(value), html.escape(value, quote=False), html.escape(value, quote=False).replace('"', "&quot;")}
        written = {value, *in_addresses, *in_forms, *in_html}
        found = written | {json.dumps(each, ensure_ascii=ascii)[1:-1] for each in written for ascii in (True, False)}
        return frozenset(each for each in found if len(each) >= SHORTEST)

    @cached_property
    def folded(self) -> frozenset[str]:
        """The forms in lower case that are looked for in any case: the value, and reversed."""
        return frozenset((self.value.lower(), self.value[::-1].lower())) if self.is_sure else frozenset()

    @cached_property
    def digits(self) -> frozenset[str]:
        """The hexadecimal digits of the value, in lower case, which are looked for in any case and within words."""
        data = self.value.encode()
        return frozenset((data.hex(), data.hex(" "), data.hex(":"))) if self.is_sure else frozenset()

    @cached_property
    def squeezed(self) -> frozenset[str]:
        """The letters and digits of all forms, in lower case, which are searched for if single letters stand apart."""
        if not self.is_sure:
            return frozenset()
        forms = self.exact | self.base64 | self.folded | self.digits
        return frozenset(each for form in forms if len(each := squeezed(form).lower()) >= _JOINED)

    @cached_property
    def base64(self) -> frozenset[str]:
        """The value in base64 at each of its three alignments, without the characters that depend on the text around; within words too."""
        data, found = self.value.encode() if self.is_sure else b"", set[str]()
        for before in range(3):
            whole = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
            bits = 8 * (before + len(data))
            part = whole[-(-8 * before // 6) : bits // 6]
            if len(part) >= _FRAGMENT:
                found |= {part, part.replace("+", "-").replace("/", "_")}
        return frozenset(found)
