"""A state as the built-in agent sees it, and its score of an action.

Part of the built-in agent, which is not a language model.

Ranked answers to the instruction's question: statements near the question's words, of the requested type.

Part of the built-in agent, which is not a language model: it does not know the meaning of a word, so it cannot tell a right answer from one
that is merely near it.

Parsing of instructions that ask for an answer.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from exact.agents.builtin.judge.progress import InstructionProgress, assess_progress
from exact.agents.builtin.language import instruction as instructions
from exact.agents.builtin.language.clauses import ACTION_VERBS, VERBS, parse_date, tokenize
from exact.agents.builtin.language.lexical import STOP_WORDS, vocabulary, word_similarity, words
from exact.agents.builtin.language.subgoals import Goal
from exact.agents.builtin.page import page as pages
from exact.agents.builtin.page.coverage import clicked_items
from exact.agents.builtin.page.derive import TOP, Statement, read_statements
from exact.agents.builtin.page.matching import page_words
from exact.agents.builtin.page.page import Item, PageModel
from exact.context import Context, Taken

TASK_VERBS = (
    ACTION_VERBS
    | frozenset(VERBS)
    | vocabulary(
        "show display view visit create add publish unpublish update edit rename raise lower set move assign reassign accept complete hide"
    )
)
"""Verbs that begin the description of a task."""


class ActionScore(msgspec.Struct, frozen=True):
    """Score of an action, with the reason."""

    score: float
    """Probability, in [0, 1], that the action is right now."""
    reason: str
    exploratory: bool = False
    """Whether the action only explores: nothing suggests that it completes a subgoal."""


class Situation(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A state as the built-in agent sees it."""

    goal: Goal
    application: bool
    """Whether the task was set from outside the page.

    A page that sets its own task also ends the episode. An application ends nothing: the agent must stop.
    """
    verb: str
    """First verb that begins a sentence, otherwise the first word, in lower case."""
    sentence: str
    """The sentence of `verb`."""
    question: ParsedQuestion | None
    """The question that an application is asked. None if there is none."""
    answers: tuple[RankedAnswer, ...]
    """Answers that the page gives, best first."""
    search_terms: tuple[str, ...]
    """Terms to search an application for that were not used yet, the most promising first."""
    clicked_labels: frozenset[tuple[str, str]]
    """Roles and labels of the elements clicked so far."""
    previous_labels: frozenset[tuple[str, str]]
    """Roles and labels of the previous page's elements: an application repeats its menus on every page."""
    page_changed: bool
    """Whether an earlier state had another URL."""
    page: PageModel
    progress: InstructionProgress
    fingerprint: str
    history: tuple[Taken, ...]
    tried: tuple[Taken, ...]

    @property
    def menu_pending(self) -> bool:
        """Return whether the last action was on a menu and changed nothing yet: menus open late."""
        last = self.history[-1] if self.history else None
        item = self.page.by_id.get(last.action.elements[0]) if last and last.action.elements else None
        return last is not None and last.observation.fingerprint == self.fingerprint and item is not None and item.role == "menuitem"

    @property
    def target_hidden(self) -> bool:
        """Return whether the element of an open subgoal is not in sight."""
        return any(not s.done and s.best_affinity < 0.6 for s in self.progress.statuses)


def read_situation(context: Context, history: Sequence[Taken], tried: Sequence[Taken] = ()) -> Situation:
    """Return the situation of a state reached by `history`. `tried` is the actions refused in it."""
    application, observation = bool(context.task.instruction), context.observation
    asked = parse_question(context.instruction) if application else None
    goal = instructions.parse_instruction(asked.task_text if asked else context.instruction)
    page = pages.read_page(observation, goal.instruction)
    verb, about = _verb(goal.instruction)
    opened = tuple(clicked_items(goal, history))
    met = frozenset(word for item in opened for word in words(item.label))
    return Situation(
        goal=goal,
        application=application,
        verb=verb,
        sentence=about,
        question=asked,
        answers=rank_answers(asked, page, met) if asked else (),
        search_terms=_search_terms(goal, asked, page, history) if application else (),
        clicked_labels=_labels(opened),
        previous_labels=_labels(pages.read_page(history[-1].observation, goal.instruction).actable) if history else frozenset(),
        page_changed=any(step.observation.url != observation.url for step in history),
        page=page,
        progress=assess_progress(goal, page, history, application=application),
        fingerprint=observation.fingerprint,
        history=tuple(history),
        tried=tuple(tried),
    )


def _search_terms(goal: Goal, asked: ParsedQuestion | None, page: PageModel, history: Sequence[Taken]) -> tuple[str, ...]:
    """Return at most three search terms.

    Names and quoted texts come first, then words of the question that are not in sight, the longest first.
    """
    some = tokenize(goal.instruction)
    begins = {n for n, token in enumerate(some) if not n or some[n - 1].text in (".", "?", "!")}
    named = [t.text for n, t in enumerate(some) if t.quoted or (t.text in goal.literals and n not in begins and t.text != "I")]
    known = {word for text in named for word in words(text)}
    shown = page_words(page)
    plain = sorted(asked.words - known, key=lambda word: (word in shown, -len(word), word)) if asked else []
    sought = {str(step.action.args[1]) for step in history[:-1] if step.action.name == "fill" and not step.error}
    return tuple(text for text in dict.fromkeys((*named, *plain)) if text not in sought)[:3]


def _verb(instruction: str) -> tuple[str, str]:
    """Return the task's verb and its sentence: see `Situation`."""
    each = [(spoken[0], sentence) for sentence in SENTENCE_BREAK.split(instruction) if (spoken := words(sentence))]
    return next((found for found in each if found[0] in TASK_VERBS), each[0] if each else ("", ""))


def _labels(items: Iterable[Item]) -> frozenset[tuple[str, str]]:
    return frozenset((item.role, item.label) for item in items)


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
