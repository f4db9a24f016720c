"""All checks, and how they run.

Remains of closed environments: processes, memory, descriptors.
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import EnvironmentFactory
from exact.environments.check import guarantees
from exact.environments.check.base import Broken, Check, Finding, Propose, Skip, StepTally, Subject, run
from exact.errors import ActionError
from exact.observation import Observation
from exact.task import Task

SLACK, MEMORY = 8 * 2**20, 64 * 1024
"""Bytes that may be held more after a quarter of the cycles, once and for each cycle, because allocators and caches settle.

The check compares the minimum of each quarter, since servers keep connections open for a moment. Growth must occur twice: a heap that is
enlarged grows once (a JavaScript driver's by 27 MiB after about a hundred environments), and a process that ends late looks like growth.
"""

_PROC = Path("/proc")

LEAST = 4
"""Minimum number of environments opened and closed, however little time there is."""

LOOKS = 8
"""Measurements in each quarter but the first."""


class Held(dict[str, float]):
    """Resources of this process and its descendants: `processes`, `descriptors`, `bytes`."""


async def nothing_is_left(subject: Subject) -> str:
    """Check that environments that are opened, used and closed leave no process, memory or descriptor behind."""
    if not _counts():
        raise Skip("this system has no /proc, by which processes and memory are counted")
    await _use(subject)
    cycles = max(LEAST, int(min(subject.cycles, subject.seconds / max(subject.now() - subject.began, 1e-9))))
    quarter = max(1, cycles // 4)
    stride, begin = max(1, quarter // LOOKS), cycles - 3 * quarter
    looks: list[list[Held]] = [[], [], []]
    for cycle in range(cycles):
        if cycle:
            await _use(subject)
        part, place = divmod(cycle - begin, quarter)
        if part >= 0 and (quarter - 1 - place) % stride == 0:
            looks[part].append(held())
    for what, most in (("processes", 0.0), ("descriptors", 0.0), ("bytes", SLACK + MEMORY * quarter)):
        first, second, third = (min(look[what] for look in part) for part in looks)
        if min(second - first, third - second) > most:
            raise Broken(f"{third - first:.0f} {what} more after {2 * quarter} cycles: something is not closed")
    return f"{cycles} cycles"


def _counts() -> bool:
    """Return whether this system reports processes and their memory and descriptors."""
    return _PROC.is_dir()


async def _use(subject: Subject) -> None:
    async with subject.environment() as environment:
        await subject.walk(environment, await subject.reset(environment), 2, "leak")


def held() -> Held:
    """Return the present resources of this process and all its descendants."""
    gc.collect()
    family = _family()
    return Held(
        processes=len(family),
        descriptors=sum(_count(_PROC / str(id) / "fd") for id in family),
        bytes=sum(_resident(id) for id in family),
    )


def _family() -> list[int]:
    """Return the ids of this process and all its living descendants."""
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found = {os.getpid()}
    while more := {id for id, parent in parents.items() if parent in found and id not in found}:
        found |= more
    return sorted(found)


def _count(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return 0


def _resident(id: int) -> int:
    try:
        return int((_PROC / str(id) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


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

    `limit`: seconds that one call may take; a call that takes longer hangs. None: the environments' `call_seconds`.
    `quick`: fewer depths, actions and environments, and if that would take more than QUICK_SECONDS, fewer still.
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
    """Yield a failed finding if no step was accepted in any check, so that those that passed prove nothing."""
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
    """Return the action, or None if the verb does not take the made-up arguments."""
    try:
        return actions.action(verb.name, *args)
    except ActionError:
        return None
