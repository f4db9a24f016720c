"""Languages, conditions, advice and reasons in a reflection, read by the words of `words.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources
from typing import Any, NamedTuple

_QUOTES = (
    r'"(?:[^"\\]|\\.)*"', "“[^“”\"]*[”\"]", "„[^„“”\"]*[“”\"]", "«[^«»]*»", "「[^「」]*」", "『[^『』]*』", "‘[^‘’]*’",
    r"(?<![\w])'[^'\n]{1,60}'(?![\w])",
)  # fmt: skip
QUOTED = re.compile("|".join(_QUOTES))
"""Matches text in quotes: words of a page, or the name of an element."""
_SENTENCE = re.compile(r"(?<=[.!?;؟؛])\s+|(?<=[。！？；])")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ANYWHERE = re.compile(r"\b(?:when|whenever|if|where|wherever|once|while|until|unless)\b", re.I)
_SO = re.compile(r"(?<=[.!;])\s+(?:so|therefore|that is why|hence)\b", re.I)
_MARK = re.compile(r"[,;.:،؛。，；()]")
_DENIAL = re.compile(
    r"\b(?:do not|don't|never|avoid)\b(?![^,.;]*\b(?:without|until|before|unless|but|except|than)\b)[^,.;]*"
    r"|\bne (?:pas|jamais)\b(?![^,.;]*\b(?:sans|avant|sauf)\b)[^,.;]*|(?<!\w)(?:не|nicht|no|não) \w+",
    re.I,
)
_PART = 4
"""Least number of words of a part of a text whose language is tested separately."""
_SHARE, _FEW, _NEAR = 0.1, 6, 0.7
"""Least share of small words; number of words from which there must be one; share of the best language's count
that another one needs, or all but one word of it."""


class Words(NamedTuple):
    """The words that the check reads by. Patterns are by language, or by the name of the thing that they detect and by language."""

    small: dict[str, frozenset[str]]
    again: dict[str, re.Pattern[str]]
    condition: dict[str, re.Pattern[str]]
    condition_end: dict[str, re.Pattern[str]]
    reason: dict[str, re.Pattern[str]]
    form: dict[str, re.Pattern[str]]
    clears: dict[str, re.Pattern[str]]
    reads: dict[str, re.Pattern[str]]
    direction: re.Pattern[str]
    deeds: dict[str, dict[str, re.Pattern[str]]]
    """For each kind of deed, the words that advise it; as `asked`, further words by which a task asks for it."""
    never: dict[str, dict[str, re.Pattern[str]]]

    def never_says(self, name: str, text: str, spoken: frozenset[str]) -> bool:
        """Return whether a text has words that no reflection may have, in the languages that it may be in."""
        return any(self.never[name][each].search(text) for each in spoken)

    def advises(self, name: str, text: str, spoken: frozenset[str]) -> bool:
        """Return whether a text advises a deed, in the languages that it may be in. To read all of something does not count."""
        if name == "sweeps":
            for each in spoken:
                text = self.reads[each].sub(" ", text)
        return any(self.deeds[name][each].search(text) for each in spoken)

    def asks(self, name: str, task: str) -> bool:
        """Return whether a task mentions a deed, in any language."""
        return any(pattern.search(task) for pattern in self.deeds[name].values())


@functools.cache
def known_words() -> Words:
    """Return the words of the package."""
    data: dict[str, Any] = tomllib.loads((resources.files("exact.reflection") / "words.toml").read_text("utf-8"))

    def patterns(words: dict[str, str]) -> dict[str, re.Pattern[str]]:
        return {name: _pattern(text) for name, text in words.items()}

    return Words(
        small={name: frozenset(text.split()) for name, text in data["languages"].items()},
        again=patterns(data["again"]),
        condition=patterns(data["condition"]),
        condition_end=patterns(data["condition_end"]),
        reason=patterns(data["reason"]),
        form=patterns(data["form"]),
        clears=patterns(data["clears"]),
        reads=patterns(data["reads"]),
        direction=_pattern(data["direction"]["any"]),
        deeds={name: patterns(words) for name, words in data["deeds"].items()},
        never={name: patterns(words) for name, words in data["never"].items()},
    )


@functools.lru_cache(maxsize=512)
def languages(text: str) -> frozenset[str]:
    """Return the languages that a text may be in, as codes of two letters; none if no known language fits.

    The script identifies Russian, Arabic, Chinese and Japanese; small words identify the others. A text of few words may be in several.
    """
    plain = QUOTED.sub(" ", text)
    if not plain.isascii() and (told := _by_script(plain)) is not None:
        return told
    words = [word.lower() for word in _WORD.findall(plain.replace("’", "'"))]
    counts = {name: sum(word in small for word in words) for name, small in known_words().small.items()}
    most = max(counts.values())
    if most < _SHARE * len(words) or (not most and len(words) >= _FEW):
        return frozenset()
    return frozenset(name for name, count in counts.items() if count >= max(_SHARE * len(words), min(_NEAR * most, most - 1)))


def _by_script(text: str) -> frozenset[str] | None:
    """Return the language that a script identifies, none for a script without a known language; None for Latin letters."""
    letters = [c for c in text if c.isalpha()]
    kana, han = sum("\u3040" <= c <= "\u30ff" for c in letters), sum("\u4e00" <= c <= "\u9fff" for c in letters)
    if kana * 8 > len(letters):
        return frozenset({"ja"})
    if han * 3 > len(letters):
        return frozenset({"zh"})
    if sum("\u0400" <= c <= "\u04ff" for c in letters) * 3 > len(letters):
        return frozenset({"ru"})
    if sum("\u0600" <= c <= "\u06ff" for c in letters) * 3 > len(letters):
        return frozenset({"ar"})
    return frozenset() if sum(ord(c) > 0x24F for c in letters) * 3 > len(letters) else None


def same_language(text: str, task: str) -> bool:
    """Return whether a text may be in English or in the language of its task."""
    found, asked = languages(text), languages(task)
    if not found and text.isascii() and len(text.split()) < _FEW:
        return True
    return bool(found & (asked | {"en"})) or bool(found and not asked and found <= set(known_words().small))


def states_condition(text: str) -> bool:
    """Return whether a text says when it holds: it begins with a condition, or with "next time", in its language.

    English may state the condition later in the first sentence, or begin with an event and continue with "so".
    """
    bare, found = QUOTED.sub('""', text).strip(), languages(text)
    if any(known_words().again[name].match(bare) for name in found | {"en"}):
        return True
    if "en" in found and (_ANYWHERE.search(_SENTENCE.split(bare)[0]) or _SO.search(bare)):
        return True
    return any(known_words().condition[name].match(bare) for name in found | {"en"})


def advice(text: str) -> str:
    """Return the advice of a reflection: its text without the conditions and the reasons."""
    found = languages(text)
    return " . ".join(part for part in (_advised(sentence, found) for sentence in _sentences(text)) if part)


def mixes_languages(text: str) -> bool:
    """Return whether a part of a text, between marks, is in another language than the whole. Quotes do not count."""
    found = [each for part in _MARK.split(QUOTED.sub(" ", text)) if (each := _sure_languages(part))]
    return len(found) > 1 and not frozenset.intersection(*found)


def _sure_languages(part: str) -> frozenset[str]:
    """Return the languages that a part of a text is in: none if it has few words, or few small ones."""
    words = [word.lower() for word in _WORD.findall(part)]
    small = known_words().small
    if len(words) < _PART:
        return frozenset()
    return frozenset(name for name in languages(part) if name not in small or sum(word in small[name] for word in words) > 2)


def without_denials(text: str) -> str:
    """Return advice without the deeds that it advises against. A denial with an exception stays, because it may advise the exception."""
    return _DENIAL.sub(" ", text)


def without_clearing(text: str, whole: str) -> str:
    """Return advice without verbs such as `clear` if the whole text speaks of a field, a filter or a search."""
    words, found = known_words(), languages(whole) | {"en"}
    bare = QUOTED.sub('""', whole)
    for name in found:
        if words.form[name].search(bare):
            text = words.clears[name].sub(" ", text)
    return text


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text; marks inside quotes end none."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\x00{len(held) - 1}\x00"

    shown = QUOTED.sub(hold, text)
    return [re.sub("\x00(\\d+)\x00", lambda m: held[int(m[1])], part) for part in _SENTENCE.split(shown) if part.strip()]


def _advised(sentence: str, found: frozenset[str]) -> str:
    words = known_words()
    shown = QUOTED.sub(lambda m: m[0][0] + "\x01" * (len(m[0]) - 2) + m[0][-1] if len(m[0]) > 1 else m[0], sentence)
    start, end = 0, len(sentence)
    for name in found | {"en"}:
        if again := words.again[name].match(shown.lstrip()):
            start = max(start, again.end())
        elif words.condition[name].match(shown) and (stop := words.condition_end[name].search(shown)):
            start = max(start, stop.end())
    if "ja" in found and re.search("(?:から|ため|ので)。?$", shown.strip()):
        return ""
    for name in (found | {"en"}) - {"ja"}:
        if reason := words.reason[name].search(shown, start):
            end = min(end, reason.start())
    if "en" in found and not start and (later := _ANYWHERE.search(shown)):
        end = min(end, later.start()) if later.start() else end
    return sentence[start:end].strip()


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a text in `words.toml`."""
    return re.compile(text.replace("\n", "").replace("~", r"(?<![^\W_])"), re.I)
