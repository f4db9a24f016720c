"""Parsing of instructions that ask for an answer.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

import msgspec

from exact.agents.builtin.language.lexical import STOP_WORDS, vocabulary, words

AnswerType = Literal["person", "number", "date", "any"]

SENTENCE_BREAK = re.compile(r"(?<=[.?!])\s+(?=[\"'A-Z])")
"""White space between two sentences."""
_ASKED_IN = re.compile(r"[,;]?\s+and\s+(?=(?:how|what|which|who|when|where)\b)", re.I)
_ABSENT = re.compile(r"\bN/A\b")
GRAMMAR = STOP_WORDS | vocabulary(
    "how what which who whom whose where when why is are was were does did can could may might must should would will has have had be been "
    "much many i me my we our he she they it's not no but according answer tell find name number give please by see"
)
"""Words that say nothing about the subject of a question."""
_TELL_VERBS = vocabulary("tell answer give say report state name")
_PERSON, _DATE = vocabulary("who whom whose author owner"), vocabulary("when date day")
_NUMBER = vocabulary("number phone price cost costs amount total count percent euros dollars metres kilometres minutes hours")
_MEASURES = vocabulary("many much long loud far high old large big wide deep heavy fast often")


class QuestionPart(msgspec.Struct, frozen=True):
    """One fact that the instruction asks for."""

    words: frozenset[str]
    """The subject: the question's words without grammar, in lower case."""
    named: frozenset[str]
    """The words that are part of a name: capitalised, with a digit, or quoted."""
    answer_type: AnswerType


class ParsedQuestion(msgspec.Struct, frozen=True):
    """All facts that an instruction asks for."""

    parts: tuple[QuestionPart, ...]
    """One entry for each requested fact."""
    absent_answer: str = ""
    """Answer to give if there is none. Empty if the instruction names no such answer."""
    task_text: str = ""
    """The instruction without the sentences that only describe the form of the answer."""

    @property
    def words(self) -> frozenset[str]:
        """The words of all parts."""
        return frozenset[str]().union(*(part.words for part in self.parts))


@functools.lru_cache(maxsize=256)
def parse_question(instruction: str) -> ParsedQuestion | None:
    """Return the question that the instruction asks, or None if it asks nothing."""
    sentences = SENTENCE_BREAK.split(instruction.strip())
    asking = [each for each in sentences if each.endswith("?") or _asks_to_be_told(each)]
    forms = [each for each in sentences if words(each)[:1] == ("answer",) and each not in asking]
    if not asking:
        return None
    form = " ".join(forms)
    parts = tuple(_question_part(each, form) for sentence in asking for each in _ASKED_IN.split(sentence))
    absent = "N/A" if _ABSENT.search(instruction) else ""
    return ParsedQuestion(tuple(part for part in parts if part.words), absent, " ".join(each for each in sentences if each not in forms))


def _asks_to_be_told(sentence: str) -> bool:
    """Return whether a sentence asks for an answer in the form `Tell me the ...`."""
    spoken = words(sentence)
    return len(spoken) > 3 and spoken[0] in _TELL_VERBS and spoken[0] != "answer" and spoken[1] in ("me", "us", "the")


def _question_part(sentence: str, form: str) -> QuestionPart:
    spoken, requested = words(sentence), words(form)
    named = {
        word
        for n, token in enumerate(re.findall(r"[\w#@.:/-]*\w", sentence))
        for word in words(token)
        if any(c.isdigit() for c in token) or (n and token[0].isupper() and token != "I")
    }
    content = frozenset(word for word in spoken if word not in GRAMMAR)
    return QuestionPart(content, frozenset(named & content), _answer_type(spoken, requested))


def _answer_type(spoken: tuple[str, ...], requested: tuple[str, ...]) -> AnswerType:
    """Return the type of the answer: by the requested form of the answer, otherwise by the question word."""
    question, form = set(spoken), set(requested)
    if _DATE & form or "yyyy-mm-dd" in form:
        return "date"
    if "number" in form:
        return "number"
    if _PERSON & set(spoken[:2]):
        return "person"
    if spoken[:1] == ("when",) or (_DATE & question and spoken[:1] != ("how",)):
        return "date"
    if ("how" in question and _MEASURES & question) or (_NUMBER & question and not form):
        return "number"
    return "any"
