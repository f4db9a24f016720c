"""Plans, and environments that are promoted."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from exact.action import Action
from exact.config import Config
from exact.environments.base import Transition
from exact.environments.toy.environment import ToyPosition
from exact.environments.toy.factory import ToyEdge, ToyEnvironment, ToyFactory, ToyGraph, ToyState
from exact.environments.toy.known import chain, deceptive_chain, form, maze
from exact.runs.attempt.commit import PLANNED
from exact.runs.journal import events as ev
from tests.runs.test_resume import committed, journal
from tests.runs.toys import config, toy_runner


def searched(**search: object) -> Config:
    return config(search={"algorithm": "mcts", "iterations": 24, "k": 4, "prefetch": 0, **search})


def searches(events: list[ev.AnyEvent]) -> int:
    return sum(isinstance(event, ev.Decided) and event.stopped != PLANNED for event in events)


async def test_a_plan_is_carried_out_step_by_step_each_in_two_phases(tmp_path: Path) -> None:
    (line,) = await toy_runner(tmp_path, ToyFactory(chain(4)), searched(commit="plan")).run()
    events = journal(tmp_path)
    phases = [type(event) for event in events if isinstance(event, ev.Decided | ev.Committed)]
    assert line.score == 1.0 and phases == [ev.Decided, ev.Committed] * 4
    assert searches(events) < 4
    assert [event.step for event in events if isinstance(event, ev.Decided)] == [0, 1, 2, 3]


class Elsewhere(ToyFactory):
    """Environment whose live instance has one action that leads back to its start."""

    def __init__(self, environment: object, action: str) -> None:
        super().__init__(environment)  # type: ignore[arg-type]
        self._action, self._times = action, 0

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        async with super().open(simulation=simulation) as environment:
            if not simulation:
                self._tamper(environment)
            yield environment

    def _tamper(self, environment: ToyEnvironment) -> None:
        real = environment.step

        async def step(action: Action) -> Transition:
            transition = await real(action)
            if action.key == self._action and transition.observation is not None and not self._times:
                self._times += 1
                other = msgspec.structs.replace(transition.observation, fingerprint="other")
                return msgspec.structs.replace(transition, observation=other)
            return transition

        environment.step = step  # type: ignore[method-assign]


async def test_a_plan_stops_where_the_environment_is_not_as_foreseen_and_is_made_anew(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, Elsewhere(chain(4), 'go "on"'), searched(commit="plan"))
    await runner.run()
    events = journal(tmp_path)
    commits = [event for event in events if isinstance(event, ev.Committed)]
    assert commits[0].agrees is False
    after = [event for event in events[events.index(commits[0]) :] if isinstance(event, ev.Decided)]
    assert not after or after[0].stopped != PLANNED


async def test_a_subtree_is_dropped_where_the_environment_is_not_as_foreseen_but_its_proposals_are_kept(tmp_path: Path) -> None:
    states = []
    runner = toy_runner(tmp_path, Elsewhere(chain(4), 'go "on"'), searched())
    runner.watch = lambda task, state, event: states.append((event, state.search.tree.root.visits, len(state.search.tree.root.edges)))
    await runner.run()
    committed = next(i for i, (event, *_) in enumerate(states) if isinstance(event, ev.Committed))
    assert states[committed][1] > 0
    assert states[committed + 1][1:] == (0, 2)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("environment", [chain(3), deceptive_chain(3), maze(), form(2)], ids=lambda environment: environment.name)
async def test_a_promoted_environment_is_where_the_action_would_have_led(environment: object, workers: int, tmp_path: Path) -> None:
    enacted = ToyFactory(environment)  # type: ignore[arg-type]
    promoted = ToyFactory(environment)  # type: ignore[arg-type]
    (plain,) = await toy_runner(tmp_path / "enact", enacted, searched(workers=workers)).run()
    (line,) = await toy_runner(tmp_path / "promote", promoted, searched(workers=workers, commit_by="fork")).run()
    commits = [event for event in journal(tmp_path / "promote") if isinstance(event, ev.Committed)]
    assert line.score == plain.score == 1.0
    assert [commit.action for commit in commits] == committed(journal(tmp_path / "enact"))
    assert all(commit.promoted and commit.agrees for commit in commits)
    assert line.transitions == promoted.counts.steps, "a promotion takes no step"
    assert promoted.counts.opened == promoted.counts.closed <= 2 * workers


async def test_where_nothing_rolls_back_the_action_is_carried_out(tmp_path: Path) -> None:
    environments = ToyFactory(form(2, write=True), isolated=False)
    await toy_runner(tmp_path, environments, searched(commit_by="fork")).run()
    commits = [event for event in journal(tmp_path) if isinstance(event, ev.Committed)]
    assert commits and not any(commit.promoted for commit in commits)
    assert len(environments.counts.writes) == 1


async def test_an_unseen_state_cannot_be_promoted(tmp_path: Path) -> None:
    (line,) = await toy_runner(tmp_path, ToyFactory(chain(2)), config(search={"algorithm": "react", "commit_by": "fork"})).run()
    assert line.score == 1.0
    assert not any(event.promoted for event in journal(tmp_path) if isinstance(event, ev.Committed))


def errand() -> ToyGraph:
    """Ordering writes outside, once; what comes after it can be searched only from an environment that has ordered."""
    right, wrong = ToyEdge(to="paid", prior=0.1), ToyEdge(to="lost", prior=0.9)
    states = {
        "shop": ToyState(text="A shop", edges={"order": ToyEdge(to="ordered", write=True)}, looks=0.5),
        "ordered": ToyState(text="Ordered", edges={"pay": right, "leave": wrong}, looks=0.5),
        "paid": ToyState(text="Paid", edges={"go": ToyEdge(to="home")}, looks=0.9),
        "home": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    return ToyGraph(name="errand", instruction="Order, pay and go home.", start="shop", states=states)


@pytest.mark.parametrize(("fidelity", "score"), [("full", 1.0), ("replay", 0.0)])
async def test_the_search_continues_from_a_fork_of_the_live_environment_after_a_write_outside(
    fidelity: Literal["full", "replay"], score: float, tmp_path: Path
) -> None:
    environments = ToyFactory(errand(), isolated=False, fidelity=fidelity)
    (line,) = await toy_runner(tmp_path, environments, searched()).run()
    assert (line.score, environments.counts.writes) == (score, ['shop: go "order"']), "it is written once, whatever was searched"
    routes = {event.route for event in journal(tmp_path) if isinstance(event, ev.Arrived) and event.match == "exact"}
    assert ("fork" in routes) == (fidelity == "full")


def dated(patch: pytest.MonkeyPatch) -> None:
    """Have what comes of a write tell when it was written: the next time it is another state."""
    moved, ticks = ToyEnvironment._follow, itertools.count(1)

    def later(environment: ToyEnvironment, place: ToyPosition, action: Action) -> Transition:
        transition = moved(environment, place, action)
        if not transition.effects or transition.terminated:
            return transition
        environment._position = environment._present()._replace(drift=next(ticks))
        return msgspec.structs.replace(transition, observation=environment.observation)

    patch.setattr(ToyEnvironment, "_follow", later)


@pytest.mark.parametrize("commit_by", ["replay", "fork"])
@pytest.mark.parametrize("workers", [1, 3])
async def test_the_state_after_a_write_is_searched_although_it_differs_each_time(
    commit_by: str, workers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dated(monkeypatch)
    environments = ToyFactory(errand())
    (line,) = await toy_runner(tmp_path, environments, searched(workers=workers, commit_by=commit_by)).run()
    events = journal(tmp_path)
    assert (line.score, line.drifted) == (1.0, 0)
    assert any(event.edge is not None for event in events if isinstance(event, ev.SnapshotTaken)), (
        "the search kept it as soon as it was there"
    )
    assert not environments._shared.snapshots and environments.counts.live == 0


async def test_a_snapshot_that_is_gone_is_no_way_back_to_what_was_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dated(monkeypatch)
    environments = ToyFactory(errand())
    monkeypatch.setattr(environments, "has", lambda snapshot: False)
    (line,) = await toy_runner(tmp_path, environments, searched()).run()
    assert line.drifted > 0, "the write came out differently, and that is said"


async def test_an_agent_that_does_not_search_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dated(monkeypatch)
    environments = ToyFactory(errand())
    await toy_runner(tmp_path, environments, config(search={"algorithm": "react"})).run()
    assert environments.counts.snapshots == 0
