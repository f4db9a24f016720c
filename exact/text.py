"""Characters that are not seen, written out: control characters, direction marks, zero-width characters, selectors, tags, private use.

This is the one set of them: terminals, reports, prompts and the check of reflections use it.

Numbers with their nouns.

Special tokens of chat templates, which a server reads in any text as the end of a turn or the head of another.

Marks of the fences in prompts, which a page can neither guess nor forge.

Detector of text that speaks to the model which reads it, instead of to a person.

A mark lowers nothing by itself. Prompts name the marks of an observation to who reads it, reflections drawn from it are quarantined, the
report flags the state, and the journal names the marks with each decision.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_DIRECTIONS = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u206f"
_ZERO_WIDTH = "\u00ad\u034f\u180b-\u180f\u200b\u2060-\u2065\ufeff\ufff0-\ufffb"
_BLANK = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159"
_SELECTORS = "\ufe00-\ufe0e"
_HALVES = "\ud800-\udfff"
"""Halves of characters, which UTF-8 cannot write."""
_PRIVATE = "\ue000-\uf8ff"
_NEVER = "\ufdd0-\ufdef\ufffe\uffff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff"
"""Noncharacters, and the planes 4 to 16, which hold tags, selectors, private use and unassigned characters alone."""
_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_JOINED = "\u0600-\u08ff\u0900-\u0dff\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u1800-\u18af"
"""Letters of scripts in which a joiner or a non-joiner between two letters changes how they look."""

UNSEEN = re.compile(
    f"[{_CONTROLS}{_DIRECTIONS}{_ZERO_WIDTH}{_BLANK}{_SELECTORS}{_HALVES}{_PRIVATE}{_NEVER}\u200c\u200d\ufe0f](?:(?<![\u200c\u200d\ufe0f])"
    f"|(?<=\u200c)(?!(?<=[{_JOINED}]\u200c)[{_JOINED}])"
    f"|(?<=\u200d)(?!(?<=[{_PICTURE}\ufe0f]\u200d)[{_PICTURE}]|(?<=[{_JOINED}]\u200d)[{_JOINED}])"
    f"|(?<=\ufe0f)(?<![{_PICTURE}0-9#*]\ufe0f))"
)
"""Matches an invisible character, except tabs, line ends, and characters that join or select a visible emoji or letter.

They are the characters of Unicode's categories Cc, Cf, Co, Cs, Zl and Zp, those that it says to ignore if a font lacks them
(Default_Ignorable_Code_Point), noncharacters and blanks; without the signs that Arabic, Syriac and Kaithi write around numbers (Cf). Other
unassigned characters show as boxes, and become letters and emoji in later versions.
"""


def inert(text: str, limit: int | None = None) -> str:
    """Return text with the characters that are not seen written out, cut at `limit` characters."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return UNSEEN.sub(lambda match: _written(match[0]), text.replace("\r\n", "\n"))


def _written(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SPECIAL = re.compile(
    r"<[|｜](?=\S)[^<>|｜\n]{1,48}(?:[|｜]>|>)|<\w{1,48}[|｜]>|\[\|\w{1,48}\|\]|</?s>|(?i:<(?:[be]os|pad|unk)(?:_token)?>)|<(?:start|end)_of_\w{1,48}>"
    r"|<seed:[be]os>|<(?:SPECIAL|extra_id|reserved)_\d+>|\]~!?b[\[\]]|\[e~\["
    r"|<</?SYS>>|\[/?(?:INST|[BE]OS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
)
_ALIKE, _OWN = str.maketrans("<>[]", "‹›❲❳"), str.maketrans("‹›❲❳", "<>[]")


def without_special_tokens(text: str) -> str:
    """Return text in which brackets that look alike stand in place of those of special tokens: `‹|im_end|›`.

    They are those of the chat templates of common open models. Servers look for them in the whole prompt, a page's text included.
    """
    return _SPECIAL.sub(lambda match: match[0].translate(_ALIKE), text)


def with_special_tokens(text: str, known: Sequence[str]) -> str:
    """Return what a model wrote with the brackets of the texts that it was shown: `</s>` for its `‹/s›` if `known` holds that alone."""
    for token in dict.fromkeys(match[0] for match in _SPECIAL.finditer(text.translate(_OWN))):
        alike = token.translate(_ALIKE)
        if alike in text and any(token in each for each in known) and not any(alike in each for each in known):
            text = text.replace(alike, token)
    return text


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural: `1 step`, `2 steps`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


_FENCED = re.compile(r"⟦(?P<label>[\w ]+) (?P<mark>[0-9a-z]{8})⟧\n(?P<body>[^⟦⟧]*)\n⟦/(?P=label) (?P=mark)⟧")
_GROWING = frozenset({"steps"})
"""Labels of fences whose text grows at its end from prompt to prompt of an attempt."""
_KEY: ContextVar[bytes] = ContextVar("fence key", default=b"")


@contextmanager
def use_fence_key(key: str) -> Iterator[None]:
    """Draw, inside the context, all marks with a secret key of hex digits. Empty: from the text alone.

    A run draws a key for each attempt and journals it. A page cannot know a mark before it stands in a prompt, and cannot make another text
    with a mark that it has learned. Within an attempt equal texts have equal marks, so that servers find prompts that begin alike in their
    caches. The mark of a text that grows is drawn from its label and its first line, so that its beginning stays the same.
    """
    token = _KEY.set(bytes.fromhex(key))
    try:
        yield
    finally:
        _KEY.reset(token)


_LETTERS = str.maketrans("0123456789abcdef", "ghjkmnpqrstvwxyz")
"""Letters for hex digits. Small models took a mark with digits for the id of an element."""


def mark_of(text: str, label: str = "") -> str:
    """Return the eight letters that mark a fenced text: its digest under the key in use."""
    key, (first, _, _) = _KEY.get(), text.partition("\n")
    return _mark(f"{label}\n{first}" if key and label in _GROWING else text, key).translate(_LETTERS)


def without_key(prompt: str) -> str:
    """Return a prompt with marks that depend on the fenced texts alone: equal questions of two attempts become equal texts.

    These marks are of hex digits, as those of release 0.2, so that questions that were recorded with its templates are found.
    """

    def written_again(match: re.Match[str]) -> str:
        label, body = match["label"], match["body"]
        mark = _mark(body, b"")
        return f"⟦{label} {mark}⟧\n{body}\n⟦/{label} {mark}⟧"

    return _FENCED.sub(written_again, prompt)


def _mark(text: str, key: bytes) -> str:
    import hashlib  # not at the start of every command

    data = text.encode()
    return (hashlib.blake2b(data, key=key).hexdigest() if key else hashlib.sha256(data).hexdigest())[:8]


_OVERRIDES = (
    r"\b(?:ignore|disregard|forget|override)\b[^.]{0,30}"
    r"\b(?:previous|prior|above|earlier|preceding|all|your)\b[^.]{0,20}\b(?:instruction|rule|prompt|direction|task|goal)",
    r"\b(?:ignorier|vergiss|missacht)\w*[^.]{0,30}(?:vorherig|bisherig|obig|alle)\w*[^.]{0,20}(?:anweisung|instruktion|regel|aufgabe)",
    r"\b(?:ignor|oubli)\w*[^.]{0,30}(?:instruction|consigne)\w*|\b(?:ignora|olvida)\w*[^.]{0,30}(?:instruccion|órdenes)",
    r"\b(?:ignore|esqueça)\b[^.]{0,30}(?:instruç|ordens)|(?:игнорир|забудь)\w*[^.]{0,30}(?:инструкц|указани)",
    r"(?:忽略|无视|忘记).{0,10}(?:指令|指示|说明|要求)|(?:以前|これまで|上記|先|前).{0,8}(?:指示|命令).{0,8}(?:無視|忘れ)",
    r"\b(?:your|the) (?:new|real|true|updated) (?:instructions?|task|goal)\b[^.]{0,10}(?:\bis\b|\bare\b|:)",
)
_MODEL = (
    r"\b(?:AI|LLM|language model|automated|browsing)[ -](?:agents?|assistants?|models?|bots?)\b[^.]{0,60}"
    r"\b(?:must|should|shall|please|are (?:required|asked))\b",
    r"\b(?:notes?|messages?|instructions?|attention|notice)\b[^.]{0,6}\b(?:to|for|all)\b(?: the| any| all)?"
    r" (?:AI|LLM|language model|agent|assistant|evaluator|judge)",
    r"\byou are (?:now )?(?:an? )?(?:AI|LLM|language model|DAN)\b|\bas an AI\b|\bsystem prompt\b",
    r"\b(?:KI|Sprachmodell)\w*[^.]{0,40}\b(?:muss|müssen|soll)|\b(?:IA|modèle de langage)\b[^.]{0,40}\b(?:doi[st]|devez|doivent)\b",
    r"\b(?:IA|modelo de lenguaje|modelo de linguagem)\b[^.]{0,40}\b(?:deben?|tienen? que|devem?|tem que)\b",
    r"\b(?:ИИ|языков\w+ модел\w+)[^.]{0,40}(?:долж|обязан)|(?:AI|智能体|大模型|语言模型).{0,12}(?:必须|应当|请)",
    r"(?:AI|エージェント|言語モデル).{0,16}(?:しなさい|すること|してください|必ず|優先)",
)


@functools.cache
def _rules() -> dict[str, re.Pattern[str]]:
    """Return the patterns of each way in which a text speaks to a model."""
    return {
        "overrides instructions": re.compile("|".join(_OVERRIDES), re.I),
        "speaks to a model": re.compile("|".join(_MODEL), re.I),
        "speaks as a system or a tool": re.compile(
            r"<\|?\w*(?:im_start|im_end|endoftext|tool_call|function_call)\w*\|?>|\[/?INST\]|<\|(?:system|assistant|user)\|>"
            r"|#{2,} ?(?:system|instruction|response)\b|\bBEGIN SYSTEM",
            re.I,
        ),
        "prints a verdict or an action": re.compile(
            r"\bVerdict\s*:\s*[A-E]\b(?!\w)|\bBetter\s*:\s*(?:first|second|neither)\b|\bAction(?: \(\d+ ?%\))?\s*:\s*\w+ ?(?:\[|\\?\")"
            r"|[{,]\s*\\?\"(?:verdict|grade|better)\\?\"\s*:\s*\\?\"[A-Za-z]"
        ),
        "prints the marks of a fence": re.compile(r"[⟦⟧]"),
        "hides characters": re.compile(
            r"[\U000e0020-\U000e007f]{3}|(?:[\ufe00-\ufe0f\U000e0100-\U000e01ef]){3}|(?:[^\W\d_][\u200b\u200c\u2060-\u2064\ufeff]+){3}"
            r"|[\u202d\u202e]"
        ),
    }


@functools.lru_cache(maxsize=256)
def injections(*texts: str) -> tuple[str, ...]:
    """Return how texts of a page speak to a model, in a few words each; empty if they do not."""
    return tuple(name for name, rule in _rules().items() if any(rule.search(text) for text in texts))
