"""The scrubber: finds known secrets in texts and data, in whatever form they are written, and replaces them by placeholders.

Pictures without the texts that they carry beside their pixels.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from exact.secrecy.values import SHORTEST, Secret, placeholder
from exact.secrecy.views import joined, joined_views, readings, squeezed, views

_OPEN, _CLOSE = r"(?:<|&lt;|%3C|\\u003[cC])", r"(?:>|&gt;|%3E|\\u003[eE])"
_PLACEHOLDER = re.compile(rf'{_OPEN}secret(?::|%3A)(?:(?!<|{_CLOSE})[^\n"]){{1,120}}?{_CLOSE}')
_DIGEST = re.compile(r"[0-9a-f]{16,128}")
_WORD = re.compile(r"[a-z_]{1,24}")


_LARGE = 1 << 16
"""Characters of a text above which fields are not looked at one by one unless a secret stands in one of them."""


class Found(NamedTuple):
    """A secret in a text."""

    start: int
    end: int
    name: str


class _Form(NamedTuple):
    """A form of a secret."""

    text: str
    name: str
    is_word: bool
    """Whether it is looked for as a whole word only."""


class Scrubber:
    """Removes known secrets. It has no effect while it knows none."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._known: dict[str, Secret] = {}
        """The secret of each known value."""
        self._exact: list[_Form] = []
        self._folded: list[_Form] = []
        self._squeezed: list[_Form] = []
        self.learn(secrets)

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The known secrets."""
        return tuple(self._known.values())

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Look for further secrets from now on. Values that are too short are left out."""
        for secret in secrets:
            if len(secret.value) >= SHORTEST and secret.value not in self._known:
                self._known[secret.value], name, is_word = secret, secret.name, secret.is_word
                self._exact += (_Form(form, name, is_word) for form in secret.exact)
                self._exact += (_Form(form, name, False) for form in secret.base64)
                self._folded += (_Form(form, name, is_word) for form in secret.folded)
                self._folded += (_Form(form, name, False) for form in secret.digits)
                self._squeezed += (_Form(form, name, is_word) for form in secret.squeezed)

    def find(self, text: str, edges: Container[int] = ()) -> list[Found]:
        """Return the places of secrets in a text, in order and without overlaps. `edges`: places at which words end, whatever is there."""
        if not self._known or len(text) < SHORTEST or not any(map(self._is_in, readings(text))):
            return []
        found = list[Found]()
        for view in views(text):
            for at, end, form in (*_places(view.text, self._exact), *_places(view.text, self._folded, fold=True)):
                start, stop = view.place(at, end)
                if not form.is_word or ((start in edges or _parts(view.text, at)) and (stop in edges or _parts(view.text, end))):
                    found.append(Found(start, stop, form.name))
        for view in joined_views(text):
            for at, end, form in _places(view.text, self._squeezed, fold=True):
                start, stop = view.place(at, end)
                if not form.is_word or stop - start > end - at:  # else it stands in a word, and its letters are not apart
                    found.append(Found(start, stop, form.name))
        return self._apart(text, found) if found else []

    def text(self, text: str) -> str:
        """Return a text with placeholders in place of secrets."""
        return _replaced(text, [(each.start, each.end, placeholder(each.name)) for each in self.find(text)])

    def texts(self, parts: Sequence[str]) -> list[str]:
        """Return texts that follow each other with placeholders in place of secrets, also of those that are split over several texts."""
        if not self._known:
            return list(parts)
        if not (found := self.find("".join(parts), set(_starts(parts)))):
            return list(parts)
        done = [self.text(each) for each in parts]
        starts = _starts(done)
        if done != parts:
            found = self.find("".join(done), set(starts))
        cuts: dict[int, list[tuple[int, int, str]]] = {}
        number = 0
        for start, end, name in found:
            while number + 1 < len(starts) and starts[number + 1] <= start:
                number += 1
            each, shown = number, placeholder(name)
            while each < len(done) and starts[each] < end:
                cut = max(0, start - starts[each]), min(len(done[each]), end - starts[each]), shown
                cuts.setdefault(each, []).append(cut)
                each, shown = each + 1, ""
        for each, places in cuts.items():
            done[each] = _replaced(done[each], places)
        return done

    def value(self, value: Any, *, keep_words: bool = False) -> Any:
        """Return plain data with placeholders in place of secrets, in keys of mappings too.

        `keep_words`: leave texts that are one lower-case word, such as the kind of an event.
        """
        if not self._known:
            return value
        groups: dict[tuple[str, ...], list[str]] = {}
        _collect(value, (), groups, keep_words)
        changed: dict[tuple[str, ...], list[str]] = {}
        for path, parts in groups.items():
            if (done := self.texts(parts)) != parts:
                changed[path] = done
        whole = {path: iter(changed.get(path, parts)) for path, parts in groups.items()}
        return _rebuilt(value, (), whole, keep_words) if changed else value

    def data(self, data: bytes) -> bytes:
        """Return the content of a file without secrets: JSON, text, or a picture, which loses the texts in it."""
        if not self._known:
            return data
        if (bare := without_texts(data)) is not None:
            return self._blotted(bare, is_picture=True)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return self._blotted(data)
        if len(text) > _LARGE and not any(map(self._is_in, readings(text))):
            return data
        if text[:1] in ("{", "["):
            try:
                given = json.loads(text)
            except (ValueError, RecursionError):
                return self.text(text).encode()
            done = self.value(given)
            return data if done is given else json.dumps(done, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return self.text(text).encode()

    def _blotted(self, data: bytes, *, is_picture: bool = False) -> bytes:
        """Return binary data in which secrets in their plain form are overwritten.

        Short ones stay in a picture, whose compressed data contains three given bytes by chance.
        """
        for value, secret in self._known.items():
            plain = value.encode("utf-8", "surrogatepass")
            if secret.is_word and not is_picture:
                data = re.sub(rb"(?<!\w)" + re.escape(plain) + rb"(?!\w)", b"*" * len(plain), data)
            elif not secret.is_word and plain in data:
                data = data.replace(plain, b"*" * len(plain))
        return data

    def _is_in(self, text: str) -> bool:
        """Return whether a form of a secret stands in a reading of a text."""
        lower = text.lower()
        if any(form.text in text for form in self._exact) or any(form.text in lower for form in self._folded):
            return True
        letters = squeezed(text).lower()  # faster than the letters set apart, and holds all of them
        if not any(form.text in letters for form in self._squeezed):
            return False
        apart = joined(text).lower()
        return any(form.text in apart for form in self._squeezed)

    def _apart(self, text: str, found: list[Found]) -> list[Found]:
        """Return the longest of overlapping places, without those in placeholders and by chance in digests."""
        spared = [each.span() for each in _PLACEHOLDER.finditer(text)]
        starts = [start for start, _ in spared]
        digest = _DIGEST.fullmatch(text) is not None
        kept, last = list[Found](), 0
        for each in sorted(set(found), key=lambda place: (place.start, -place.end)):
            before = bisect_right(starts, each.start) - 1  # placeholders do not overlap
            if each.start < last or (before >= 0 and each.end <= spared[before][1]):
                continue
            if digest and each.end - each.start < len(text) and each.end - each.start < 12:
                continue
            kept.append(each)
            last = each.end
        return kept


NOTHING = Scrubber()
"""A scrubber that knows no secrets. It must not learn any."""


def _starts(parts: Sequence[str]) -> list[int]:
    """Return the position at which each of the texts begins once they are joined."""
    return [0, *accumulate(map(len, parts))][:-1]


def _parts(text: str, at: int) -> bool:
    """Return whether no word goes on over a place in a text."""
    return not re.fullmatch(r"\w\w", text[max(0, at - 1) : at + 1])


def _places(text: str, forms: Iterable[_Form], *, fold: bool = False) -> Iterator[tuple[int, int, _Form]]:
    """Yield the places of forms in a text: start, end, and the form. `fold`: in any case.

    Places of one form that overlap are one: a text may repeat a character as often as it likes.
    """
    if fold:
        lower = text.lower()  # a letter whose lower case is two stays, so that places are the same
        text = lower if len(lower) == len(text) else "".join(each if len(low := each.lower()) > 1 else low for each in text)
    for form in forms:
        said, size = form.text, len(form.text)
        at = text.find(said)
        while at >= 0:
            end = at + size
            while (last := text.rfind(said, at + 1, end + size - 1)) >= 0 and last + size > end:
                end = last + size
            yield at, end, form
            at = text.find(said, end)


def _replaced(text: str, places: Iterable[tuple[int, int, str]]) -> str:
    parts, at = list[str](), 0
    for start, end, shown in places:
        parts += text[at:start], shown
        at = end
    return "".join((*parts, text[at:])) if parts else text


def _collect(value: Any, path: tuple[str, ...], groups: dict[tuple[str, ...], list[str]], keep_words: bool) -> None:
    """Collect the texts of plain data by their paths, in which places in lists do not count."""
    if isinstance(value, str):
        if not (keep_words and _WORD.fullmatch(value)):
            groups.setdefault(path, []).append(value)
    elif isinstance(value, dict):
        for key, each in value.items():
            groups.setdefault((*path, "\0keys"), []).append(str(key))
            _collect(each, (*path, str(key)), groups, keep_words)
    elif isinstance(value, list | tuple):
        for each in value:
            _collect(each, path, groups, keep_words)


def _rebuilt(value: Any, path: tuple[str, ...], parts: dict[tuple[str, ...], Any], keep_words: bool) -> Any:
    if isinstance(value, str):
        return value if keep_words and _WORD.fullmatch(value) else next(parts[path])
    if isinstance(value, dict):
        done = {}
        for key, each in value.items():
            name = next(parts[*path, "\0keys"])
            done[name] = _rebuilt(each, (*path, str(key)), parts, keep_words)
        return done
    if isinstance(value, list | tuple):
        return [_rebuilt(each, path, parts, keep_words) for each in value]
    return value


_PNG = b"\x89PNG\r\n\x1a\n"
_TEXTS = (b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"iCCP")
_JPEG = b"\xff\xd8"


def without_texts(data: bytes) -> bytes | None:
    """Return a PNG or JPEG without its comments, EXIF and other texts; None if the data is neither."""
    if data.startswith(_PNG):
        return _png(data)
    if data.startswith(_JPEG):
        return _jpeg(data)
    return None


def _png(data: bytes) -> bytes:
    parts, at = [_PNG], len(_PNG)
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if kind not in _TEXTS:
            parts.append(data[at:end])
        at = end
        if kind == b"IEND":  # no viewer shows data after it
            break
    return b"".join(parts)


def _jpeg(data: bytes) -> bytes:
    parts, at = [_JPEG], 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if not (data[at + 1] == 0xFE or 0xE1 <= data[at + 1] <= 0xEF):
            parts.append(data[at:end])
        at = end
    return b"".join((*parts, data[at:]))
