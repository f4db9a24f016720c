"""What committed steps were expected to lead to, and what came: read from real attempts in toy environments."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from exact.action import Action
from exact.agents.agent import Agent
from exact.context import Context, Evaluation
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.known import deceptive_chain, toy_task
from exact.reflection.contrast import SIGNALS, Record, contrast
from exact.runs.attempt.ending import _expected, hindsight
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.runs.runner import Runner, create
from exact.search.registry import algorithm
from exact.search.tree import Edge, Node
from tests.runs.toys import config

LONG = 6


def fork() -> ToyGraph:
    """Left looks well and ends badly after six rooms, right looks bad and ends well after two."""
    left = {f"l{i}": ToyState(text=f"Left {i}", edges={"on": ToyEdge(to=f"l{i + 1}")}, looks=0.75) for i in range(1, LONG)}
    right = {
        "r1": ToyState(text="Right 1", edges={"on": ToyEdge(to="r2")}, looks=0.1),
        "r2": ToyState(text="Right 2", edges={"on": ToyEdge(to="win")}, looks=0.1),
    }
    ends = {f"l{LONG}": ToyState(reward=0.0), "win": ToyState(reward=1.0)}
    start = ToyState(text="A fork", edges={"left": ToyEdge(to="l1", prior=0.6), "right": ToyEdge(to="r1", prior=0.4)}, looks=0.5)
    return ToyGraph(name="fork", instruction="Find the way out.", start="s", states={"s": start, **left, **right, **ends})


class SureOfEnds:
    """A judge that believes every end to have gone well."""

    def __init__(self, inner: ToyValue) -> None:
        self._inner = inner

    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=0.95) if context.terminated else await self._inner.evaluate(context)


async def looked_back(folder: Path, environment: ToyGraph, *, sure: bool = False, told: bool = True, **search: object) -> list[Record]:
    """Return the hindsight of one attempt, with the benchmark's outcome where `told` is set."""
    settings = config(search={"algorithm": "mcts", "k": 2, **search}, limits={"actions": 12})
    value = SureOfEnds(ToyValue(environment)) if sure else ToyValue(environment)
    made = create(folder, (toy_task(environment),), settings)
    [line] = await Runner(
        folder=made, config=settings, open_environments=lambda task: nullcontext(ToyFactory(environment)),
        build_agent=lambda *_: Agent(policy=ToyPolicy(environment), value=value),
    ).run()  # fmt: skip
    state = fold(settings, list(read_journal(made.task_folder(made.manifest.tasks[0]) / "journal.jsonl")))
    return hindsight(state, made.blobs, line.score if told else None)


async def test_a_judge_who_was_sure_of_an_end_that_failed_is_corrected_there(tmp_path: Path) -> None:
    found = await looked_back(tmp_path, deceptive_chain(3), sure=True, iterations=2)
    last = found[-1]
    assert (last.first, last.came, last.final, last.following, last.after) == (0.95, 0.0, 0.0, 0.0, None)
    said = [(surprise.node, round(surprise.surprise, 2)) for _, surprise in contrast(found, signals=("judge",), threshold=0.5)]
    assert said == [(last.node, -0.95)]


async def test_each_record_has_its_own_neighbours(tmp_path: Path) -> None:
    found = await looked_back(tmp_path, fork(), iterations=30, backup="max")
    assert [each.step.action.key for each in found] == ['go "right"', 'go "on"', 'go "on"']
    for one, other in pairwise(found):
        assert one.after is not None and one.after.fingerprint == other.step.observation.fingerprint
        assert one.first == other.before and one.following == other.chosen
    assert [each.first for each in found] == [0.1, 0.1, 1.0]


@pytest.mark.parametrize("backup", ["mean", "max"])
async def test_after_an_attempt_that_went_well_no_other_action_is_said_to_have_been_better(tmp_path: Path, backup: str) -> None:
    found = await looked_back(tmp_path, fork(), iterations=30, backup=backup)
    assert found[-1].came == 1.0
    assert [surprise.surprise > 0 for _, surprise in contrast(found, signals=("sibling",), threshold=0.1, most=9)] == [True]


async def test_a_state_all_of_whose_ways_are_known_is_worth_what_they_lead_to(tmp_path: Path) -> None:
    found = await looked_back(tmp_path, fork(), told=False, iterations=6, backup="mean")
    assert found[0].step.action.key == 'go "left"' and found[0].first == 0.75 and found[0].final == 0.0


async def test_the_expectation_of_a_step_holds_nothing_of_its_result(tmp_path: Path) -> None:
    once = (await looked_back(tmp_path / "once", deceptive_chain(3), iterations=2))[0]
    assert once.chosen_visits == 1 and once.chosen == once.first and once.expected == once.before


@pytest.mark.parametrize(
    ("backup", "came", "settled", "q", "visits", "expected"),
    [
        ("mean", {}, False, 0.4, 2, 0.7),  # 0.1 and then 0.7 from below
        ("mean", {"evaluations": 3, "value_sum": 0.6, "backups": 3}, False, 0.3, 4, 0.6),  # 0.2 three times, and then 0.6 from below
        ("mean", {"evaluations": 3, "value_sum": 0.6, "backups": 3}, False, 0.2, 3, 0.5),  # nothing from below
        ("mean", {"evaluations": 2, "value_sum": 1.8, "backups": 2, "terminated": True}, False, 0.9, 2, 0.5),
        ("max", {"evaluations": 2, "value_sum": 1.8, "backups": 2, "terminated": True}, False, 0.9, 2, 0.5),
        ("mean", {}, True, 0.8, 2, 0.8),  # it is the best way on alone
        ("max", {}, False, 0.8, 2, 0.8),
        ("max", {"evaluations": 2, "value_sum": 1.8, "backups": 2}, False, 0.9, 2, 0.5),
    ],
)
def test_evaluations_of_the_next_state_are_removed_from_q(
    backup: str, came: dict[str, Any], settled: bool, q: float, visits: int, expected: float
) -> None:
    before = Node(id=0, evaluations=1, value_sum=0.5, edges=[Edge(Action("go", (), "go"), 1.0)])
    before.edges[0].settled = settled
    after = Node(id=1, parent=before, via=0, **{"evaluations": 1, "value_sum": 0.1, "backups": 1, **came})
    found = algorithm(config(search={"algorithm": "mcts", "backup": backup}).search)
    assert _expected(found, before, before.edges[0], after, q, visits) == pytest.approx(expected)


async def test_the_deepest_end_that_failed_below_another_action_is_found(tmp_path: Path) -> None:
    found = await looked_back(tmp_path, fork(), iterations=60, backup="max")
    way = found[0].failed
    assert way is not None and way.step.action.key == 'go "left"' and (way.depth, way.value) == (LONG, 0.0)
    branch = [surprise for _, surprise in contrast(found, signals=("branch",), threshold=0.2)]
    assert [(each.step.action.key, each.alternative) for each in branch] == [('go "left"', 'go "right"')]


async def test_an_attempt_without_any_evaluation_has_no_surprise(tmp_path: Path) -> None:
    found = await looked_back(tmp_path, deceptive_chain(3), told=False, algorithm="react")
    assert found and not contrast(found, signals=SIGNALS, threshold=0.01, most=9)
