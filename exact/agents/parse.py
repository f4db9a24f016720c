"""Reading what a model wrote. Strict: what is not in the form that was asked for is an error whose text goes back to the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from exact.action import Action, ActionSpace
from exact.context import Taken
from exact.errors import ActionError, AnswerError
from exact.observation import Observation

GRADES = {"A": 1.0, "B": 0.8, "C": 0.5, "D": 0.2, "E": 0.0}
"""What a verdict says about the probability of success; the prompt `value` tells what the letters mean."""

THOUGHT = 1000
"""Characters of a thought that are kept."""

_ACTION = re.compile(r"^[ \t>*_#`-]*action[ \t*_`]*:[ \t*]*(?P<rest>[^\n]*)$", re.I | re.M)
_VERDICT = re.compile(r"^[ \t>*_#`-]*verdict[ \t*_`]*:[ \t*_`]*(?P<grade>[A-E])[ \t\r*_`.]*$", re.I | re.M)
_REASONING = re.compile(r"\A.*</think>", re.S)
_LABEL = re.compile(r"^\s*(?:thought|reasoning)\s*:\s*", re.I)


class Chosen(NamedTuple):
    """An action and the thought before it."""

    action: Action
    thought: str


class Judged(NamedTuple):
    """A grade in [0, 1] and the reasoning before it."""

    value: float
    reasoning: str


def parse_action(text: str, actions: ActionSpace, observation: Observation, tried: Sequence[Taken] = ()) -> Chosen:
    """The action in the one line `Action: ...`, in a fence or not.

    Raises ActionError: no such line or several, no action in it, an element that the observation lacks, an action in `tried`.
    """
    said = _REASONING.sub("", text)
    lines = list(_ACTION.finditer(said))
    if len(lines) != 1:
        found = "there is no line" if not lines else f"there are {len(lines)} lines"
        raise ActionError(f"{found} that begins with `Action:`: write exactly one, such as `Action: {_example(actions)}`")
    action = actions.parse(_unfenced(lines[0]["rest"], said[lines[0].end() :]))
    for id in action.elements:
        if observation.element(id) is None:
            raise ActionError(f"there is no element [{id}] in the current observation: name one that it lists")
    for taken in tried:
        if taken.action.key == action.key:
            raise ActionError(f"{action} was refused in this state: {taken.error}")
    return Chosen(action, _thought(said[: lines[0].start()]))


def parse_verdict(text: str) -> Judged:
    """The grade in the line `Verdict: ...`. Raises AnswerError: none, or several that differ."""
    said = _REASONING.sub("", text)
    lines = list(_VERDICT.finditer(said))
    grades = {line["grade"].upper() for line in lines}
    if len(grades) != 1:
        found = "there is no line" if not grades else f"there are verdicts {' and '.join(sorted(grades))}"
        raise AnswerError(f"{found}: end with one line such as `Verdict: C`, a letter from A to E")
    return Judged(GRADES[grades.pop()], _thought(said[: lines[-1].start()]))


def _unfenced(rest: str, below: str) -> str:
    """What stands behind `Action:`; where that is empty or opens a fence, the first line below."""
    if inline := rest.strip("`* \t\r"):
        return inline
    lines = (line.strip("`* \t\r") for line in below.split("\n"))
    return next((line for line in lines if line), "")


def _thought(text: str) -> str:
    thought = _LABEL.sub("", text.strip().rstrip("`").strip())
    return thought if len(thought) <= THOUGHT else thought[: THOUGHT - 1] + "…"


def _example(actions: ActionSpace) -> str:
    return next((verb.usage for verb in actions.verbs.values()), "")
