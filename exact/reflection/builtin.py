"""A reflector without a language model: it fills in one sentence from the observations."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

from exact.action import Action
from exact.context import Context, Reflection
from exact.observation import Element, Observation
from exact.reflection.base import Kind, Surprise
from exact.reflection.record import action_label, clipped, quoted, reflection_record

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
    """Return a few quotes of what a step changed."""
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
