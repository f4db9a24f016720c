"""Quarantine of reflections that do more than state a lesson.

A reflection states a condition of a page and a better action there, in English or in the language of its task. It advises only deeds that
its task mentions: to destroy, pay, send, name secrets, weaken a protection, or run something. It grades nothing, obeys no page, hides
nothing and disguises no letters. A reflection that breaks a rule is stored, and not shown until a person restores it.

`languages.py` knows conditions, advice and reasons in nine languages; `words.toml` has their words.

Patterns of addresses, markup and English phrases that no reflection holds.

Prompts show a reflection as data, in a fence, and quoted text in it is a page's. Fewer rules apply to quotes, goals and actions.

Letters in disguise: invisible, spaced, foreign, wide or encoded ones. None of these rules knows a language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from exact.context import Reflection
from exact.reflection.languages import (
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
from exact.text import UNSEEN

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
    found = [*drawn, *disguises(r.text), *broken(r), *_form(r, task)]
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


_VERB = r"(?:visit|open|go(?:ing)? to|goto|navigate|browse|download|fetch|load|install|curl|wget|post|send|log ?in (?:at|on|to)|follow|use)"
_ADDRESS = (
    r"(?:\w+://\S+|www\.\S+|\b\d{1,3}(?:\.\d{1,3}){3}\b|"
    r"(?<![A-Za-z0-9.@-])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:com|org|net|io|ly|example|test|info|biz|ru|cn|xyz|dev|app|me"
    r"|de|fr|es|br|pt|jp|co|uk|eu"
    r"|shop|top|site|online|link|click|su|cc|tv|gg|local|invalid)(?![A-Za-z0-9-]|\.[A-Za-z0-9])"
    r"|(?:[ (\[]|\b)(?:dot|punkt|point|punto|ponto|точка)(?:[ )\]]|\b)\s*"
    r"(?:com|org|net|io|example|de|fr|es|br|ru|cn|jp|info)\b|\[\.\]|hxxps?)"
)
_FILES = "pdf|html?|txt|csv|tsv|json|xml|ya?ml|md|png|jpe?g|gif|svg|webp|docx?|xlsx?|pptx?|odt|ods|js|css|py|log|zip|gz|tar|mp[34]|wav"
_VISIT = r"(?:visit|open|go(?:ing)? to|goto|navigate(?: to)?|browse(?: to)?|download|curl|wget|log ?in (?:at|on|to)|follow)"
_HOST = rf"(?<![\w.@-])\w(?:[\w-]*\w)?(?:\.[\w-]+)*\.(?!(?:{_FILES})\b)(?:xn--[\w-]+|[^\W\d_]{{2,24}})\b"
"""A word that looks like a host's name, and not like a file's: an address only behind a verb of visiting."""
_SECRET = (
    r"(?:passwords?|passphrase|credentials?|api[ _-]?keys?|access keys?|secrets?|(?:session|access|auth) ?tokens?|cookies?|"
    r"private (?:key|notes?)|card numbers?|cvv|(?:two-factor|verification|one[- ]time) codes?|(?-i:PINs?)|your pin|pin (?:code|number)s?|"
    r"social security|clipboard|home address|mailbox)"
)
_SENDS = r"send|copy|paste|type|reveal|print|output|post|write|enter|give|tell|show|share|forward|submit|repeat|use|upload"
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile("|".join(patterns), re.I | re.M))
    for name, patterns in {
        "overrides instructions": (
            r"\b(?:ignore|disregard|forget|override|bypass|obey)\b[^.;]{0,40}"
            r"\b(?:instructions?|goals?|rules?|prompts?|told|asked|everything|restrictions|guidelines|task)\b",
            r"\b(?:do not|don't|never) follow (?:the |your |any )?(?:user|goal|task|system|original)",
            r"\b(?:new|updated|real|true) (?:instructions?|goal|task|rules?)\b[^.;]{0,30}(?:\bis\b|\bare\b|:|\bfrom\b)",
            r"\binstructions? (?:have|has) (?:been )?(?:changed|updated|replaced)",
        ),
        "sets rules for good": (
            r"\bfrom now on\b|\byou are now\b|\bno restrictions\b|\b(?:trust|believe) only\b|\bno matter what\b|\bwhatever it shows\b",
        ),
        "speaks as a system or a tool": (
            r"<\|?\w*(?:im_start|im_end|system|endoftext|tool_call|function|script)\w*\|?>|\[/?INST\]|```",
            r"^\s*(?:system|assistant|human|user|tool|execute|action)\s*:|#{2,} ?(?:instruction|response|system)",
            r"\{\s*\"(?:tool|name|function|action)?\"\s*:|\bos\.(?:system|environ)|\bsubprocess\b|\brm -rf\b|\bcurl -|\| ?(?:ba)?sh\b",
            r"javascript:|data:text/|document\.(?:cookie|location)|<script|\bimport \w+;",
            r"\b(?:fill|click|goto|type|press|stop|navigate)\s?\([^)]*\)|\bstop \[",
            r"</?\s?(?:tools?|tool_\w+|function_calls?|invoke|system|assistant)\b[^<>]*>",
            r"\b\w+\.goto\b|\bbrowser\.(?:open|click|fill|type|press|navigate|evaluate|new_\w+|close)\b",
        ),
        "sends to an address": (
            rf"\b{_VERB}\b[^.;]{{0,60}}?{_ADDRESS}",
            rf"\b{_VISIT}(?:\s+[\w'-]+){{0,3}}?\s+{_HOST}",
            r"\baction\s*:\s*goto",
        ),
        "gives an address": (_ADDRESS, r"[\w.+-]+@[\w-]+\.\w+", r"(?-i:\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{2,4}){2,7}\b)"),
        "asks for secrets": (
            rf"\b(?:{_SENDS})\b[^.;]{{0,50}}\b{_SECRET}\b",
            r"\blog ?in\b[^.;]{0,30}\b(?:saved|stored|user's) (?:password|credentials)\b",
            r"\b(?:reveal|print|output|repeat|show|write|begin|start)\b[^.;]{0,40}\b(?:prompt|system message|configuration|instructions)\b",
        ),
        "dictates verdicts or every task": (
            r"\b(?:every|any|all) (?:task|state|page|site|shop|goal|form|login|dialog|request)s?\b[^.;]{0,60}"
            r"\b(?:1(?:\.0)?|A|highest|done|accept|approve|confirm|allow|once)\b",
            r"\b(?:in|on|at) (?:every|any|all) (?:task|state|page|site|login form|permission dialog)s?\b",
            r"\b(?:evaluate|judge|grade|value)\b[^.;,]{0,30}\b(?:every|any|all) (?:state|page|step)s?\b",
            r"\bwithout reading\b|\bmust return\b",
        ),
        "hides from the user": (
            r"\b(?:never|do not|don't) tell\b|\bkeep (?:this|it) (?:a )?secret\b|\bwithout (?:telling|asking) the user\b|\btell the user\b",
        ),
        "claims authority": (
            r"\b(?:the )?(?:system )?(?:administrator|admin|developer|site owner|owner|operator|root user)\b[^.;]{0,25}"
            r"\b(?:says|wants|requires|asks|orders)\b",
            r"\bas an ai\b|\bact as\b|\b(?:safety|security) (?:rules|settings|checks)\b|\ballow-?list\b|\bgrant access\b",
        ),
    }.items()
)
_NAMED = re.compile(r"[\w.+@:/?=&%-]*\w\.\w{2,}[\w.+@:/?=&%-]*")
"""Addresses and names of files in a task."""
_ALL = frozenset(name for name, _ in _RULES)
_AROUND = frozenset({"overrides instructions", "speaks as a system or a tool"})
"""Rules that apply to the goal and the action too; a goal may set rules from now on."""
_IN_QUOTES = _AROUND | {"sets rules for good"}
"""Rules that apply inside quotes too; an address or a label there was seen on a page."""


def broken(reflection: Reflection) -> list[str]:
    """Return the names of the rules that a reflection breaks.

    An address of the reflection's own site breaks no rule. Fewer rules apply to the goal and the action, which prompts show too, because
    they are not the reflection's own words.
    """
    r = reflection
    own = [reason for part in (r.text, r.expected) for reason in _broken(part, r, _ALL)]
    around = [reason for part in (r.instruction or r.task, r.action_label or r.action) for reason in _broken(part, r, _AROUND)]
    return list(dict.fromkeys(own + around))


def _broken(text: str, r: Reflection, rules: frozenset[str]) -> list[str]:
    """Return the names of the rules that a text breaks. The reflection's site, and addresses that its task names, are allowed."""
    shown = plain(text)
    if r.site:
        shown = re.sub(rf"(?:\w+://)?(?<![\w.-]){re.escape(r.site)}(?![\w.-])(?::\d+)?[^\s\"]*", "the site", shown)
    for address in _NAMED.findall(r.instruction):
        shown = shown.replace(address, "the address")
    bare, quotes = QUOTED.sub('""', shown), [quote[1:-1] for quote in QUOTED.findall(shown)]
    asked = known_words().asks("secrets", r.instruction or r.task)
    looked = [(name, rule) for name, rule in _RULES if name in rules and not (asked and name == "asks for secrets")]
    return [name for name, rule in looked if any(rule.search(part) for part in [bare, *(quotes if name in _IN_QUOTES else [])])]


_SPACED = re.compile(r"(?<![^\W\d_])(?:[^\W\d_][^\w\n,;:()]{1,6}){3,}[^\W\d_](?![^\W\d_])")
_LATIN, _ALIKE = "A-Za-z\u00c0-\u024f", "\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u13a0-\u13ff"
_MIXED = re.compile(f"[{_LATIN}][{_ALIKE}]|[{_ALIKE}][{_LATIN}]")
_LEET_INSIDE = re.compile(r"(?<![\w+/.-])[a-zA-Z]+[0134578@$]+[a-zA-Z]+[\w@$]*(?![\w+/-])")
_ENCODED = re.compile(
    r"(?<![\w/+.-])(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*[A-Z])(?:(?=[A-Za-z0-9+/]*\d)[A-Za-z0-9+/]{20,}|[A-Za-z0-9+/]{16,}(?==))={0,2}"
    r"|(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){16,}(?!\w)|(?:\\[ux][0-9a-fA-F]{2,4}\s?){3,}|(?:%[0-9A-Fa-f]{2}){3,}|(?:&#x?[0-9a-fA-F]+;){2,}"
    r"|(?<!\w)(?:[01]{8}\s+){3,}|(?:[.-]{1,5}[ /]+){6,}"
)
_BROKEN = re.compile(r"(?<![\w-])[^\W\d_]{1,5}(?:[-·.][^\W\d_]{1,5}){1,}(?![\w-])")
_LATIN_RUN = re.compile(r"(?<![\w])[a-z]{2,}(?: [a-z]{1,}){3,}(?!\w)")


def disguises(text: str) -> list[str]:
    """Return how a text hides its letters; empty if it does not."""
    bare = QUOTED.sub('""', text)
    found = []
    if UNSEEN.search(text):
        found.append("hides characters")
    if len(_odd_letters(text)) >= 3 or any(map(_mixes, re.findall(r"\w+", text))):
        found.append("mixes letters of several scripts")
    if _SPACED.search(bare):
        found.append("spaces letters out")
    if len(_LEET_INSIDE.findall(bare)) >= 2:
        found.append("writes digits for letters")
    if _ENCODED.search(text):
        found.append("holds encoded text")
    return found


def plain(text: str) -> str:
    """Return a text with its characters in their usual form, without the invisible ones."""
    return UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def joined(text: str) -> str:
    """Return a text whose words are not broken by hyphens: `de-le-te` as `delete`."""
    return _BROKEN.sub(lambda match: re.sub(r"[-·.]", "", match[0]), text)


def foreign_run(text: str) -> str:
    """Return the first run of four Latin words in a text of another script, outside quotes; empty if there is none."""
    match = _LATIN_RUN.search(QUOTED.sub('""', text))
    return match[0] if match else ""


def _odd_letters(text: str) -> list[str]:
    """Return letters that look like other ones: wide, mathematical or enclosed ones."""
    return [c for c in text if ord(c) > 0x2000 and c.isalpha() and unicodedata.normalize("NFKC", c).isascii()]


def _mixes(word: str) -> bool:
    return bool(_MIXED.search(word))
