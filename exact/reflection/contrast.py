"""Signals of wrong expectations, with their sizes, from which reflections are written.

Signals are kept apart, because each stands for a different fault. `outcome`: a step changed the value of the state. `policy`: the search
chose another action than the policy's favourite, and for a reason. `judge`: the value of a state differed from its first evaluation.
`sibling`: another action was better in the end. `branch`: a path that failed in the search. `edge` and `edge_value` are ExACT's
(arXiv:2410.02052): the value after a step against Q when it was chosen, and for judges against the next Q.

A reflector without a language model: it fills in one sentence from the observations.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import msgspec

from exact.action import Action
from exact.context import Context, Evaluation, Reflection, Taken
from exact.observation import Element, Observation
from exact.reflection.base import Kind, Surprise
from exact.reflection.record import action_label, clipped, quoted, reflection_record

Signal = Literal["outcome", "policy", "judge", "sibling", "branch", "edge", "edge_value"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was not committed."""

    action: str
    """Canonical text of the action."""
    value: float
    """Q, in [0, 1]."""
    visits: int = 1
    after: Observation | None = None
    """Observation that it led to in the search, if it was seen."""


class FailedPath(msgspec.Struct, frozen=True, kw_only=True):
    """A path that left the committed one and was observed to end badly."""

    step: Taken
    """Step at which it left the committed path."""
    after: Observation | None
    depth: int
    """Depth of its end, in actions from the task's start."""
    value: float
    """Value of its end, in [0, 1]."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one committed step, in [0, 1]; None: unknown."""

    step: Taken
    after: Observation | None
    """Resulting observation; None if the episode ended."""
    node: int
    before: float | None
    """V of the state in which it was taken, from before the step."""
    chosen: float | None
    """Q of the action at the decision."""
    chosen_visits: int = 1
    expected: float | None = None
    """The same Q without the evaluation of the resulting state, which the search may have made before."""
    came: float | None = None
    """First evaluation of the resulting state; the outcome if the step was the last."""
    first: float | None = None
    """First evaluation of the resulting state, in any case."""
    judgement: Evaluation | None = None
    """The same evaluation with its reasons."""
    final: float | None = None
    """Later value of the resulting state; the outcome if the step was the last."""
    following: float | None = None
    """Q of the next committed action at its decision; the outcome if the step was the last."""
    favourite: Option | None = None
    """Action with the highest prior, if it is another one and was searched."""
    best_other: Option | None = None
    """Best-valued action that was not committed."""
    failed: FailedPath | None = None
    noise: float = 0.3
    """Standard deviation of one evaluation, as estimated by the search."""


def contrast(
    records: Sequence[Record], *, signals: Sequence[Signal], threshold: float, most: int = 1, praise: bool = True
) -> tuple[tuple[Kind, Surprise], ...]:
    """Return the steps that deserve a reflection: at most `most` for the policy and as many for the value function, the largest first.

    A surprise counts from `threshold` on, by its size in [0, 1]. Of equal ones the earliest is taken, because later ones often follow from
    it, and of several signals about one action the largest. Refused steps led nowhere and are passed over. Without `praise`, for attempts
    that failed, a step that came out better than expected does not count for the policy: its success was only believed.
    """
    found = [
        (kind, each)
        for record in records if not record.step.error
        for kind, each in _all(record, signals)
        if praise or kind == "value" or each.surprise < 0
    ]  # fmt: skip
    ranked = sorted((each for each in found if each[1].size >= threshold), key=lambda each: -each[1].size)
    picked, seen = list[tuple[Kind, Surprise]](), set[tuple[str, int, str]]()
    for kind, surprise in ranked:
        about = (kind, surprise.node, surprise.step.action.key)
        if about not in seen and sum(each == kind for each, _ in picked) < most:
            seen.add(about)
            picked.append((kind, surprise))
    return tuple(picked)


def _all(record: Record, signals: Sequence[Signal]) -> Iterator[tuple[Kind, Surprise]]:
    for signal in signals:
        match signal:
            case "outcome":
                yield from _between(record, signal, "policy", record.before, record.came)
            case "judge":
                yield from _between(record, signal, "value", record.first, record.final)
            case "edge":
                yield from _between(record, signal, "policy", record.expected, record.came)
            case "edge_value":
                yield from _between(record, signal, "value", record.first, record.following)
            case "policy":
                yield from _corrected(record)
            case "sibling":
                yield from _against(record, signal, record.best_other, record.final)
            case "branch":
                yield from _failed(record)


def _between(record: Record, signal: Signal, kind: Kind, expected: float | None, real: float | None) -> Iterator[tuple[Kind, Surprise]]:
    """Compare the result of the committed step with its expectation."""
    if expected is None or real is None:
        return
    other = record.best_other
    yield (
        kind,
        Surprise(
            step=record.step,
            after=record.after,
            expected=expected,
            real=real,
            value_before=record.before if record.before is not None else expected,
            alternative=other.action if other else "",
            alternative_value=other.value if other else None,
            alternative_after=other.after if other else None,
            node=record.node,
            signal=signal,
            judgement=record.judgement,
        ),
    )


def _corrected(record: Record) -> Iterator[tuple[Kind, Surprise]]:
    """Return the surprise that the search chose against the policy, by more than the noise of both values."""
    other = record.favourite
    if other is None or record.chosen is None:
        return
    error = record.noise * math.sqrt(1 / max(1, other.visits) + 1 / max(1, record.chosen_visits))
    if record.chosen - other.value > error:
        yield from _against(record, "policy", other, record.chosen)


def _against(record: Record, signal: Signal, other: Option | None, real: float | None) -> Iterator[tuple[Kind, Surprise]]:
    """Contrast the committed action with another one in the same state."""
    if other is None or real is None:
        return
    yield (
        "policy",
        Surprise(
            step=record.step,
            after=record.after,
            expected=other.value,
            real=real,
            value_before=record.before if record.before is not None else other.value,
            alternative=other.action,
            alternative_value=other.value,
            alternative_after=other.after,
            node=record.node,
            signal=signal,
        ),
    )


def _failed(record: Record) -> Iterator[tuple[Kind, Surprise]]:
    """Contrast the first action of a path that failed with the committed one."""
    way = record.failed
    if way is None or record.before is None:
        return
    yield (
        "policy",
        Surprise(
            step=way.step,
            after=way.after,
            expected=record.before,
            real=way.value,
            value_before=record.before,
            alternative=record.step.action.key,
            alternative_value=record.chosen,
            alternative_after=record.after,
            node=record.node,
            signal="branch",
        ),
    )


_QUOTE_LENGTH, _QUOTE_WORDS = 40, 4
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_READABLE = frozenset({"heading", "alert", "status", "dialog", "StaticText", "text"})


class BuiltinReflector:
    """A reflector that fills in a template. Text from the page is quoted, and such a reflection is marked as tainted."""

    def __init__(self, *, run: str = "", clock: Callable[[], float] = time.time) -> None:
        """Take the run's name for the reflections' provenance, and a clock of Unix seconds."""
        self._run, self._clock = run, clock

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection:
        """Return a reflection on a surprise. It makes no calls and never fails."""
        before = surprise.step.observation
        came = outcome(before, surprise.after)
        sentence = _policy_sentence if kind == "policy" else _value_sentence
        seen = (before, surprise.after) if surprise.after else (before,)
        return reflection_record(
            context,
            surprise,
            kind,
            sentence(surprise, condition(before), came),
            expected=surprise.expectation if kind == "value" else f"success with probability {surprise.expected:.2f}",
            real=f"{came}; success with probability {surprise.real:.2f}",
            run=self._run,
            created=self._clock(),
            tainted=any(page.text or page.elements or page.title for page in seen),
        )


def condition(observation: Observation) -> str:
    """Return a few quotes from a page: its title, its first text, and the fields and choices that are set."""
    title = [f"titled {_quote(observation.title)}"] if observation.title.strip() else []
    named = [e for e in observation.elements if e.name.strip() and e.visible]
    readable = [e for e in named if e.role in _READABLE] or named
    chosen = [e for e in named if e.value or {"checked", "selected", "pressed"} & set(e.states)]
    parts = title + [_quote(e.name) for e in readable[:2]] + [_state(e) for e in chosen[:1]]
    return "a page " + (parts[0] if title else f"showing {parts[0]}" if parts else "without text") + "".join(f", {p}" for p in parts[1:])


def outcome(before: Observation, after: Observation | None) -> str:
    """Return a few quotes of the changes that a step made."""
    if after is None:
        return "the attempt ended"
    if after.fingerprint == before.fingerprint:
        return "nothing changed"
    old = {(e.role, e.name, e.value, e.states) for e in before.elements}
    new = [e for e in after.elements if e.name.strip() and (e.role, e.name, e.value, e.states) not in old]
    if new:
        return "the page then showed " + " and ".join(_state(e) for e in new[:2])
    return "the page changed" if after.url == before.url else "another page came"


def _policy_sentence(surprise: Surprise, where: str, came: str) -> str:
    done = _brief(surprise.step.action, surprise.step.observation)
    gap = f"success was expected at {surprise.expected:.2f} but came out at {surprise.real:.2f}, for {came}"
    other = _brief(surprise.alternative, surprise.step.observation)
    if surprise.surprise >= 0:
        advice = "Prefer it in such a state" + (f" to {other}." if other else ".")
    elif other:
        judged = "" if surprise.alternative_value is None else f" (judged {surprise.alternative_value:.2f})"
        advice = f"In such a state consider {other}{judged} first."
    else:
        advice = "In such a state look for what is still open before doing it."
    return f"On {where}: after {done} {gap}. {advice}"


def _value_sentence(surprise: Surprise, where: str, came: str) -> str:
    done = _brief(surprise.step.action, surprise.step.observation)
    direction = "higher" if surprise.surprise >= 0 else "lower"
    gap = f"was valued {surprise.expected:.2f} but turned out {surprise.real:.2f}, for {came}"
    return f"On {where}: {done} {gap}. Judge this step in such a state {direction}."


def _state(element: Element) -> str:
    value = f" = {_quote(element.value)}" if element.value else ""
    marks = f" {element.states[0]}" if element.states else ""
    return f"{element.role} {_quote(element.name)}{value}{marks}"


def _brief(action: Action | str, observation: Observation) -> str:
    """Return an action's label with its strings shortened."""
    return _STRING.sub(lambda match: _quote(json.loads(match[0])), action_label(action, observation))


def _quote(text: str) -> str:
    return quoted(clipped(text, _QUOTE_WORDS), _QUOTE_LENGTH)
