"""Ranked answers to the instruction's question: statements near the question's words, of the requested type.

Part of the built-in agent, which is not a language model: it does not know the meaning of a word, so it cannot tell a right answer from one
that is merely near it.
"""

from __future__ import annotations

import functools
import re

import msgspec

from exact.agents.builtin.language.dates import parse_date
from exact.agents.builtin.language.lexical import word_similarity, words
from exact.agents.builtin.language.question import GRAMMAR, AnswerType, ParsedQuestion, QuestionPart
from exact.agents.builtin.page.evidence import TOP, Statement, read_statements
from exact.agents.builtin.page.page import PageModel

MAX_ANSWERS = 4
"""Maximum number of answers considered in a state."""
_MISFIT, _KNOWN, _WHOLE, _TAIL = 0.55, 0.4, 0.88, 0.95
_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{2,4}")


class RankedAnswer(msgspec.Struct, frozen=True, order=True):
    """One possible answer."""

    score: float
    """Share of the question that the answer's context covers, in [0, 1]."""
    text: str


@functools.lru_cache(maxsize=512)
def rank_answers(asked: ParsedQuestion, page: PageModel, met: frozenset[str]) -> tuple[RankedAnswer, ...]:
    """Return the best answers that a page gives, best first, at most `MAX_ANSWERS`.

    `met` is the set of words of the elements opened on the way to the page.
    """
    each = [_rank_part(part, page, met) for part in asked.parts]
    if not each or not all(each):
        return ()
    if len(each) == 1:
        return tuple(each[0][:MAX_ANSWERS])
    best = [found[0] for found in each]
    together = RankedAnswer(sum(found.score for found in best) / len(best), ", ".join(dict.fromkeys(found.text for found in best)))
    return (together, *sorted((found for some in each for found in some[:2]), reverse=True))[:MAX_ANSWERS]


def _rank_part(part: QuestionPart, page: PageModel, met: frozenset[str]) -> list[RankedAnswer]:
    found: dict[str, float] = {}
    for fact in read_statements(page):
        score = _score(part, fact, met)
        if score > found.get(fact.text, 0.0):
            found[fact.text] = score
    ranked = sorted(found.items(), key=lambda each: -round(each[1], 6))
    return [RankedAnswer(round(score, 6), text) for text, score in ranked[: 2 * MAX_ANSWERS]]


def _score(part: QuestionPart, fact: Statement, met: frozenset[str]) -> float:
    own = set(words(fact.text))
    if own <= GRAMMAR:
        return 0.0
    reached = {
        word: max(_closeness(word, fact), TOP if any(word_similarity(word, other) >= 0.85 for other in met) else 0.0) for word in part.words
    }
    weights = {word: 1.6 if word in part.named else 1.0 for word in part.words}
    share = sum(weights[word] * level for word, level in reached.items()) / sum(weights.values())
    if not fact.whole:
        share *= 1.0 if fits_type(part.answer_type, fact.text) else _MISFIT
        share *= _KNOWN if all(any(word_similarity(word, other) >= 0.85 for other in part.words) for word in own) else 1.0
        return share * _TAIL ** max(0, len(own) - 3)
    return _WHOLE * share * (1.0 if part.answer_type == "any" or fits_type(part.answer_type, fact.text) else _MISFIT)


def _closeness(word: str, fact: Statement) -> float:
    """Return how closely a word is connected to a statement, in [0, 1]. Similar words count by their similarity."""
    if word in fact.surroundings:
        return fact.surroundings[word]
    return max((level * likeness for other, level in fact.surroundings.items() if (likeness := word_similarity(word, other))), default=0.0)


def fits_type(sort: AnswerType, text: str) -> bool:
    """Return whether a text is of the requested type."""
    digits = any(c.isdigit() for c in text)
    match sort:
        case "number":
            return digits and not _DAY.search(text)
        case "date":
            return parse_date(text) is not None or bool(_DAY.search(text))
        case "person":
            return not digits and 1 <= len(words(text)) <= 3
        case "any":
            return True
