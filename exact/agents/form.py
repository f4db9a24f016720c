"""Forms of answers as JSON: the same as the lines that prompts ask for, for models that keep to a schema better than to lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from exact.models.base import AnswerForm
from exact.models.reasoning import final_answer

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
