"""Detection of the end of a task in an application, where only the agent ends an attempt.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools

from exact.agents.builtin.judge.progress import assess_progress
from exact.agents.builtin.judge.situation import ActionScore, Situation
from exact.agents.builtin.language.clauses import ACTION_VERBS, VERBS
from exact.agents.builtin.language.lexical import STOP_WORDS, normalise, vocabulary, word_similarity, words
from exact.agents.builtin.language.subgoals import roles_for_noun
from exact.agents.builtin.page import page as pages
from exact.agents.builtin.page.field_values import form_is_complete
from exact.agents.builtin.page.matching import is_submit
from exact.agents.builtin.page.page import Item, PageModel
from exact.context import Taken

_SHOW = vocabulary("open show display view see go find navigate visit bring")
_SEND = vocabulary("submit save create add publish apply confirm send update accept yes")
_DECLINE = vocabulary("no not don don't cancel keep undo discard preview")
_SAID = vocabulary("me his her its page no other")
_SENT, _DONE, _ALL = 0.85, 0.8, 0.15
"""Confidence that the attempt is at its end: after a complete form was submitted, after the verb's button was pressed on the object's page,
and when all subgoals seem completed although no form was submitted."""


def score_stop(situation: Situation, answer: str) -> ActionScore:
    """Return the score of ending the attempt with this answer."""
    if not situation.application:
        return ActionScore(0.01 if situation.progress.open or situation.target_hidden else 0.05, "stop")
    if situation.question is None:
        return ActionScore(0.02 + 0.9 * completion(situation), "nothing seems left to do" if completion(situation) >= 0.5 else "too early")
    if answer and answer == situation.question.absent_answer:
        return ActionScore(0.3 * absence(situation), "the page has nothing of it")
    score = next((each.score for each in situation.answers if each.text == answer), 0.0)
    return ActionScore(0.95 * score**1.2, f"{score:.0%} of the question is covered")


@functools.lru_cache(maxsize=64)
def completion(situation: Situation) -> float:
    """Return how surely the task is completed, in [0, 1], for an instruction that asks no question."""
    if situation.verb in _SHOW:
        return _display_share(situation)
    progress = situation.progress
    everything = _ALL * progress.confidence if progress.tasks and not progress.open else 0.0
    return max(everything, _submission(situation))


def absence(situation: Situation) -> float:
    """Return how surely the requested answer does not exist, in [0, 1].

    It rises with the number of steps and falls with the score of the best answer.
    """
    best = situation.answers[0].score if situation.answers else 0.0
    return (1 - best) * min(1.0, 0.25 * len(situation.history))


def nearness_to_end(situation: Situation) -> float:
    """Return how near the attempt is to its end, in [0, 1]: the score of the best answer in sight, or the completion."""
    if situation.question is None:
        return completion(situation)
    best = situation.answers[0].score if situation.answers else 0.0
    return max(best, absence(situation) * 0.4 if situation.question.absent_answer else 0.0)


def carries_out(situation: Situation, item: Item) -> bool:
    """Return whether a button performs the instruction's verb, on a page whose headings name the object."""
    return item.role == "button" and _names_the_verb(situation, item, situation.page)


def _names_the_verb(situation: Situation, item: Item, page: PageModel) -> bool:
    label = set(words(item.label))
    return situation.verb in label and not label & _DECLINE and _heading_share(situation, page) >= 0.6


def sends(situation: Situation, item: Item) -> float:
    """Return the score of a button that submits a form with values of the instruction, in [0, 1]. 0 for other elements."""
    label = set(words(item.label))
    if item.role != "button" or not (_SEND | {situation.verb}) & label or label & _DECLINE:
        return 0.0
    done = form_is_complete(situation.goal.instruction, situation.page)
    return 0.0 if done is None else 0.85 if done else 0.08


def _submission(situation: Situation) -> float:
    """Return how surely an earlier click performed or submitted the task and the page changed after it, in [0, 1]."""
    if any(carries_out(situation, item) for item in situation.page.actable):
        return 0.0  # the page still asks for confirmation
    found = 0.0
    for n, step in enumerate(situation.history):
        page = pages.read_page(step.observation, situation.goal.instruction)
        item = page.by_id.get(step.action.elements[0]) if step.action.elements and step.action.name == "click" and not step.error else None
        after = situation.history[n + 1].observation.fingerprint if n + 1 < len(situation.history) else situation.fingerprint
        if item is None or step.observation.fingerprint == after:
            continue
        if item.role == "button" and _names_the_verb(situation, item, page):
            found = max(found, _DONE)
        elif normalise(item.label) != "search" and (is_submit(item) or (item.role == "button" and _SEND & set(words(item.label)))):
            found = max(found, _SENT * _completeness(situation, page, situation.history[:n]))
    return found


def _completeness(situation: Situation, page: PageModel, before: tuple[Taken, ...]) -> float:
    """Return how surely all values were entered when the form was submitted, in [0, 1]."""
    if (done := form_is_complete(situation.goal.instruction, page)) is not None:
        return float(done)
    then = assess_progress(situation.goal, page, before, application=True)
    filled = [status for status in then.tasks if status.subgoal.kind in ("fill", "select", "unselect")]
    return then.confidence if filled and all(status.done for status in filled) else 0.0


def _display_share(situation: Situation) -> float:
    """Return the share of the requested object that the page's headings name, on a page reached from another one."""
    return _heading_share(situation, situation.page) if situation.history else 0.0


def _heading_share(situation: Situation, page: PageModel) -> float:
    """Return the share of the instruction's words in the page's headings, names weighted most, in [0, 1]."""
    head = {word for item in page.items if item.role == "heading" and not item.echo for word in words(item.element.name)}
    weights = _content_weights(situation)
    if not weights:
        return 0.0
    met = sum(weight * max((word_similarity(word, other) for other in head), default=0.0) for word, weight in weights.items())
    return met / sum(weights.values())


def _content_weights(situation: Situation) -> dict[str, float]:
    """Return the instruction's words without grammar, verbs and role names. Words in values weigh double."""
    named = {word for text in situation.goal.literals for word in words(text)}
    before = set(words(situation.goal.instruction.partition(situation.sentence)[0])) & named
    spoken = (set(words(situation.sentence)) | before) - STOP_WORDS - set(VERBS) - ACTION_VERBS - _SHOW - _SAID - {situation.verb}
    return {word: 2.0 if word in named else 1.0 for word in sorted(spoken) if roles_for_noun(word) is None}
