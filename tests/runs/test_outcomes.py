"""Environments that do not always do the same: an action has several outcomes, and only broken arrivals close."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from exact.config import Config
from exact.environments.base import Fidelity
from exact.environments.toy.factory import ToyEdge, ToyFactory, ToyGraph, ToyState
from exact.runs.journal import events as ev
from exact.runs.journal.state import fold
from exact.search.base import Diverged, Failure, Selection
from tests.runs.test_resume import Killed, committed, journal, kill_at, repeated_facts
from tests.runs.toys import config, toy_runner


def crossing() -> ToyGraph:
    """Thin ice that looks best and breaks every other time, and a bridge. Behind both are several ways, so environments come back often."""
    ways = {f"way {i}": ToyEdge(to=f"hut {i}") for i in range(3)}
    huts = {f"hut {i}": ToyState(text=f"Hut {i}", edges={"in": ToyEdge(to="over")}, looks=0.7) for i in range(3)}
    states = {
        "bank": ToyState(
            text="A frozen river",
            edges={"ice": ToyEdge(to="shore", prior=0.6, slips={"water": 0.5}), "bridge": ToyEdge(to="end of the bridge", prior=0.4)},
            looks=0.5,
        ),
        "shore": ToyState(text="Over the ice", edges=ways, looks=0.8),
        "end of the bridge": ToyState(text="Over the bridge", edges=ways, looks=0.6),
        "water": ToyState(text="The ice broke", edges={"on": ToyEdge(to="lost")}, looks=0.0),
        "over": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    return ToyGraph(name="crossing", instruction="Cross the river.", start="bank", states=states | huts, seed=3)


SEARCH = {"algorithm": "mcts", "iterations": 40, "k": 4, "retries": 9}
SETTINGS = {workers: config(search={**SEARCH, "workers": workers, "environments": workers}) for workers in (1, 2)}
"""No environment more than there are workers, so that states are walked to."""
ONCE = {workers: config(search={**SEARCH, "algorithm": "best_first", "workers": workers, "environments": workers}) for workers in (1, 2)}
"""A search that takes each step once: other outcomes are met on the way alone."""


def brittle() -> ToyGraph:
    """A plank that breaks every other time, which ends the episode, and three ways on from it."""
    first = ToyEdge(to="plank", slips={"river": 0.5})
    planks = {f"plank {i}": ToyState(text=f"Plank {i}", edges={"on": ToyEdge(to="over")}, looks=0.6) for i in range(3)}
    states = {
        "bank": ToyState(text="A bridge", edges={"go": first}, looks=0.5),
        "plank": ToyState(text="A plank", edges={name: ToyEdge(to=name) for name in planks}, looks=0.8),
        "over": ToyState(reward=1.0),
        "river": ToyState(reward=0.0),
    }
    return ToyGraph(name="brittle", instruction="Cross the river.", start="bank", states=states | planks, seed=1)


@pytest.mark.parametrize("workers", [1, 2])
async def test_an_episode_that_ends_where_it_went_on_before_is_another_outcome(workers: int, tmp_path: Path) -> None:
    events = await cross(tmp_path, workers, brittle(), "replay")
    met = [event.diverged.stepped for event in events if isinstance(event, ev.Arrived) and event.diverged is not None]
    assert any(stepped.terminated and not stepped.fingerprint for stepped in met)
    assert isinstance(events[-1], ev.Finished) and events[-1].status == "scored"


async def cross(
    folder: Path, workers: int = 1, graph: ToyGraph | None = None, fidelity: Fidelity = "full", settings: dict[int, Config] = ONCE
) -> list[ev.AnyEvent]:
    await toy_runner(folder, ToyFactory(graph or crossing(), fidelity=fidelity, latency=lambda: asyncio.sleep(0)), settings[workers]).run()
    return journal(folder)


async def test_another_state_on_the_way_is_another_outcome_and_not_a_failure(tmp_path: Path) -> None:
    events = await cross(tmp_path)
    told = [event.result for event in events if isinstance(event, ev.Told)]
    assert any(isinstance(result, Diverged) for result in told)
    assert not [result for result in told if isinstance(result, Failure) and result.kind == "drifted"]


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_step_that_is_taken_again_and_again_shows_its_outcomes(workers: int, tmp_path: Path) -> None:
    events = await cross(tmp_path, workers, settings=SETTINGS)
    told = [event.result for event in events if isinstance(event, ev.Told)]
    assert not [result for result in told if isinstance(result, Failure) and result.kind == "drifted"]
    tree = fold(SETTINGS[workers], events).search.tree
    edge = next(edge for edge in tree.nodes[0].edges if edge.action.key == 'go "ice"')
    assert len({node.fingerprint for node in edge.outcomes}) == 2
    assert committed(events)[0] == 'go "bridge"', "the ice looks better, and is until it breaks"


@pytest.mark.parametrize("nth", [40, 80, 120])
async def test_a_step_that_was_taken_again_is_a_fact_that_a_resume_keeps(nth: int, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, nth, written=True)
        with pytest.raises(Killed):
            await cross(tmp_path, settings=SETTINGS)
    resumed = await cross(tmp_path, settings=SETTINGS)
    again = {
        event.answer.id for event in resumed if isinstance(event, ev.Asked) and isinstance(event.answer, Selection) and event.answer.again
    }
    acted = [event.selection for event in resumed if isinstance(event, ev.Acted) and event.selection in again]
    assert again and len(acted) == len(set(acted))
    assert isinstance(resumed[-1], ev.Finished) and fold(SETTINGS[1], resumed).search.tree.stochastic


async def test_an_outcome_met_on_the_way_is_a_fact_that_a_resume_keeps(tmp_path: Path) -> None:
    whole = await cross(tmp_path / "whole")
    at = [i for i, event in enumerate(whole, 1) if isinstance(event, ev.Arrived) and event.diverged is not None]
    assert at
    for nth in at[:3]:
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=True)
            with pytest.raises(Killed):
                await cross(tmp_path / str(nth))
        resumed = await cross(tmp_path / str(nth))
        met = next(event for event in resumed if isinstance(event, ev.Arrived) and event.diverged is not None)
        told = [event.result for event in resumed if isinstance(event, ev.Told) and event.selection == met.selection]
        assert told[-1] == met.diverged
        assert repeated_facts(resumed) == []
