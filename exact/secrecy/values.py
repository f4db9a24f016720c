"""The forms in which one secret value may be written."""

from __future__ import annotations

import base64
import codecs
import html
import json
import math
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote

from exact.secrecy.views import LETTERS, fold, only

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
_MOST, _NEARLY = 0.6, 0.85
"""Least part of a value that is looked for: by itself, and with its characters set apart."""
STRONG = 28
"""Least number of bits of a part that is looked for: less occurs by chance, or is a word."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[^\W\d_][^\W\d_A-Z]*")
_ALPHABET = string.ascii_lowercase
_BASE58 = "".join(each for each in string.digits + string.ascii_uppercase + string.ascii_lowercase if each not in "0OIl")
_USER = re.compile(r"(?i)(?:\w+[._-])?(?:(?:user|login|account)(?:[._-]?(?:name|id|e?-?mail))?|e-?mail)\d*")
"""Names of secrets that are user names."""


def placeholder(name: str) -> str:
    """Return the text that stands for a secret."""
    return f"<secret:{name}>"


def strength(text: str) -> float:
    """Return about how many bits a text has: few for letters that continue a word."""
    words = [len(each) for each in _WORD.findall(text)]
    digits = sum(map(str.isdigit, text))
    return sum(2.7 + 2 * min(each, 6) for each in words) + 3.3 * digits + 4 * (len(text) - sum(words) - digits)


class Spelling(NamedTuple):
    """One way in which a value may be written."""

    text: str
    least: int
    """Fewest successive characters of it that are looked for."""
    reading: str
    """Reading of a text in which it is looked for: `exact`; in any case, `folded`, `strided` (each second or third character), `apart`
    (letters and digits alone, if others separate them), `letters`, `hex` or `digits` (these alone, whatever stands between)."""
    is_word: bool = False
    """Whether it is looked for as a whole word only."""


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
    def spellings(self) -> frozenset[Spelling]:
        """The ways in which the value may be written. Most of it is enough, unless the value only looks like a secret or is a word."""
        size, plain = len(self.value), fold(self.value)
        found = {Spelling(each, len(each), "exact", self.is_word) for form in self._escaped for each in (form, fold(form))}
        if not self.is_sure:
            return frozenset(found)
        share = 1.0 if self.is_word or self.presumed or self.within else min(1.0, max(_SURE, math.ceil(_MOST * size)) / size)
        nearly = _NEARLY if share < 1 else 1.0

        def add(reading: str, texts: Iterable[str], share: float, shortest: int, is_word: bool = False) -> None:
            for each in texts:
                if (length := len(only(each, LETTERS) if reading == "apart" else each)) >= shortest:
                    found.add(Spelling(each, max(shortest, math.ceil(round(share * length, 6))), reading, is_word))

        encoded = {*_base64(self.value.encode()), *_base64(self.value.encode("utf-16-le")), *_other_bases(self.value.encode())}
        turned = {plain, plain[::-1], codecs.encode(plain, "rot13"), plain.lower().translate(_ATBASH)}
        add("exact", encoded, share, _FRAGMENT)
        add("exact", [self.value.translate(_ROT47)], share, _SURE)
        add("folded", {*turned, self.value, self.value[::-1]}, 1.0, _SURE, self.is_word)
        if strength(plain) >= STRONG:
            add("folded", (plain, plain[::-1]), share, _SURE)
            add("strided", [plain], nearly, _SURE)
        alone = (*self._escaped, *turned, *_base64(self.value.encode()))
        add("apart", map(fold, alone), nearly, _JOINED, self.is_word)
        for encode in (base64.b32encode, base64.b32hexencode):
            add("letters", _aligned(self.value.encode(), encode, 5), share, 2 * _SURE)
        for text in {self.value, self.value.lower(), self.value.upper(), self.value[::-1]}:
            for codes in (list(map(ord, text)), list(text.encode())):
                for reading, forms in _NUMBERS.items():
                    add(reading, ("".join(map(form.format, codes)) for form in forms), share, 2 * _SURE)
            codes = map(ord, text)
            add("letters", ["".join(_number(each, string.digits + _ALPHABET) for each in codes)], share, 2 * _SURE)
        return frozenset(found)

    @property
    def _escaped(self) -> frozenset[str]:
        """The value, and in the encodings of addresses, forms, HTML and JSON."""
        if len(self.value) < SHORTEST:
            return frozenset()
        value = self.value
        in_addresses = {quote(value, safe=""), quote(value, safe="!'()*"), unquote(value)}  # the second: encodeURIComponent
        in_forms = {quote_plus(value), quote_plus(value, safe="*").replace("~", "%7E")}  # the second: a browser's form
        in_html = {html.escape(value), html.escape(value, quote=False), html.escape(value, quote=False).replace('"', "&quot;")}
        written = {value, *in_addresses, *in_forms, *in_html}
        found = written | {json.dumps(each, ensure_ascii=ascii)[1:-1] for each in written for ascii in (True, False)}
        return frozenset(each for each in found if len(each) >= SHORTEST)


_ATBASH = str.maketrans(_ALPHABET, _ALPHABET[::-1])
_UU = str.maketrans(string.ascii_uppercase + _ALPHABET + string.digits + "+/", "`" + "".join(map(chr, range(33, 96))))
_ROT47 = {each: 33 + (each + 14) % 94 for each in range(33, 127)}
_NUMBERS = {
    "hex": ("{:02x}", "{:03x}", "{:04x}", "{:05x}", "{:08x}", "{:02x}00"),
    "digits": ("{}", "{:03}", "{:o}", "{:03o}", "0{:o}", "{:04o}", "{:b}", "{:07b}", "{:08b}", "0{:b}", "{:09b}"),
}
"""Forms of the code of a character. The zero of a prefix such as `0x` is a digit too."""


def _base64(data: bytes) -> Iterator[str]:
    for each in _aligned(data, base64.b64encode, 6):
        yield from (each, each.replace("+", "-").replace("/", "_"))


def _aligned(data: bytes, encode: Callable[[bytes], bytes], bits: int) -> Iterator[str]:
    """Yield encoded data at each alignment, without the characters that depend on the data around. `bits`: those of a character."""
    for before in range(bits // math.gcd(bits, 8)):
        yield encode(b"\0" * before + data).decode()[-(-8 * before // bits) : 8 * (before + len(data)) // bits]


def _other_bases(data: bytes) -> Iterator[str]:
    """Yield data in base85 (Ascii85 and that of git) and base64 of uuencode at each alignment, and in base58."""
    for at in range(4):
        whole = data[at : len(data) - (len(data) - at) % 4]
        yield from (base64.a85encode(whole).decode(), base64.b85encode(whole).decode())
    yield from (each.translate(_UU) for each in _aligned(data, base64.b64encode, 6))
    yield _number(int.from_bytes(data), _BASE58)


def _number(number: int, digits: str) -> str:
    """Return a number in the base that has such digits."""
    found = ""
    while number:
        number, rest = divmod(number, len(digits))
        found = digits[rest] + found
    return found
