"""Answers of real instruct models are read as an attentive person reads them.

`answers.jsonl`: what Qwen2.5-Coder 0.5B and 1.5B answered (bench/roles.py --record), labelled by hand before the parser was written: a
grade, an action, the end of a text, or null for one that must be asked again. `questions.json.gz` has the prompts and the pages.
"""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.agents import parse
from exact.agents.value.samples import SCALES
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import ActionError, AnswerError
from exact.models.base import ChatRequest, Message, Sampling, Text
from exact.models.scripted import Reply, ScriptedModel
from exact.observation import Observation
from exact.prompts.ask import ask, whole_lines, whole_sentences
from exact.reflection.llm import parse_expectation, parse_reflection

HERE = Path(__file__).parent
ANSWERS = [json.loads(line) for line in (HERE / "answers.jsonl").read_text("utf-8").splitlines()]
QUESTIONS = json.loads(gzip.decompress((HERE / "questions.json.gz").read_bytes()))
WHOLE = "whole"
LETTERS = {SCALES["even"].value(letter): letter for letter in "ABCDE"}


def letter(text: str) -> str:
    return LETTERS[parse.parse_grade(text).value]


def action(text: str, labels: bool, seen: Observation) -> str:
    return str(parse.parse_action(text, BROWSER_ACTIONS, seen, labels=labels).action)


def reader(answer: dict[str, Any]) -> Any:
    """Return the parser of an answer, whose results are compared with the label."""
    match answer["kind"]:
        case "action" | "label":
            seen = msgspec.convert(QUESTIONS[answer["question"]]["observation"], Observation)
            return partial(action, labels=answer["kind"] == "label", seen=seen)
        case "grades":
            return lambda text: [LETTERS[each.value] for each in parse.parse_grades(text, SCALES["even"], 2)]
        case "check_answers":
            return lambda text: [("yes" if each.yes else "no") for each in parse.parse_check_answers(text, 1)]
        case "reflection":
            return lambda text: parse_reflection(text).reflection
        case kind:
            return {
                "grade": letter, "argument": parse.parse_argument,
                "checks": lambda text: list(parse.parse_checks(text)), "expectation": parse_expectation,
                "preference": parse.parse_preference,
            }[kind]  # fmt: skip


async def read(answer: dict[str, Any]) -> Any:
    """Return what is read of an answer to its question; None if it would be asked again."""
    model = ScriptedModel(lambda question, sample: Reply(text=answer["answer"], finish=answer["finish"]))
    asked = (Message("system", (Text("Answer."),)), Message("user", (Text(QUESTIONS[answer["question"]]["text"]),)))
    cut = whole_sentences if answer["kind"] == "argument" else whole_lines
    try:
        [found] = await ask(model, ChatRequest(messages=asked, sampling=Sampling(), role="r"), reader(answer), seed=1, cut=cut)
    except (ActionError, AnswerError):
        return None
    return found if len(model.requests) == 1 else None


def agrees(answer: dict[str, Any], found: Any) -> bool:
    wanted = answer["read"]
    if answer["kind"] in ("argument", "expectation", "reflection") and isinstance(wanted, str):
        return isinstance(found, str) and found.endswith(answer["answer"][-40:].strip() if wanted == WHOLE else wanted)
    return bool(found == wanted)


@pytest.mark.parametrize("answer", ANSWERS, ids=[f"{at}-{each['kind']}" for at, each in enumerate(ANSWERS)])
async def test_an_answer_is_read_as_a_person_reads_it(answer: dict[str, Any]) -> None:
    found = await read(answer)
    assert agrees(answer, found), f"read {found!r}, not {answer['read']!r}: {answer['answer']}"
