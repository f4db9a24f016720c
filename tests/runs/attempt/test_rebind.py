"""Committed actions in an environment that counts its elements otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.agents.agent import Agent
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import Capabilities, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure
from exact.evaluation.replay import finished_state, replay
from exact.observation import Element, Observation
from exact.runs.attempt.live import rebind
from exact.runs.runner import Runner, create
from exact.task import Outcome, Score, Task

ACTIONS = ActionSpace([Verb(name="press", form=(Parameter.ELEMENT,)), Verb(name="label", form=(Parameter.ELEMENT, Parameter.TEXT))])
TASK = Task(id="lamps/3", instruction="Turn all lamps on.")


def seen(*ids: str, fingerprint: str = "state") -> Observation:
    return Observation(text="", fingerprint=fingerprint, elements=tuple(Element(id=id, role="button") for id in ids))


def test_an_action_is_rebound_to_the_elements_at_the_same_positions() -> None:
    assert rebind(ACTIONS, "press [2]", seen("1", "2"), seen("7", "9")).key == "press [9]"
    assert rebind(ACTIONS, 'label [2] "1"', seen("1", "2"), seen("2", "1")).key == 'label [1] "1"', "a text is no id"


@pytest.mark.parametrize("now", [seen("7", fingerprint="other"), seen("7", "8", "9"), None])
def test_an_element_that_cannot_be_recognised_keeps_its_id(now: Observation | None) -> None:
    assert rebind(ACTIONS, "press [2]", seen("1", "2"), now).key == "press [2]"


def named(fingerprint: str, **elements: str) -> Observation:
    """Elements by id and name."""
    found = tuple(Element(id=id[1:], role="button", name=name) for id, name in elements.items())
    return Observation(text="", fingerprint=fingerprint, elements=found)


def test_an_element_is_recognised_in_another_state_by_role_and_name() -> None:
    then = named("then", _1="Save", _2="Edit", _3="Edit")
    now = named("now", _4="1 second ago", _5="Edit", _6="Save", _7="Edit")
    assert rebind(ACTIONS, "press [1]", then, now).key == "press [6]"
    assert rebind(ACTIONS, "press [3]", then, now).key == "press [7]", "the second of two"
    assert rebind(ACTIONS, "press [3]", then, named("now", _5="Edit")).key == "press [3]", "which of two is not known"
    swapped = named("now", _2="Save", _1="Edit", _3="Edit")
    assert rebind(ACTIONS, "press [1]", then, swapped).key == "press [2]", "an id may be another element's by now"


class Lamps:
    """Three lamps with a switch each. No two environments count from the same number."""

    actions, capabilities = ACTIONS, Capabilities(fidelity="replay", isolated=True)

    def __init__(self, first: int) -> None:
        self._first, self._lit = first, set[int]()

    async def reset(self, task: Task) -> Observation:
        self._lit.clear()
        return self._look()

    async def step(self, action: Action) -> Transition:
        at = int(action.elements[0]) - self._first
        if at not in range(3):
            raise ActionError(f"there is no {action.elements[0]}")
        self._lit.add(at)
        return Transition(observation=None if len(self._lit) == 3 else self._look(), terminated=len(self._lit) == 3)

    async def evaluate(self, outcome: Outcome) -> Score:
        return Score(value=len(self._lit) / 3, success=len(self._lit) == 3)

    async def snapshot(self) -> Snapshot:
        raise EnvironmentFailure("none")

    async def restore(self, snapshot: Snapshot) -> Observation:
        raise EnvironmentFailure("none")

    async def close(self) -> None:
        """Close nothing."""

    def _look(self) -> Observation:
        names = ["on" if at in self._lit else "off" for at in range(3)]
        elements = tuple(Element(id=str(self._first + at), role="switch", name=name) for at, name in enumerate(names))
        return Observation(text=" ".join(names), fingerprint="".join(names), elements=elements)


class LampFactory:
    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Lamps]:
        yield Lamps(next(self._numbers))


class Off:
    """Presses the first switch that is off."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        return tuple(Proposal(action=actions.action("press", e.id), prior=1.0) for e in context.observation.elements if e.name == "off")[:1]

    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=0.5)


async def test_an_attempt_is_replayed_where_elements_are_counted_otherwise(tmp_path: Path) -> None:
    config = parse({"search": {"algorithm": "react"}, "reflection": {"kind": "none"}})
    run, agent = create(tmp_path / "run", (TASK,), config), Agent(policy=Off(), value=Off())

    @asynccontextmanager
    async def environments(task: Task) -> AsyncIterator[LampFactory]:
        yield LampFactory(count(1))

    await Runner(folder=run, config=config, open_environments=environments, build_agent=lambda *_: agent).run()
    state = finished_state(run, config, TASK)
    assert state is not None and [step.action for step in state.live.committed] == ["press [1]", "press [2]", "press [3]"]
    found = await replay(LampFactory(count(100)), TASK, state, run.blobs)
    assert (found.match, found.score) == ("same", 1.0)
