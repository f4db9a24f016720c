"""Strict parsing of model answers, which are lines or the JSON object of a form (`exact.agents.form`).

An answer that is not in the requested form is an error. The error's text goes back to the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from exact.action import Action, ActionSpace
from exact.agents.form import objects, read_object, text_of, word
from exact.agents.value.samples import SCALES, GradeScale
from exact.context import Taken
from exact.errors import ActionError, AnswerError
from exact.models.reasoning import final_answer
from exact.observation import Observation
from exact.views.labels import parse_by_label, usage

MAX_CHECKS = 4
"""Maximum number of checks in a rubric."""

MAX_THOUGHT = 1000
"""Maximum characters of a thought. Longer ones are cut."""

_ACTION = re.compile(r"^[ \t>*_#`-]*action[ \t*_`]*:[ \t*]*(?P<rest>[^\n]*)$", re.I | re.M)
_GRADE = re.compile(r"^[ \t>*_#`-]*verdict[ \t*_`]*:[ \t*_`]*(?P<grade>[A-E])[ \t\r*_`.]*$", re.I | re.M)
_GRADES = re.compile(r"^[ \t>*_#`-]*verdict[ \t]+(?P<number>\d{1,2})[ \t*_`]*:[ \t*_`]*(?P<grade>[A-E])[ \t\r*_`.]*$", re.I | re.M)
_LISTED_ACTION = re.compile(
    r"^[ \t>*_#`\d.-]*action[ \t]*\(?[ \t]*(?P<percent>\d{1,3}(?:\.\d+)?)[ \t]*%[ \t]*\)?[ \t*_`]*:[ \t*]*(?P<rest>[^\n]*)$", re.I | re.M
)
_CHECK = re.compile(r"^[ \t>*_#`-]*check[ \t]*(?P<number>\d{1,2})[ \t*_`]*[:.][ \t*]*(?P<rest>[^\n]*)$", re.I | re.M)
_YES_OR_NO = re.compile(r"[*_`]*(?P<answer>yes|no)\b[*_`.,:;—– -]*(?:[\"“«](?P<quote>.*)[\"”»][.]?)?.*\Z", re.I)
_PREFERENCE = re.compile(r"^[ \t>*_#`-]*better[ \t*_`]*:[ \t*_`]*(?P<which>first|second|neither)[ \t\r*_`.]*$", re.I | re.M)
_BLOCK = re.compile(r"\s*```[^\n]*\n(?P<code>.*?)\n?[ \t]*```[ \t]*(?:\n|\Z)", re.S)
_CLOSED_QUOTE = re.compile(r""""(?:[^"\\]|\\.)*"|“[^”]*”|(?<=\s)'(?:[^'\\]|\\.)*'""")
_OPEN_QUOTE = re.compile(r"[\"“]")
_UNTIL_STRAIGHT, _UNTIL_CURLY = re.compile(r'(?:[^"\\]|\\.)*"', re.S), re.compile(r"[^”]*”")
_LABEL = re.compile(r"^\s*(?:thought|reasoning)\s*:\s*", re.I)


class ParsedAction(NamedTuple):
    """An action, and the thought that precedes it in the answer."""

    action: Action
    thought: str


class Grade(NamedTuple):
    """A grade in [0, 1], and the reasoning that precedes it in the answer."""

    value: float
    reasoning: str


def parse_action(
    text: str, actions: ActionSpace, observation: Observation, tried: Sequence[Taken] = (), *, labels: bool = False
) -> ParsedAction:
    """Return the action in the line `Action: ...`, inside a code fence or not. The line may be repeated with the same action.

    With `labels`, elements may be named by label as well as by id.

    Raises ActionError if there is no such line, if several lines differ, if the line holds no action, if the action names an element that
    the observation lacks, or if the environment refused the action in this state, as `tried` says. One that changed nothing visible may be
    repeated.
    """
    if isinstance(action := (said := read_object(text)).get("action"), str):
        chosen = parse_action(_as_line(action), actions, observation, tried, labels=labels)
        return chosen._replace(thought=thought(text_of(said.get("thought"))))
    answer = final_answer(text)
    read = partial(parse_by_label, actions=actions, observation=observation) if labels else actions.parse
    lines = _outside_code(list(_ACTION.finditer(answer)), answer, actions)
    if not lines:
        raise ActionError(f"there is no line that begins with `Action:`: write exactly one, such as `Action: {_example(actions, labels)}`")
    try:
        found = {action.key: action for action in (_line_action(line, answer, actions, read) for line in lines)}
    except ActionError:
        if len(lines) == 1:
            raise
        found = {}
    if len(found) != 1:
        raise ActionError(
            f"there are {len(lines)} lines that begin with `Action:`: write exactly one, such as `Action: {_example(actions, labels)}`"
        )
    (action,) = found.values()
    return ParsedAction(admitted(action, observation, tried), thought(answer[: lines[0].start()]))


def admitted(action: Action, observation: Observation, tried: Sequence[Taken] = ()) -> Action:
    """Return the action. Raises ActionError if it names an element that the observation lacks, or was refused in this state."""
    for id in action.elements:
        if observation.element(id) is None:
            raise ActionError(f"there is no element [{id}] in the current observation: name one that it lists")
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


def parse_actions(
    text: str, actions: ActionSpace, observation: Observation, tried: Sequence[Taken] = (), *, labels: bool = False
) -> tuple[ListedAction, ...]:
    """Return the distinct actions in the lines `Action (70%): ...`, each with the thought above it.

    Unusable lines are skipped. Raises ActionError, with the reason of the first such line, if no line is usable.
    """
    if listed := objects((said := read_object(text)).get("actions")):
        read = partial(parse_action, actions=actions, observation=observation, tried=tried, labels=labels)
        return _listed_objects(text, listed, text_of(said.get("thought")), read)
    answer = final_answer(text)
    begins = text.rfind(answer)
    found, error, above = dict[str, ListedAction](), ActionError(f"there is no line such as `Action (70%): {_example(actions, labels)}`"), 0
    for line in reversed(lines := _outside_code(list(_LISTED_ACTION.finditer(answer)), answer, actions)):
        above = next((_line_end(other, answer, actions) for other in reversed(lines) if other.end() < line.start()), 0)
        below = answer[line.end() : _line_end(line, answer, actions)]
        try:
            chosen = parse_action(
                f"{answer[above : line.start()]}\nAction: {line['rest']}{below}", actions, observation, tried, labels=labels
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
    return action if _ACTION.match(action) else f"Action: {action}"


def parse_grade(text: str, grades: GradeScale = SCALES["even"]) -> Grade:
    """Return the grade in the line `Verdict: ...`.

    Raises AnswerError if there is no such line, or if several lines differ.
    """
    if "verdict" in (said := read_object(text)):
        return Grade(grades.value(_letter(said)), thought(text_of(said.get("reasoning"))))
    answer = final_answer(text)
    lines = list(_GRADE.finditer(answer))
    letters = {line["grade"].upper() for line in lines}
    if len(letters) != 1:
        found = "there is no line" if not letters else f"there are verdicts {' and '.join(sorted(letters))}"
        raise AnswerError(f"{found}: end with one line such as `Verdict: C`, a letter from A to E")
    return Grade(grades.value(letters.pop()), thought(answer[: lines[-1].start()]))


def _letter(said: Mapping[str, Any]) -> str:
    letter = word(said.get("verdict")).upper()
    if len(letter) != 1 or letter not in "ABCDE":
        raise AnswerError(f"the verdict {said.get('verdict')!r:.40} is no letter from A to E: give one of these letters")
    return letter


def parse_grades(text: str, grades: GradeScale, count: int) -> tuple[Grade, ...]:
    """Return the grades in the lines `Verdict 1: ...`, one for each of `count` states, in order.

    Raises AnswerError if a grade is missing, or if a state has several.
    """
    found = dict[int, Grade]()
    for number, letter, reasoning in _verdicts(text):
        value = grades.value(letter)
        if not 1 <= number <= count or (number in found and found[number].value != value):
            raise AnswerError(
                f"verdict {number} has no clear grade: write one line for each, such as `Verdict {min(number, count) or 1}: C`"
            )
        found[number] = Grade(value, thought(reasoning))
    if missing := [number for number in range(1, count + 1) if number not in found]:
        raise AnswerError(f"there is no line `Verdict {missing[0]}: ...`: write one for each of the {count}")
    return tuple(found[number] for number in range(1, count + 1))


def _verdicts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, letter and reasoning of each verdict, from the objects of a form or from lines. Raises AnswerError."""
    if given := objects(read_object(text).get("verdicts")):
        yield from ((_count(each.get("step"), at), _letter(each), text_of(each.get("reasoning"))) for at, each in enumerate(given, 1))
        return
    answer, above = final_answer(text), 0
    for line in _GRADES.finditer(answer):
        yield int(line["number"]), line["grade"].upper(), answer[above : line.start()]
        above = line.end()


def parse_argument(text: str) -> str:
    """Return a debater's argument.

    Raises AnswerError if the answer is empty.
    """
    answer = _LABEL.sub("", final_answer(text).strip().rstrip("`").strip())
    if not answer:
        raise AnswerError("there is no case: write one, in words")
    return answer


def parse_checks(text: str) -> tuple[str, ...]:
    """Return the questions in the lines `Check 1: ...`, at most `MAX_CHECKS`.

    Raises AnswerError if there is none.
    """
    if isinstance(given := read_object(text).get("checks"), list):
        text = "\n".join(f"Check {at}: {_flat(each)}" for at, each in enumerate(given, 1))
    found = tuple(line["rest"].strip() for line in _CHECK.finditer(final_answer(text)) if line["rest"].strip())
    if not found:
        raise AnswerError("there is no check: write at least one line such as `Check 1: Is the box ticked?`")
    return found[:MAX_CHECKS]


class CheckAnswer(NamedTuple):
    """The answer to one check of a rubric."""

    yes: bool
    quote: str = ""
    """Quotation that supports the answer. Empty if none is given."""


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
        if answer is None or number in found or not 1 <= number <= checks:
            raise AnswerError(
                f'check {number} has no clear answer: write one line for each, `Check {number}: no` or `Check {number}: yes "..."`'
            )
        found[number] = CheckAnswer(answer["answer"].lower() == "yes", (answer["quote"] or "").strip())
    if len(found) != checks:
        missing = next(number for number in range(1, checks + 1) if number not in found)
        raise AnswerError(f"check {missing} is not answered: write one line for each of the {checks}")
    return tuple(found[number] for number in sorted(found))


def parse_yes_or_no(text: str) -> bool:
    """Return whether an answer begins with yes.

    Raises AnswerError if it begins with neither yes nor no.
    """
    answer = _YES_OR_NO.match(final_answer(text).strip().lstrip("\"'“‘«"))
    if answer is None:
        raise AnswerError("the answer begins with neither yes nor no: answer with one of these words")
    return answer["answer"].lower() == "yes"


def parse_preference(text: str) -> float:
    """Return the first state's share of the vote in the line `Better: ...`: 1, 0 or 0.5.

    Raises AnswerError if there is no such line, or if several lines differ.
    """
    if "better" in (said := read_object(text)):
        text = f"Better: {_flat(said['better'])}"
    votes = {line["which"].lower() for line in _PREFERENCE.finditer(final_answer(text))}
    if len(votes) != 1:
        raise AnswerError("there is no one line `Better: first`, `Better: second` or `Better: neither`: end with it")
    return {"first": 1.0, "second": 0.0, "neither": 0.5}[votes.pop()]


def _line_action(line: re.Match[str], answer: str, actions: ActionSpace, read: Callable[[str], Action]) -> Action:
    """Return the action of a line, with the code block or the rest of the quoted text below it. Raises ActionError."""
    below = answer[line.end() :]
    return _code_action(line["rest"], below, actions) or read(_action_text(line["rest"], below))


def _code_action(rest: str, below: str, actions: ActionSpace) -> Action | None:
    """Return the action whose code is in the block below, or None if the verb takes no code.

    Raises ActionError if the block is missing.
    """
    verb = actions.code
    if verb is None or rest.strip("`* \t\r") != verb.name:
        return None
    block = _BLOCK.match(below)
    if block is None:
        raise ActionError(f"there is no block below `Action: {verb.name}`: write the code between ```{verb.code} and ```")
    return actions.action(verb.name, block["code"])


def _line_end(line: re.Match[str], answer: str, actions: ActionSpace) -> int:
    """Return the end of an action in the answer, including the code block or the rest of the quoted text below its line."""
    below = answer[line.end() :]
    if actions.code and line["rest"].strip("`* \t\r") == actions.code.name:
        block = _BLOCK.match(below)
        return line.end() + (block.end() if block else 0)
    return line.end() + len(_quoted_rest(line["rest"], below))


def _outside_code(lines: list[re.Match[str]], answer: str, actions: ActionSpace) -> list[re.Match[str]]:
    """Return the lines that are not inside the code block or the quoted text of an earlier line."""
    found, end = list[re.Match[str]](), 0
    for line in lines:
        if line.start() >= end:
            found.append(line)
            end = _line_end(line, answer, actions)
    return found


def _action_text(rest: str, below: str) -> str:
    """Return the text after `Action:`, with the lines below that end its quoted text.

    If it is empty or opens a fence, return the first line below.
    """
    if inline := (rest + _quoted_rest(rest, below)).strip("`* \t\r\n"):
        return inline
    lines = (line.strip("`* \t\r") for line in below.split("\n"))
    return next((line for line in lines if line), "")


def _quoted_rest(rest: str, below: str) -> str:
    """Return the text below a line up to the quotation mark that closes the one in the line; empty if the line opens none."""
    opened = _OPEN_QUOTE.search(_CLOSED_QUOTE.sub("", rest))
    if opened is None:
        return ""
    closed = (_UNTIL_CURLY if opened[0] == "“" else _UNTIL_STRAIGHT).match(below)
    return closed[0] if closed else ""


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _flat(value: object) -> str:
    """Return a text property in one line, so that nothing in it is read as a line of the answer."""
    return " ".join(text_of(value).split())


def thought(text: str) -> str:
    """Return the text before the decision in an answer, without its label, and cut to MAX_THOUGHT."""
    found = _LABEL.sub("", text.strip().rstrip("`").strip())
    return found if len(found) <= MAX_THOUGHT else found[: MAX_THOUGHT - 1] + "…"


def _example(actions: ActionSpace, labels: bool) -> str:
    return next((usage(verb) if labels else verb.usage for verb in actions.verbs.values()), "")
