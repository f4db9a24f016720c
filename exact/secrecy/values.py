"""The ways in which a secret value may be written, and how they are found in a text."""

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
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote

from exact.secrecy.views import LETTERS, fold, lowered, only

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
            add("letters", ["".join(_number(ord(each), string.digits + _ALPHABET) for each in text)], share, 2 * _SURE)
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


GRAM, _TABLE, _SHORT = 4, 18, 512
"""Bytes that are looked up first, bits of their hash, and bytes of a text that is too short for that."""
_FACTOR = 11_400_714_819_323_198_485
"""Odd factor that spreads numbers of 64 bits (Knuth's multiplicative hashing)."""
GAP, _CHUNK = 16, 3
"""Most characters between two letters, and most letters together, of a secret whose letters are set apart."""
_SIGNS = re.compile(r"[\W_]+")
_ENDS = re.compile(r"^[\W_]+|[\W_]+$")
_SKIP = 8
"""Bits that a place costs at which a text differs from a secret."""
_SKIPS = ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 2), (3, 0), (0, 3), (3, 3), (1, 3))
"""Numbers of characters that are missing, and of those in their place."""


class SecretForm:
    """A spelling of a secret, and how it is found."""

    def __init__(self, name: str, spelling: Spelling) -> None:
        self.name, self.cased, self.least, self.is_word = name, spelling.text, spelling.least, spelling.is_word
        self.text = self.cased if spelling.reading == "exact" else lowered(self.cased)
        if spelling.reading == "apart":
            self.text = only(self.text, LETTERS)
        self.is_strong = strength(self.cased) >= STRONG
        self.reading, size, run = spelling.reading, len(self.text), self.least
        self.is_whole = run == size
        """Whether no part of it is looked for."""
        self.is_loose = spelling.reading == "folded" and not self.is_whole
        """Whether some characters may be lost, or be others."""
        if self.is_loose:
            run = min(run, max(GRAM, (size - 3) // 2))
        length = min(run, max(GRAM, run // 2)) if self.is_loose else max(2 * run - size, min(2 * GRAM, run))
        self.anchors = [(at, self.text[at : at + length]) for at in range(run - length, size - length + 1, run - length + 1)]
        """Parts of the text with their places. Each part that is looked for holds one of them."""


Hit = tuple[int, int, SecretForm, bool]
"""A secret in a reading: start, end, its spelling, and whether it is the whole of it."""


class Sieve:
    """The forms that are looked for in one reading. Few characters of each are looked up first, all in one pass."""

    def __init__(self, width: int) -> None:
        self._width, self._forms = width, list[SecretForm]()
        self._least = 1 << 30
        self._grams: dict[bytes, list[int]] = {}
        self._others: list[int] = []
        self._table: Any = None

    def add(self, form: SecretForm) -> None:
        """Look for a form from now on."""
        for data in {lowered(anchor).encode("utf-8", "surrogatepass") for _, anchor in form.anchors}:
            grams = [data[at : at + self._width] for at in range(len(data) - self._width + 1)]
            numbers = self._grams.setdefault(max(grams, key=lambda each: strength(each.decode("latin-1"))), []) if grams else self._others
            numbers.append(len(self._forms))
        self._forms.append(form)
        self._least, self._table = min(self._least, form.least), None

    def possible(self, text: str) -> list[SecretForm]:
        """Return the forms that may stand in a text, which is in lower case; whole ones first."""
        if len(text) < self._least:
            return []
        data = text.encode("utf-8", "surrogatepass")
        numbers = {*self._others, *(number for gram in self._met(data) for number in self._grams[gram])}
        return sorted((self._forms[each] for each in sorted(numbers)), key=lambda form: not form.is_whole) if numbers else []

    def _met(self, data: bytes) -> set[bytes]:
        """Return the grams that stand in data."""
        if len(data) < _SHORT:
            return {data[at : at + self._width] for at in range(len(data) - self._width + 1)} & self._grams.keys()
        import numpy as np

        kind: Any = np.uint32 if self._width == GRAM else np.uint64
        turn, by = kind(_FACTOR >> (64 - 8 * self._width) | 1), kind(8 * self._width - _TABLE)
        if self._table is None:
            self._table = np.zeros(1 << _TABLE, bool)
            self._table[(np.frombuffer(b"".join(self._grams), kind) * turn) >> by] = True
        found = set[bytes]()
        for first in range(self._width):
            codes = np.frombuffer(data, kind, (len(data) - first) // self._width, first)
            met = codes[self._table[(codes * turn) >> by]]
            found.update(each.tobytes() for each in (np.unique(met) if len(met) else ()))
        return found & self._grams.keys()


def places_of(text: str, form: SecretForm) -> Iterator[Hit]:
    """Yield the places of a form in a text, whose case is that of the form.

    Places of a whole form that overlap are one: a text may repeat a character as often as it likes.
    """
    size, found = len(form.text), list[tuple[int, int]]()
    for offset, anchor in form.anchors:
        text, found = blanked(text, found), []
        at = text.find(anchor)
        while at >= 0:
            end = at + len(anchor)
            if form.is_whole:
                while (last := text.rfind(anchor, at + 1, end + size - 1)) >= 0 and last + size > end:
                    end = last + size
                yield at, end, form, True
            else:
                before, lost, first, odd = _along(text[max(0, at - 2 * size) : at][::-1], form.text[:offset][::-1], form.is_loose)
                after, gone, last, odder = _along(text[end : end + 2 * size], form.text[offset + len(anchor) :], form.is_loose)
                same = len(anchor) + first + last
                start, stop, part = at - before, end + after, form.cased[offset - lost : offset + len(anchor) + gone]
                if is_found := same >= form.least and not (form.is_loose and strength(part) - _SKIP * (odd + odder) < STRONG):
                    yield start, stop, form, same == size == stop - start
                    found.append((start, stop))
                end = stop if is_found else at + 1
            at = text.find(anchor, end)


def blanked(text: str, places: list[tuple[int, int]]) -> str:
    """Return a text without the letters at some places. Its length is the same."""
    parts, last = list[str](), 0
    for start, end in sorted(places):
        parts += text[last:start], "\0" * (end - max(start, last))
        last = max(last, end)
    return "".join((*parts, text[last:])) if parts else text


def _along(text: str, said: str, is_loose: bool) -> tuple[int, int, int, int]:
    """Return how many characters of two texts go along each other, how many of them are equal, and the number of places where they are not.

    `is_loose`: at up to two places, up to three characters may be missing, added or others.
    """
    at = place = same = skips = 0
    while True:
        while at < len(text) and place < len(said) and text[at] == said[place]:
            at, place, same = at + 1, place + 1, same + 1
        for lost, more in _SKIPS if is_loose and skips < 2 else ():
            ahead = said[place + lost : place + lost + 3]
            if len(ahead) == 3 and text.startswith(ahead, at + more):
                at, place, skips = at + more, place + lost, skips + 1
                break
        else:
            return at, place, same, skips


def stands(text: str, form: SecretForm, far: re.Pattern[str]) -> bool:
    """Return whether a form stands in a text as its reading says, and not by chance. `far`: matches a gap that is too long."""
    if far.search(text):
        return False
    if form.reading != "apart":
        return True
    longest = max(map(len, parts := _SIGNS.split(text)))
    if len(parts) == 1 or longest == 1:
        return len(parts) > 1
    if form.is_word or not form.is_strong:
        return False
    letters = iter(text)
    return longest <= _CHUNK or all(each in letters for each in _ENDS.sub("", lowered(form.cased)))
