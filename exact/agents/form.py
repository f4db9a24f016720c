"""Forms of answers as JSON: the same as the lines that prompts ask for, for models that keep to a schema better than to lines.

Choices in an answer's prose: a letter, or one of a few words, found in any of the ways in which models give them.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from exact.models.base import AnswerForm
from exact.models.reasoning import final_answer
from exact.prompts.library import render_macro

_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_GRADE: dict[str, Any] = {"type": "string", "enum": ["A", "B", "C", "D", "E"]}
_FENCED = re.compile(r"```[a-z]*\s*\n(?P<code>.*?)\n?[ \t]*```\s*\Z", re.S | re.I)


def _object(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has exactly these properties, in this order."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(each: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": each}


ACTION = AnswerForm(
    schema=_object(thought=_TEXT, action=_TEXT),
    example='{"thought": "<your thoughts>", "action": "<what would follow `Action:`>"}',
)
ACTION_ALONE = AnswerForm(schema=_object(action=_TEXT), example='{"action": "<what would follow `Action:`>"}')
"""Form of a model that reasons before it answers."""
ACTIONS = AnswerForm(
    schema=_object(thought=_TEXT, actions=_list(_object(why=_TEXT, action=_TEXT, percent=_NUMBER))),
    example='{"thought": "<your thoughts>", "actions": '
    '[{"why": "<a sentence>", "action": "<what would follow `Action:`>", "percent": <how sure you are>}]}',
)
GRADE = AnswerForm(
    schema=_object(reasoning=_TEXT, verdict=_GRADE),
    example='{"reasoning": "<your reasons>", "verdict": "<a letter>"}',
)
GRADES = AnswerForm(
    schema=_object(verdicts=_list(_object(step=_NUMBER, reasoning=_TEXT, verdict=_GRADE))),
    example='{"verdicts": [{"step": 1, "reasoning": "<your reasons>", "verdict": "<a letter>"}]}',
)
CHECKS = AnswerForm(schema=_object(checks=_list(_TEXT)), example='{"checks": ["<a question>"]}')
CHECK_ANSWERS = AnswerForm(
    schema=_object(answers=_list(_object(check=_NUMBER, quote=_TEXT, answer={"type": "string", "enum": ["yes", "no"]}))),
    example='{"answers": [{"check": 1, "quote": "<words that show it, or nothing>", "answer": "<yes or no>"}]}',
)
PREFERENCE = AnswerForm(
    schema=_object(reasoning=_TEXT, better={"type": "string", "enum": ["first", "second", "neither"]}),
    example='{"reasoning": "<your reasons>", "better": "<first, second or neither>"}',
)


def read_object(text: str) -> Mapping[str, Any]:
    """Return the JSON object that an answer consists of, in a fence or not; empty if it is not one, so that its lines are read."""
    answer = final_answer(text).strip()
    if fenced := _FENCED.match(answer):
        answer = fenced["code"].strip()
    if not answer.startswith("{"):
        return {}
    try:
        found = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return found if isinstance(found, dict) else {}


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list; none if it is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def word(value: object) -> str:
    """Return a one-word property in lower case; empty if it is not a text."""
    return value.strip(" .`*\n").casefold() if isinstance(value, str) else ""


def text_of(value: object) -> str:
    """Return a text property; empty if it is not a text."""
    return value if isinstance(value, str) else ""


LEAST_OF_SCALE = 8
"""Characters from which the beginning of a line of the scale is told from other words."""
MOST_OBJECTS = 50
"""Most braces of an answer at which a JSON object is looked for."""

_NARROW = str.maketrans({chr(wide): chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)} | {"。": ".", "｡": ".", "\u3000": " "})
_QUOTED = re.compile(r"""
    "[^"\n]{2,}" | “[^”\n]{2,}” | «[^»\n]{2,}» | ‘[^’\n]{2,}’ | (?<!\w)'[^'\n]{2,}'(?!\w)
""", re.X)  # fmt: skip
"""Matches a quotation on one line. A single character in quotation marks is the answer's own emphasis."""
_DRESS = r"[ \t*_`\"'“”‘’]*+"
_LETTER = rf"(?P<letter>[A-E]){_DRESS}"
_GRADE_LINE = re.compile(rf"^[ \t>*_#`-]*verdict{_DRESS}:{_DRESS}{_LETTER.replace('A-E', 'A-Ea-e')}[.\r]*[ \t]*$", re.I | re.M)
_GRADE_SAID = re.compile(
    rf"\b(?i:verdict|grade|final answer)\b(?:[ \t]+(?:of|for|on)\b[^.:;\n]{{0,60}}?)?{_DRESS}(?:(?i:is|would be|should be)|[:=]){_DRESS}:?"
    rf"{_DRESS}(?:(?i:grade|verdict){_DRESS}:?{_DRESS})?{_LETTER}(?=[.,;!)\n]|$|[—–-]\s|\(|because\b|since\b|(?P<more>[^\n]+))"
)
_LONE_LETTER = re.compile(rf"\W*(?:(?i:grade|verdict|option|answer)\W*)?{_LETTER}\W*")
_SCALE_LINE = re.compile(r"^[^\w\n]*(?P<letter>[A-E])[\s:.)*_–—-]+(?P<more>[^\n]+)$", re.M)
_WAYS = "(?:way|state|one|option|path|case)"
_PREFERENCE_SAID = re.compile(
    rf"^[ \t>*_#`-]*better{_DRESS}:{_DRESS}(?:the[ \t]+)?(?P<line>first|second|neither)\b(?=(?:[ \t]+{_WAYS})?{_DRESS}(?:[.,;(\r]|$))"
    rf"|\bbetter[ \t]+(?:{_WAYS}[ \t]+)?is[ \t]*:?{_DRESS}(?:the[ \t]+)?(?P<said>first|second|neither)\b"
    rf"|\b(?P<which>first|second|neither)(?:[ \t]+(?:{_WAYS}|of them))?[ \t]+is[ \t]+(?:clearly[ \t]+)?(?:better|nearer|closer)\b",
    re.I | re.M,
)


def narrow(text: str) -> str:
    """Return a text with full-width letters, digits and punctuation as ASCII, each in its place."""
    return text.translate(_NARROW)


def unquoted(text: str) -> str:
    """Return a text with spaces in place of what it quotes: words of a page, of a step or of another model."""
    return _QUOTED.sub(lambda found: " " * len(found[0]), text)


def embedded(text: str, key: str = "") -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield place and content of each JSON object in a text that has a key; of each one without `key`.

    An object in quotation marks is quoted.
    """
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(MOST_OBJECTS):
        begins = text.find("{", at)
        if begins < 0:
            return
        at = begins + 1
        if text[begins - 1 : begins] in ('"', "“", "'", "‘"):
            continue
        try:
            found, at = decoder.raw_decode(text, begins)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and (not key or key in found):
            yield begins, found


def letters(answer: str) -> dict[str, int]:
    """Return the grades that an answer gives, each with the place where it begins: in a line, in prose, in an object, or as the last line.

    What the answer quotes does not count, nor does a letter that a sentence goes on with. One line of the scale counts; several are a copy
    of the scale.
    """
    text, found = unquoted(narrow(answer)), dict[str, int]()
    for line in _GRADE_LINE.finditer(text):
        found[line["letter"].upper()] = line.start()
    for said in _GRADE_SAID.finditer(text):
        if not said["more"] or of_scale(said["letter"], said["more"]):
            found.setdefault(said["letter"], said.start())
    for begins, said_object in embedded(answer, "verdict"):
        found.setdefault(word(said_object["verdict"]).upper()[:9], begins)
    last = text.rstrip().rpartition("\n")[2]
    if alone := _LONE_LETTER.fullmatch(last):
        found.setdefault(alone["letter"], len(text.rstrip()) - len(last))
    scale = [line for line in _SCALE_LINE.finditer(text) if of_scale(line["letter"], line["more"])]
    if len({line["letter"] for line in scale}) == 1:
        found.setdefault(scale[0]["letter"], scale[0].start())
    return found


def preferences(answer: str) -> set[str]:
    """Return the choices among `first`, `second` and `neither` that an answer makes, outside of what it quotes."""
    text = unquoted(narrow(answer))
    found = {next(filter(None, said.groups())).lower() for said in _PREFERENCE_SAID.finditer(text)}
    return found | {word(said["better"]) for _, said in embedded(answer, "better")}


def of_scale(letter: str, text: str) -> bool:
    """Return whether a text is what the prompt's scale says of a letter."""
    given = _flat_words(text)
    return any(len(given) >= LEAST_OF_SCALE and (said.startswith(given) or given.startswith(said)) for said in _scale().get(letter, ()))


@functools.cache
def _scale() -> Mapping[str, tuple[str, ...]]:
    """Return the meanings of each letter in the package's prompts."""
    rows = [line.partition("  ") for line in render_macro("grading").splitlines()]
    found = dict[str, tuple[str, ...]]()
    for letter, _, said in rows:
        if len(letter) == 1:
            found[letter] = (*found.get(letter, ()), _flat_words(said))
    return found


def _flat_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
