"""Parsing of model answers: one action, grade or choice, in lines, in prose or in the JSON object of a form (`exact.agents.form`).

What an answer quotes is not its own. If it gives two that differ, or none, it is an error that says which form to answer in.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from exact.action import Action, ActionSpace
from exact.agents.form import letters, narrow, objects, of_scale, preferences, read_object, text_of, unquoted, word
from exact.agents.value.samples import SCALES, GradeScale
from exact.agents.written import ACTION, first, line_end, meant, outside_code, plans
from exact.context import Context, Taken
from exact.environments.browser.act.grammar import holds
from exact.errors import ActionError, AnswerError
from exact.models.reasoning import final_answer
from exact.observation import Observation
from exact.prompts.ask import asks
from exact.text import with_special_tokens
from exact.views.labels import parse_by_label

T = TypeVar("T")

MAX_CHECKS = 4
"""Maximum number of checks in a rubric."""

MAX_THOUGHT = 1000
"""Maximum characters of a thought. Longer ones are cut."""

_GRADES = re.compile(
    r"^[ \t>*_#`-]*verdict[ \t]+(?P<number>\d{1,2})[ \t*_`]*:[ \t*_`]*(?P<grade>[A-E])(?:[ \t]+(?P<more>[^\n]*)|[ \t\r*_`.]*)$", re.I | re.M
)
_LISTED_ACTION = re.compile(
    r"^[ \t>*_#`\d.-]*action[ \t]*\(?[ \t]*(?P<percent>\d{1,3}(?:\.\d+)?)[ \t]*%[ \t]*\)?[ \t*_`]*:[ \t*]*(?P<rest>[^\n]*)$", re.I | re.M
)
_CHECK = re.compile(r"^[ \t>*_#`-]*check[ \t]*(?P<number>\d{1,2})[ \t*_`]*[:.][ \t*]*(?P<rest>[^\n]*)$", re.I | re.M)
_YES_OR_NO = re.compile(r"[*_`]*(?P<answer>yes|no)\b[*_`.,:;—– -]*(?:[\"“«](?P<quote>.*)[\"”»][.]?)?.*\Z", re.I)
_ANSWERED = re.compile(r"\?[ \t*_`]*(?:yes|no)\b.*", re.I)
"""Matches the answer that a model gives to its own check."""
_LABEL = re.compile(r"^\s*(?:thought|reasoning)\s*:\s*", re.I)


class ParsedAction(NamedTuple):
    """An action, and the thought that precedes it in the answer."""

    action: Action
    thought: str


class Grade(NamedTuple):
    """A grade in [0, 1], and the reasoning that precedes it in the answer."""

    value: float
    reasoning: str


@asks("write one line with the word Action, a colon, and one of the actions that are listed above, written as it is there")
def parse_action(
    text: str,
    actions: ActionSpace,
    observation: Observation,
    tried: Sequence[Taken] = (),
    *,
    labels: bool = False,
    known: Sequence[str] = (),
) -> ParsedAction:
    """Return the one action of an answer: in a line `Action: ...`, alone on a line, in a code fence, or in an object.

    It may be repeated. Of a plan, which is lines one below the other or numbered, it is the first, unless that would end the attempt. With
    `labels`, errors ask for elements by label and id; either is read in any case. Special tokens of `known` texts are written as there.

    Raises ActionError if there is no action, if several differ, if the action names an element that the observation lacks, or if the
    environment refused it in this state, as `tried` says. One that changed nothing visible may be repeated.
    """
    if isinstance(action := (said := read_object(text)).get("action"), str):
        inner = parse_action(_as_line(action), actions, observation, tried, labels=labels, known=known)
        return inner._replace(thought=thought(text_of(said.get("thought"))))
    answer = final_answer(text)

    def read(written: str) -> Action:
        return as_shown(_read_action(written, actions=actions, observation=observation, labels=labels), actions, known)

    found = plans(answer, actions, read)
    named = [first(plan, actions) for plan in found]
    if len(found) == 1 and len(found[0]) == 1 and isinstance(named[0], ActionError):
        raise named[0]
    keys = {action.key for action in named if isinstance(action, Action)}
    chosen = next((action for action in named if isinstance(action, Action)), None)
    if chosen is None or len(keys) != 1 or any(isinstance(action, ActionError) for action in named):
        count = sum(map(len, found))
        raise _only_form(f"there are {count} lines with actions that differ" if count else "there is no line that begins with `Action:`")
    return ParsedAction(admitted(chosen, observation, tried), thought(answer[: found[0][0].begins]))


def reader(parse: Callable[..., T], context: Context, actions: ActionSpace, *, labels: bool) -> Callable[[str], T]:
    """Return a parser of answers about a state: `parse_action` or `parse_actions`."""
    return partial(
        parse, actions=actions, observation=context.observation, tried=context.tried, labels=labels, known=context.texts
    )  # fmt: skip


def as_shown(action: Action, actions: ActionSpace, known: Sequence[str]) -> Action:
    """Return an action whose texts have the special tokens of `known` texts, which messages write with other brackets."""
    args = tuple(with_special_tokens(each, known) if isinstance(each, str) else each for each in action.args)
    return action if args == action.args else actions.action(action.name, *args)


def _read_action(text: str, *, actions: ActionSpace, observation: Observation, labels: bool) -> Action:
    """Return the action of a text: with ids, with labels, or in a form of `meant`. Raises ActionError, which asks for the given form."""
    try:
        return parse_by_label(text, actions, observation) if labels else actions.parse(text)
    except ActionError as error:
        with contextlib.suppress(ActionError):
            return parse_by_label(text, actions, observation)
        if said := meant(text, actions, observation):
            return said
        raise error


def _only_form(fault: str) -> ActionError:
    """Return the error of an answer that lacks the form."""
    error = ActionError(f"{fault}: write exactly one")
    error.only_form = True
    return error


def admitted(action: Action, observation: Observation, tried: Sequence[Taken] = ()) -> Action:
    """Return the action.

    Raises ActionError if it names an element that the observation lacks, gives a field what it holds, or was refused in this state.
    """
    for id in action.elements:
        if observation.element(id) is None:
            raise ActionError(f"there is no element [{id}] in the current observation: name one that it lists")
    if holds(action, observation.elements):
        raise ActionError(f"{action}: the element holds this already: name an action that changes something")
    for taken in tried:
        if taken.error and taken.action.key == action.key:
            raise ActionError(f"{action} was refused in this state: {taken.error}")
    return action


class ListedAction(NamedTuple):
    """One action of a list, and the model's stated confidence in it."""

    chosen: ParsedAction
    confidence: float
    """Confidence in (0, 1]."""
    span: tuple[int, int] | None = None
    """Place of the action in the answer: its first character, and the one after its last. None if unknown."""


@asks("write lines with the word Action, a percentage in brackets, a colon, and one of the actions that are listed above")
def parse_actions(
    text: str,
    actions: ActionSpace,
    observation: Observation,
    tried: Sequence[Taken] = (),
    *,
    labels: bool = False,
    known: Sequence[str] = (),
) -> tuple[ListedAction, ...]:
    """Return the distinct actions in the lines `Action (70%): ...`, each with the thought above it.

    Unusable lines are skipped. Raises ActionError, with the reason of the first such line, if no line is usable.
    """
    if listed := objects((said := read_object(text)).get("actions")):
        read = partial(parse_action, actions=actions, observation=observation, tried=tried, labels=labels, known=known)
        return _listed_objects(text, listed, text_of(said.get("thought")), read)
    answer = final_answer(text)
    begins = text.rfind(answer)
    found, error, above = dict[str, ListedAction](), _only_form("there is no line with an action and a percentage"), 0
    for line in reversed(lines := outside_code(list(_LISTED_ACTION.finditer(answer)), answer, actions)):
        above = next((line_end(other, answer, actions) for other in reversed(lines) if other.end() < line.start()), 0)
        below = answer[line.end() : line_end(line, answer, actions)]
        try:
            chosen = parse_action(
                f"{answer[above : line.start()]}\nAction: {line['rest']}{below}", actions, observation, tried, labels=labels, known=known
            )
        except ActionError as failed:
            error = failed
            continue
        span = None if begins < 0 else (begins + line.start("rest"), begins + line.end() + len(below))
        found[chosen.action.key] = ListedAction(chosen, min(1.0, max(0.01, float(line["percent"]) / 100)), span)
    if not found:
        raise error
    return tuple(found.values())[::-1]


def _listed_objects(
    text: str, listed: Sequence[Mapping[str, Any]], before: str, read: Callable[[str], ParsedAction]
) -> tuple[ListedAction, ...]:
    """Return the distinct usable actions of the objects of a list. Raises ActionError, with the first reason, if there is none."""
    found, errors, at = dict[str, ListedAction](), list[ActionError](), 0
    shares = _shares([each.get("percent") for each in listed])
    for each, share in zip(listed, shares, strict=True):
        said = text_of(each.get("action"))
        span = _span_of(said, text, at)
        at = span[1] if span else at
        try:
            chosen = read(_as_line(said))
        except ActionError as error:
            errors.append(error)
            continue
        why = thought("\n".join(filter(None, ("" if found else before, text_of(each.get("why"))))))
        found.setdefault(chosen.action.key, ListedAction(chosen._replace(thought=why), share, span))
    if not found:
        raise errors[0]
    return tuple(found.values())


def _shares(percents: Sequence[object]) -> list[float]:
    """Return confidences in (0, 1]. Numbers that are all at most 1 are shares already; anything but a number counts as an equal share."""
    numbers = [float(each) if isinstance(each, int | float) and abs(each) <= 100 else None for each in percents]
    scale = 1.0 if all(number is None or number <= 1 for number in numbers) else 100.0
    return [1 / len(numbers) if number is None else min(1.0, max(0.01, number / scale)) for number in numbers]


def _span_of(said: str, text: str, at: int) -> tuple[int, int] | None:
    """Return the place of a string in JSON text from a position on, by its characters as JSON writes them; None if it is not found."""
    for ascii in (False, True):
        written = json.dumps(said, ensure_ascii=ascii)[1:-1]
        if written and (begins := text.find(written, at)) >= 0:
            return (begins, begins + len(written))
    return None


def _as_line(action: str) -> str:
    """Return the action of an object as a line of an answer."""
    return action if ACTION.match(action) else f"Action: {action}"


@asks("end with one line that holds the word Verdict, a colon, and one letter from A to E")
def parse_grade(text: str, grades: GradeScale = SCALES["even"]) -> Grade:
    """Return the grade that an answer gives, wherever it stands.

    Raises AnswerError if there is none, or if several differ.
    """
    if "verdict" in (said := read_object(text)):
        return Grade(grades.value(_letter(said)), thought(text_of(said.get("reasoning"))))
    answer = final_answer(text)
    found = letters(answer)
    if len(found) != 1 or not found.keys() <= set("ABCDE"):
        fault = "there is no verdict" if not found else f"there are verdicts {' and '.join(sorted(found))}"
        raise AnswerError(f"{fault}: give one letter from A to E")
    [(letter, begins)] = found.items()
    return Grade(grades.value(letter), thought(answer[:begins]))


def _letter(said: Mapping[str, Any]) -> str:
    letter = word(said.get("verdict")).upper()
    if len(letter) != 1 or letter not in "ABCDE":
        raise AnswerError(f"the verdict {said.get('verdict')!r:.40} is no letter from A to E: give one of these letters")
    return letter


@asks("write one line for each step, with the word Verdict, its number, a colon, and one letter from A to E")
def parse_grades(text: str, grades: GradeScale, count: int) -> tuple[Grade, ...]:
    """Return the grades in the lines `Verdict 1: ...`, one for each of `count` states, in order.

    Raises AnswerError if a grade is missing, or if a state has several.
    """
    found = dict[int, Grade]()
    for number, letter, reasoning in _verdicts(text):
        value = grades.value(letter)
        if not 1 <= number <= count or (number in found and found[number].value != value):
            raise AnswerError(f"verdict {number} has no clear grade: write one line for each")
        found[number] = Grade(value, thought(reasoning))
    if missing := [number for number in range(1, count + 1) if number not in found]:
        raise AnswerError(f"verdict {missing[0]} is missing: write one line for each of the {count}")
    return tuple(found[number] for number in range(1, count + 1))


def _verdicts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, letter and reasoning of each verdict, from the objects of a form or from lines. Raises AnswerError."""
    if given := objects(read_object(text).get("verdicts")):
        yield from ((_count(each.get("step"), at), _letter(each), text_of(each.get("reasoning"))) for at, each in enumerate(given, 1))
        return
    answer, above = final_answer(text), 0
    for line in _GRADES.finditer(unquoted(narrow(answer))):
        if line["more"] and not of_scale(line["grade"].upper(), line["more"]):
            continue
        yield int(line["number"]), line["grade"].upper(), answer[above : line.start()]
        above = line.end()


@asks("write your case in words")
def parse_argument(text: str) -> str:
    """Return a debater's argument.

    Raises AnswerError if the answer is empty.
    """
    answer = _LABEL.sub("", final_answer(text).strip().rstrip("`").strip())
    if not answer:
        raise AnswerError("there is no case: write one, in words")
    return answer


@asks("write each check on a line with the word Check, its number, a colon, and a question that yes or no answers")
def parse_checks(text: str) -> tuple[str, ...]:
    """Return the questions in the lines `Check 1: ...`, at most `MAX_CHECKS`.

    Raises AnswerError if there is none.
    """
    if isinstance(given := read_object(text).get("checks"), list):
        text = "\n".join(f"Check {at}: {_flat(each)}" for at, each in enumerate(given, 1))
    lines = (_ANSWERED.sub("?", line["rest"].strip()) for line in _CHECK.finditer(final_answer(text)))
    found = tuple(dict.fromkeys(line for line in lines if line))
    if not found:
        raise AnswerError("there is no check: write at least one")
    return found[:MAX_CHECKS]


class CheckAnswer(NamedTuple):
    """The answer to one check of a rubric."""

    yes: bool
    quote: str = ""
    """Quotation that supports the answer. Empty if none is given."""


@asks(
    "write one line for each check, with the word Check, its number, a colon, and no, or yes and the words that show it in quotation marks"
)
def parse_check_answers(text: str, checks: int) -> tuple[CheckAnswer, ...]:
    """Return an answer to each check, in order.

    Raises AnswerError if an answer is missing, given twice, or neither yes nor no.
    """
    if given := objects(read_object(text).get("answers")):
        text = "\n".join(
            f'Check {_count(each.get("check"), at)}: {word(each.get("answer"))} "{_flat(each.get("quote"))}"'
            for at, each in enumerate(given, 1)
        )
    found = dict[int, CheckAnswer]()
    for line in _CHECK.finditer(final_answer(text)):
        number, answer = int(line["number"]), _YES_OR_NO.match(line["rest"].strip())
        if not 1 <= number <= checks:  # there is no such check
            continue
        if answer is None or number in found:
            raise AnswerError(f"check {number} has no clear answer: write one line for each")
        found[number] = CheckAnswer(answer["answer"].lower() == "yes", (answer["quote"] or "").strip())
    if len(found) != checks:
        missing = next(number for number in range(1, checks + 1) if number not in found)
        raise AnswerError(f"check {missing} is not answered: write one line for each of the {checks}")
    return tuple(found[number] for number in sorted(found))


@asks("write the word yes or the word no, and nothing else")
def parse_yes_or_no(text: str) -> bool:
    """Return whether an answer begins with yes.

    Raises AnswerError if it begins with neither yes nor no.
    """
    answer = _YES_OR_NO.match(final_answer(text).strip().lstrip("\"'“‘«"))
    if answer is None:
        raise AnswerError("the answer begins with neither yes nor no: answer with one of these words")
    return answer["answer"].lower() == "yes"


@asks("end with one line that holds the word Better, a colon, and first, second or neither")
def parse_preference(text: str) -> float:
    """Return the first state's share of the vote that an answer casts: 1, 0 or 0.5.

    Raises AnswerError if there is none, or if several differ.
    """
    if "better" in (said := read_object(text)):
        text = f"Better: {_flat(said['better'])}"
    votes = preferences(final_answer(text))
    share = {"first": 1.0, "second": 0.0, "neither": 0.5}
    if len(votes) != 1 or not votes <= share.keys():
        raise AnswerError("there is no one choice: say first, second or neither")
    return share[votes.pop()]


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _flat(value: object) -> str:
    """Return a text property in one line, so that nothing in it is read as a line of the answer."""
    return " ".join(text_of(value).split())


def thought(text: str) -> str:
    """Return the text before the decision in an answer, without its label, and cut to MAX_THOUGHT."""
    found = _LABEL.sub("", text.strip().rstrip("`").strip())
    return found if len(found) <= MAX_THOUGHT else found[: MAX_THOUGHT - 1] + "…"
