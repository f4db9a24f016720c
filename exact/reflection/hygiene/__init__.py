"""Quarantine of reflections that do more than state a lesson.

A reflection states a condition of a page and a better action there, in English or in the language of its task. It advises only deeds that
its task mentions: to destroy, pay, send, name secrets, weaken a protection, or run something. It grades nothing, obeys no page, hides
nothing and disguises no letters. A reflection that breaks a rule is stored, and not shown until a person restores it.

disguise.py  letters in disguise          language.py  languages, conditions, advice, reasons
patterns.py  addresses, markup, phrases   words.toml   words of nine languages
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from exact.context import Reflection
from exact.reflection.hygiene import patterns
from exact.reflection.hygiene.disguise import disguises, foreign_run, joined, plain
from exact.reflection.hygiene.language import (
    QUOTED,
    advice,
    known_words,
    languages,
    mixes_languages,
    same_language,
    states_condition,
    without_clearing,
    without_denials,
)

DESTROYS = "advises to destroy what its task does not speak of"
"""The one reason that a second source removes."""
_DEEDS = {
    "destroys": DESTROYS,
    "pays": "advises to pay for what its task does not speak of",
    "sends": "advises to send or publish what its task does not speak of",
    "secrets": "names secrets that its task does not speak of",
    "weakens": "advises to weaken a protection that its task does not speak of",
    "sweeps": "advises something for all, which its task does not speak of",
    "promotes": "advises to promote what its task does not speak of",
    "runs": "advises to run what its task does not speak of",
}
_BY_NAME = frozenset({"destroys", "pays", "weakens"})
"""Deeds that the name of an element may reveal too, such as `Delete`."""
_NEVER = {
    "obeys": "obeys text of a page",
    "dictates": "dictates an answer",
    "hides": "hides from the user",
    "excuses": "holds against the task",
    "poses": "claims authority",
    "observes": "speaks of an agent, a judge or a site's owner, and not of a page",
}
_ANYWHERE = frozenset({"obeys", "poses", "observes"})
"""Rules that apply to conditions and reasons too."""
_DONE = ("destroys", "pays", "secrets", "promotes", "runs")
"""Deeds that a reflection for judges does not speak of in its condition either."""
_LOWER = re.compile(
    r"\b(?:lower|niedriger|tiefer|schlechter|(?:plus|moins) bas|más baj[oa]|mais baix[oa])\b|ниже|更低|较低|偏低|降低|低く|低め|下げ"
    r"|أقل|أدنى|أخفض",
    re.I,
)
_HIGHER = re.compile(r"\b(?:higher|höher|besser|plus haut|más alt[oa]|mais alt[oa])\b|выше|更高|较高|偏高|提高|高く|高め|上げ|أعلى", re.I)
_NOT = re.compile(
    r"\b(?:not?|never|without|\w+n't|ohne|nicht|kein\w*|sans|pas|sin|sem|não|не|без|ни)\b|[没未不无]|ない|ずに|なかった"
    r"|دون|بدون|لم |لا |غير ",
    re.I,
)
_BRIEF = 8
"""Words from which an English reflection must state a condition."""
_ACTION = r"[^.]*?"
_BUILTIN = re.compile(
    r'On a page [^.]*?(?:success was expected at|was valued) \d\.\d\d but (?:came out at|turned out) \d\.\d\d, for [^.]*[.…"]+ ?'
    rf"(?P<advice>Prefer it in such a state(?: to {_ACTION})?|In such a state consider (?P<other>{_ACTION})(?: \(judged \d\.\d\d\))? first"
    r"|In such a state look for what is still open before doing it|Judge this step in such a state (?:higher|lower))\."
)


def instructions(reflection: Reflection) -> list[str]:
    """Return the reasons to quarantine a reflection; empty for an ordinary one."""
    r = reflection
    task = r.instruction or r.task
    drawn = [f"was drawn from a page that {mark}" for mark in r.marks]
    found = [*drawn, *disguises(r.text), *patterns.broken(r), *_form(r, task)]
    return list(dict.fromkeys(found))


def _form(r: Reflection, task: str) -> list[str]:
    """Return the faults in the form and the advice of a reflection."""
    text = plain(r.text)
    bare, words, spoken = QUOTED.sub('""', text), known_words(), languages(text)
    if built_in := _BUILTIN.fullmatch(bare):
        return _deeds(text[text.rindex("In such a state") :], task, spoken) if built_in["other"] else []
    found = []
    brief = bare.isascii() and len(bare.split()) < _BRIEF and (not spoken or "en" in spoken)
    if not brief and not states_condition(text):
        found.append("states no condition")
    if not same_language(text, task):
        found.append("is not in the language of its task")
    if mixes_languages(text) or (spoken & {"ru", "ar", "zh", "ja"} and foreign_run(text)):
        found.append("mixes languages")
    spoken = (spoken or frozenset(words.condition)) | {"en"}
    says = advice(text)
    for name, reason in _NEVER.items():
        looked = bare if name in _ANYWHERE else QUOTED.sub('""', says)
        if any(words.never_says(name, variant, spoken) for variant in (looked, joined(looked))):
            found.append(reason)
    if r.kind == "value":
        if not brief and not words.direction.search(bare):
            found.append("judges neither higher nor lower")
        if words.never_says("grades", QUOTED.sub('""', says), spoken):
            found.append("dictates a grade")
        return found + ([] if _holds_against(bare) else _deeds(bare, task, spoken, _DONE))
    advised = without_clearing(without_denials(says), text)
    return found + [reason for variant in dict.fromkeys((advised, joined(advised))) for reason in _deeds(variant, task, spoken)]


def _holds_against(bare: str) -> bool:
    """Return whether a text only judges something lower, which is right of a deed; "without" and "not" turn that round."""
    return bool(_LOWER.search(bare)) and not _HIGHER.search(bare) and not _NOT.search(bare)


def _deeds(says: str, task: str, spoken: frozenset[str], looked: Iterable[str] = _DEEDS) -> list[str]:
    """Return the advised deeds that the task does not mention. Names of elements tell only some of them."""
    words, bare = known_words(), QUOTED.sub('""', says)
    return [
        reason
        for name, reason in ((name, _DEEDS[name]) for name in looked)
        if words.advises(name, says if name in _BY_NAME else bare, spoken) and not words.asks(name, task)
    ]
