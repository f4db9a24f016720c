"""What an instruction wants to be told, where it asks for an answer.

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
"""Where one sentence ends and the next begins."""
_ASKED_IN = re.compile(r"[,;]?\s+and\s+(?=(?:how|what|which|who|when|where)\b)", re.I)
_ABSENT = re.compile(r"\bN/A\b")
GRAMMAR = STOP_WORDS | vocabulary(
    "how what which who whom whose where when why is are was were does did can could may might must should would will has have had be been "
    "much many i me my we our he she they it's not no but according answer tell find name number give please by see"
)
"""Words that tell nothing of what is asked about."""
_TELL_VERBS = vocabulary("tell answer give say report state name")
_PERSON, _DATE = vocabulary("who whom whose author owner"), vocabulary("when date day")
_NUMBER = vocabulary("number phone price cost costs amount total count percent euros dollars metres kilometres minutes hours")
_MEASURES = vocabulary("many much long loud far high old large big wide deep heavy fast often")


class QuestionPart(msgspec.Struct, frozen=True):
    """One thing to be told."""

    words: frozenset[str]
    """What it is about: the question's words without grammar, in lower case."""
    named: frozenset[str]
    """Those among them that name something: with a capital or a digit, or quoted."""
    answer_type: AnswerType


class ParsedQuestion(msgspec.Struct, frozen=True):
    """All that an instruction wants to be told."""

    parts: tuple[QuestionPart, ...]
    """One for each thing that is asked for."""
    absent_answer: str = ""
    """What to answer if there is none, where the instruction says so."""
    task_text: str = ""
    """The instruction without the sentences that only say how to answer."""

    @property
    def words(self) -> frozenset[str]:
        """Of all parts."""
        return frozenset[str]().union(*(part.words for part in self.parts))


@functools.lru_cache(maxsize=256)
def parse_question(instruction: str) -> ParsedQuestion | None:
    """What is asked; None where nothing is."""
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
    """Whether it asks to be told something: `Tell me the ...`."""
    spoken = words(sentence)
    return len(spoken) > 3 and spoken[0] in _TELL_VERBS and spoken[0] != "answer" and spoken[1] in ("me", "us", "the")


def _question_part(sentence: str, form: str) -> QuestionPart:
    spoken, told = words(sentence), words(form)
    named = {
        word
        for n, token in enumerate(re.findall(r"[\w#@.:/-]*\w", sentence))
        for word in words(token)
        if any(c.isdigit() for c in token) or (n and token[0].isupper() and token != "I")
    }
    content = frozenset(word for word in spoken if word not in GRAMMAR)
    return QuestionPart(content, frozenset(named & content), _answer_type(spoken, told))


def _answer_type(spoken: tuple[str, ...], told: tuple[str, ...]) -> AnswerType:
    """How it is to be answered: by what the answer is to be given as, else by the question word."""
    said, given = set(spoken), set(told)
    if _DATE & given or "yyyy-mm-dd" in given:
        return "date"
    if "number" in given:
        return "number"
    if _PERSON & set(spoken[:2]):
        return "person"
    if spoken[:1] == ("when",) or (_DATE & said and spoken[:1] != ("how",)):
        return "date"
    if ("how" in said and _MEASURES & said) or (_NUMBER & said and not given):
        return "number"
    return "any"
