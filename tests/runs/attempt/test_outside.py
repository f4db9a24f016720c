"""An environment that keeps what is written: the search goes on after a committed write, with forks and without."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

import pytest

from exact.config import Config
from exact.environments.base import Snapshot
from exact.environments.toy.factory import ToyEdge, ToyEnvironment, ToyFactory, ToyGraph, ToyState
from exact.runs.journal import events as ev
from tests.runs.test_resume import committed, journal
from tests.runs.toys import config, toy_runner

ALGORITHMS = ("mcts", "gumbel", "abmcts", "greedy", "flat_halving", "best_first", "best_of_n", "beam", "tot_bfs", "tot_dfs", "react")
FIDELITY = ("full", "replay")


SAMPLED = ("abmcts", "best_of_n")
"""Algorithms that draw single actions from the policy, and so need one that is surer."""


def wiki(sure: float = 0.48) -> ToyGraph:
    """Five steps, of which the first and the last two write; at each the policy knows the way, and the judge that a wrong page is worse."""
    steps = ("create", "edit", "preview", "save", "publish")
    states = {"away": ToyState(text="Elsewhere", edges={"wander": ToyEdge(to="away")}, looks=0.1), "end": ToyState(reward=1.0)}
    for i, step in enumerate(steps):
        to = f"page {i + 1}" if i + 1 < len(steps) else "end"
        edges = {
            "related": ToyEdge(to="away", prior=0.09),
            "talk": ToyEdge(to="away", prior=0.43),
            step: ToyEdge(to=to, prior=sure, write=step in ("create", "save", "publish")),
        }
        states[f"page {i}"] = ToyState(text=f"Page {i}", edges=edges, looks=0.5)
    return ToyGraph(name="wiki", instruction="Publish.", start="page 0", states=states)


def settings(algorithm: str, **search: object) -> Config:
    return config(search={"algorithm": algorithm, "iterations": 16, "k": 4, "prefetch": 0, **search}, limits={"actions": 8})


@pytest.mark.parametrize("fidelity", FIDELITY)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_after_a_write_the_rest_of_the_task_is_solved(algorithm: str, fidelity: Literal["full", "replay"], tmp_path: Path) -> None:
    environments = ToyFactory(wiki(20.0 if algorithm in SAMPLED else 0.48), isolated=False, fidelity=fidelity)
    (line,) = await toy_runner(tmp_path, environments, settings(algorithm)).run()
    events = journal(tmp_path)
    assert (line.status, line.score, line.failures) == ("scored", 1.0, 0)
    assert committed(events) == [f'go "{step}"' for step in ("create", "edit", "preview", "save", "publish")]
    assert len(environments.counts.writes) == 3, "nothing is written by searching"
    assert not [event for event in events if isinstance(event, ev.Acted) and any(effect.is_write for effect in event.effects)]


SETTINGS: tuple[dict[str, object], ...] = (
    {"revisit": "repeat", "backup": "max", "discount": 0.97},
    {"first_play": "zero", "c": 1.0, "evaluations": 3},
    {"final": "visits"},
    {"final": "max_robust", "workers": 3},
    {"commit": "plan", "expansion": "speculative", "workers": 3},
    {"reevaluations": 4, "evaluations": 3},
)


@pytest.mark.parametrize("fidelity", FIDELITY)
@pytest.mark.parametrize("search", SETTINGS, ids=str)
async def test_no_setting_keeps_the_search_from_going_on(
    search: dict[str, object], fidelity: Literal["full", "replay"], tmp_path: Path
) -> None:
    environments = ToyFactory(wiki(), isolated=False, fidelity=fidelity)
    (line,) = await toy_runner(tmp_path, environments, settings("mcts", **search)).run()
    assert (line.score, line.failures, len(environments.counts.writes)) == (1.0, 0, 3)


@pytest.mark.parametrize("workers", [1, 3])
async def test_where_nothing_can_be_forked_what_follows_a_write_is_judged_unseen(workers: int, tmp_path: Path) -> None:
    states = []
    runner = toy_runner(tmp_path, ToyFactory(wiki(), isolated=False, fidelity="replay"), settings("mcts", workers=workers))
    runner.watch = lambda task, state, event: states.append(state)
    (line,) = await runner.run()
    nodes = [node for node in states[-1].search.tree.nodes if node.unreached]
    assert nodes and all(node.evaluation is not None for node in nodes if not node.closed)
    assert line.drifted == 0, "nothing was tried in vain"
    edges = [edge for node in states[-1].search.tree.nodes for edge in node.edges]
    assert not any(edge.closed.startswith(("drifted", "environment")) for edge in edges)


async def test_an_agent_without_search_takes_no_snapshots_outside(tmp_path: Path) -> None:
    environments = ToyFactory(wiki(), isolated=False)
    await toy_runner(tmp_path, environments, settings("react")).run()
    assert environments.counts.snapshots == 0


async def test_a_snapshot_that_was_refused_at_the_commit_is_taken_when_the_search_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exact.runs.attempt.live import LiveEnvironment

    asked, take = [], LiveEnvironment.snapshot

    async def busy(live: LiveEnvironment) -> object:
        asked.append(live)
        return None if len(asked) == 1 else await take(live)

    monkeypatch.setattr(LiveEnvironment, "snapshot", busy)
    environments = ToyFactory(wiki(), isolated=False)
    (line,) = await toy_runner(tmp_path, environments, settings("mcts")).run()
    assert line.score == 1.0 and environments.counts.forks > 0


async def test_forks_that_break_leave_the_actions_their_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environments, real = ToyFactory(wiki(), isolated=False), ToyFactory.fork

    def gone(factory: ToyFactory, snapshot: Snapshot, *, simulation: bool) -> AbstractAsyncContextManager[ToyEnvironment]:
        factory.drop(snapshot)
        return real(factory, snapshot, simulation=simulation)

    monkeypatch.setattr(ToyFactory, "fork", gone)
    (line,) = await toy_runner(tmp_path, environments, settings("mcts")).run()
    assert (line.status, line.score) == ("scored", 1.0), line.reason
    assert len(environments.counts.writes) == 3
