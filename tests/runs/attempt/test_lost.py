"""States that go away: one that cannot be had again is asked for a few times, and a live one that changed by itself is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, nullcontext
from itertools import count
from pathlib import Path

import pytest

import exact
from exact.agents.agent import Agent
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import Capabilities
from exact.runs.journal import events as ev
from exact.runs.journal.search_state import MOST_DRIFTS
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.runs.test_resume import journal

DOORS = ("left", "right", "up", "down", "back", "out")
"""Behind the first one, the room is another one each time."""


class Rooms(exact.BaseEnvironment):
    actions = exact.ActionSpace(DOORS)
    capabilities = Capabilities(fidelity="replay", isolated=True, deterministic=True, evaluates=False)
    numbers, steps = count(), 0

    async def reset(self, task: Task) -> exact.Observation:
        self.room = "hall"
        return exact.Observation(text=self.room)

    async def step(self, action: exact.Action) -> exact.Transition:
        Rooms.steps += 1
        self.room = f"room {next(self.numbers)}" if self.room == "hall" and action.name == "left" else f"{self.room} {action.name}"
        return exact.Transition(observation=exact.Observation(text=self.room))


class RoomsFactory:
    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Rooms]:
        yield Rooms()


class Left:
    async def propose(self, context: Context, actions: exact.ActionSpace, k: int) -> tuple[Proposal, ...]:
        names = DOORS[:1] if context.observation.text == "hall" else DOORS
        return tuple(Proposal(action=actions.action(name), prior=1 / len(names)) for name in names)


class Even:
    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=0.5)


def attempt(folder: Path, environments: RoomsFactory, **search: object) -> Runner:
    config = parse({"search": search, "reflection": {"kind": "none"}, "limits": {"actions": 1}})
    run = create(folder, (Task(id="toy/rooms", instruction="Look."),), config, benchmark=False)
    agent = Agent(policy=Left(), value=Even())
    return Runner(folder=run, config=config, open_environments=lambda task: nullcontext(environments), build_agent=lambda *_: agent)


@pytest.mark.parametrize("workers", [1, 3])
async def test_no_environment_is_sent_again_and_again_to_a_state_that_is_lost(tmp_path: Path, workers: int) -> None:
    search = {"algorithm": "mcts", "iterations": 30, "k": 6, "depth": 3, "workers": workers, "prefetch": 0}
    (line,) = await attempt(tmp_path, RoomsFactory(), **search).run()
    assert (line.status, line.actions) == ("judged", 1)
    sent = [event.node for event in journal(tmp_path) if isinstance(event, ev.Arrived) and event.match == "drifted"]
    assert sent and max(map(sent.count, sent)) <= MOST_DRIFTS + workers - 1


class Doorbell(Rooms):
    """A hall in which it rings once."""

    async def changes(self, ids: Collection[str]) -> exact.Transition | None:
        if self.room != "hall":
            return None
        self.room = "hall, it rings"
        return exact.Transition(observation=exact.Observation(text=self.room), info={"changed": "it rings", "still": " ".join(ids)})


class Doorbells(RoomsFactory):
    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Rooms]:
        yield Rooms() if simulation else Doorbell()


@pytest.mark.parametrize("algorithm", ["react", "greedy", "mcts"])
async def test_a_search_begins_at_the_live_state_as_it_is_now(tmp_path: Path, algorithm: str) -> None:
    (line,) = await attempt(tmp_path, Doorbells(), algorithm=algorithm, iterations=4, k=2).run()
    events = [each for each in journal(tmp_path) if isinstance(each, ev.Asked | ev.Committed)]
    assert (line.status, line.actions) == ("judged", 1)
    assert isinstance(events[0], ev.Committed) and (events[0].action, events[0].changed, events[0].info["changed"]) == (
        "wait",
        True,
        "it rings",
    )
    assert [each.changed for each in events if isinstance(each, ev.Committed)] == [True, False]
