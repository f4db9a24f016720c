"""All checks, and how they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import EnvironmentFactory
from exact.environments.check import guarantees
from exact.environments.check.base import Check, Finding, Propose, StepTally, Subject, run
from exact.environments.check.leaks import nothing_is_left
from exact.errors import ActionError
from exact.observation import Observation
from exact.task import Task

CHECKS: Mapping[str, Check] = {
    "resets alike": guarantees.resets_alike,
    "actions round trip": guarantees.actions_round_trip,
    "repeats": guarantees.repeats,
    "elements can be acted on": guarantees.elements_can_be_acted_on,
    "snapshots are states": guarantees.snapshots_are_states,
    "environments are independent": guarantees.environments_are_independent,
    "forks are independent": guarantees.forks_are_independent,
    "errors are typed": guarantees.errors_are_typed,
    "nothing is left": nothing_is_left,
}
"""Every check by name, in order of execution."""

DEPTH, QUICK_DEPTH = 8, 3
STEPS, QUICK_STEPS = 8, 5
WAYS, QUICK_WAYS = 3, 1
CYCLES, QUICK_CYCLES = 200, 8
QUICK_SECONDS = 48.0
_SHARES = {"elements can be acted on": 2.0, "snapshots are states": 4.0, "environments are independent": 2.0, "nothing is left": 4.0}
"""Shares of the time of all checks; 1 for those not named. Unused time passes to later checks."""
KEYS = ("Tab", "x", "ArrowDown")


async def check(
    environments: EnvironmentFactory,
    task: Task,
    *,
    quick: bool = False,
    limit: float | None = None,
    propose: Propose | None = None,
    names: Iterable[str] = CHECKS,
) -> list[Finding]:
    """Run the checks one after the other.

    `limit`: seconds that one call may take; a call that takes longer hangs. None: what the environments state as `call_seconds`.
    `quick`: fewer depths, actions and environments, and where that would take more than QUICK_SECONDS, fewer still.
    """
    subject = Subject(
        environments=environments,
        task=task,
        propose=propose or possible,
        limit=limit,
        depth=QUICK_DEPTH if quick else DEPTH,
        steps=QUICK_STEPS if quick else STEPS,
        ways=QUICK_WAYS if quick else WAYS,
        cycles=QUICK_CYCLES if quick else CYCLES,
    )
    chosen, found = list(names), list[Finding]()
    end = subject.now() + QUICK_SECONDS
    for i, name in enumerate(chosen):
        share, of = _SHARES.get(name, 1.0), sum(_SHARES.get(each, 1.0) for each in chosen[i:])
        seconds = max(end - subject.now(), 0.0) * share / of if quick else math.inf
        found.append(await run(name, CHECKS[name], subject, seconds))
    return [*found, *_unstepped(subject.tally, found)]


def _unstepped(tally: StepTally, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a failed finding where no step was accepted in any check, so that those that passed say nothing."""
    if tally.accepted or not (tally.tried or all(each.passed for each in found)):
        return
    what = f"all {tally.tried} were refused, the last {tally.refusal}" if tally.tried else "none was known for what the environment shows"
    yield Finding(
        name="steps are accepted",
        passed=False,
        detail=f"no action could be taken, so nothing was examined: {what}: give actions that the task accepts with --actions FILE",
    )


def possible(seen: Observation, actions: ActionSpace) -> list[Action]:
    """Return actions that the grammar and the elements of a state allow: each verb with each visible element, texts from their names."""
    return [action for verb in actions.verbs.values() for action in _of(verb, seen, actions)]


def _of(verb: Verb, seen: Observation, actions: ActionSpace) -> list[Action]:
    kinds = [part for part in verb.form if isinstance(part, Parameter)]
    shown = [element for element in seen.elements if element.visible and element.role != "StaticText"]
    if len(kinds) != len([part for part in verb.form if isinstance(part, Parameter) or "|" in part]):
        return []
    match kinds:
        case []:
            return [actions.action(verb.name)]
        case [Parameter.ELEMENT]:
            given: list[tuple[str, ...]] = [(element.id,) for element in shown]
        case [Parameter.TEXT]:
            given = [(key,) for key in KEYS] if verb.name == "press" else [(element.name,) for element in shown if element.name]
        case [Parameter.ELEMENT, Parameter.TEXT]:
            given = [(element.id, "ab") for element in shown if element.role in ("textbox", "searchbox")]
        case _:
            return []
    return [action for args in given if (action := _made(verb, args, actions)) is not None]


def _made(verb: Verb, args: tuple[str, ...], actions: ActionSpace) -> Action | None:
    """Return the action, or None where the verb does not take the made-up arguments."""
    try:
        return actions.action(verb.name, *args)
    except ActionError:
        return None
