"""The state of an attempt is a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from exact.config import Config
from exact.config.agents import VALUES
from exact.environments.base import SideEffect
from exact.environments.toy.factory import Faults, ToyFactory
from exact.environments.toy.known import ToyGraph, bandit, chain, deceptive_chain, form, maze
from exact.errors import JournalError
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.search_state import beyond
from exact.runs.journal.state import AttemptState, fold
from exact.search.base import Selection
from exact.search.inspect.export import to_json
from exact.search.mcts import MCTS
from exact.search.tree import Edge, Node, written
from exact.task import Task
from tests.runs.toys import config, toy_runner

ROOT = Path(__file__).parents[3]


async def attempt(folder: Path, environments: ToyFactory, settings: Config) -> tuple[list[ev.AnyEvent], AttemptState]:
    """Return the journal of a whole attempt and its final state."""
    live: list[AttemptState] = []

    def watch(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        live.append(state)

    runner = toy_runner(folder, environments, settings, noise=0.1)
    runner.watch = watch
    await runner.run()
    return journal_in(folder), live[-1]


def journal_in(folder: Path) -> list[ev.AnyEvent]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return list(read_journal(path))


def searched(algorithm: str, **more: object) -> Config:
    return config(search={"algorithm": algorithm, "iterations": 10, "k": 4}, **more)


def facts(state: AttemptState) -> list[object]:
    """Return all parts of a state that must be equal after a resume."""
    search, spending, live = state.search, state.spending, state.live
    return [
        to_json(search.tree), search.tree.iterations, search.tree.allowed, list(search.tree.open), search.acted, spending.calls, live.path,
        live.committed, live.decided, live.refused, spending.task.spent, spending.drifted, spending.failures, live.ended, live.scored,
        live.finished, live.instruction, sorted(search.effects), search.recalled, live.judged,
    ]  # fmt: skip


WORLDS = [chain(3), deceptive_chain(3), maze(), form(2), bandit(3)]


@pytest.mark.parametrize("algorithm", ["mcts", "greedy", "react"])
@pytest.mark.parametrize("environment", WORLDS, ids=lambda environment: environment.name)
async def test_the_fold_of_a_journal_is_the_state_that_wrote_it(environment: ToyGraph, algorithm: str, tmp_path: Path) -> None:
    journal, live = await attempt(tmp_path, ToyFactory(environment), searched(algorithm))
    assert isinstance(journal[-1], ev.Finished)
    again = fold(searched(algorithm), journal)
    live.spending.elapsed = again.spending.elapsed
    assert facts(again) == facts(live)


@pytest.mark.parametrize("faults", [Faults(), Faults(fail_every=7), Faults(drift_after=4)], ids=["sound", "breaking", "drifting"])
async def test_any_prefix_of_a_journal_folds(faults: Faults, tmp_path: Path) -> None:
    settings = searched("mcts")
    journal, _ = await attempt(tmp_path, ToyFactory(maze(), faults=faults), settings)
    for end in range(len(journal) + 1):
        state = fold(settings, journal[:end])
        check_counts(state)
    assert len(journal) > 30


def check_counts(state: AttemptState) -> None:
    assert len(state.search.tree.open) <= 1
    assert state.search.tree.root.in_flight <= 1
    assert state.spending.task.spent.get("actions", 0) == len(state.live.committed)
    assert all(node.visits == node.backups + sum(edge.visits for edge in node.edges) for node in state.search.tree.nodes)


async def test_folding_further_is_folding_all_at_once(tmp_path: Path) -> None:
    settings = searched("mcts")
    journal, _ = await attempt(tmp_path, ToyFactory(form(2)), settings)
    state = AttemptState(settings)
    for event in journal:
        state.replay(event)
    assert facts(state) == facts(fold(settings, journal))


@pytest.mark.parametrize("place", [{"node": 2**63}, {"node": -1}, {"node": 10**6}, {"edge": 2**63}, {"edge": -1}])
async def test_a_step_at_a_place_that_is_not_there_does_not_fold(tmp_path: Path, place: dict[str, int]) -> None:
    settings = searched("mcts")
    journal, _ = await attempt(tmp_path, ToyFactory(chain(2)), settings)
    wrong = [msgspec.structs.replace(event, **place) if isinstance(event, ev.Acted) else event for event in journal]
    with pytest.raises(JournalError, match=r"which is not there|which has none such"):
        fold(settings, wrong)


def test_an_empty_journal_folds_to_an_attempt_that_has_not_begun() -> None:
    state = fold(config(), [])
    assert not state.live.started and state.live.opened is None and len(state.search.tree.nodes) == 1 and state.spending.task.spent == {}


@pytest.fixture
async def journal(tmp_path: Path) -> list[ev.AnyEvent]:
    return (await attempt(tmp_path, ToyFactory(chain(2)), searched("mcts")))[0]


def without(journal: list[ev.AnyEvent], kind: type[ev.AnyEvent]) -> Iterator[ev.AnyEvent]:
    """Return the journal without its first event of a kind."""
    gone = False
    for event in journal:
        if gone or not isinstance(event, kind):
            yield event
        else:
            gone = True


@pytest.mark.parametrize("kind", [ev.Asked, ev.Told])
def test_a_journal_with_a_line_missing_is_refused(kind: type[ev.AnyEvent], journal: list[ev.AnyEvent]) -> None:
    with pytest.raises(JournalError):
        fold(searched("mcts"), without(journal, kind))


@pytest.mark.parametrize("event", [ev.Told, ev.Released])
def test_a_result_for_what_was_not_asked_is_refused(event: type[ev.Told | ev.Released], journal: list[ev.AnyEvent]) -> None:
    told = next(each for each in journal if isinstance(each, ev.Told))
    stray = ev.Told(selection=99, result=told.result) if event is ev.Told else ev.Released(selection=99)
    with pytest.raises(JournalError, match="selection 99, which is not open"):
        fold(searched("mcts"), [*journal[:4], stray])


def test_a_journal_of_another_search_is_refused(journal: list[ev.AnyEvent]) -> None:
    with pytest.raises(JournalError, match="asks for other work than it did"):
        fold(searched("greedy"), journal)


async def test_spending_is_counted_from_facts(tmp_path: Path) -> None:
    journal, _ = await attempt(tmp_path, ToyFactory(maze()), searched("mcts"))
    spent = fold(searched("mcts"), journal).spending.task.spent
    steps = sum(isinstance(event, ev.Acted | ev.Committed) for event in journal)
    replayed = sum(event.transitions for event in journal if isinstance(event, ev.Arrived | ev.Rebuilt))
    assert spent["transitions"] == steps + replayed
    assert spent["actions"] == sum(isinstance(event, ev.Committed) for event in journal)


async def test_a_drifted_arrival_and_a_failure_are_counted(tmp_path: Path) -> None:
    journal, _ = await attempt(tmp_path / "drift", ToyFactory(maze(), faults=Faults(drift_after=2)), searched("mcts"))
    assert fold(searched("mcts"), journal).spending.drifted == sum(isinstance(e, ev.Arrived) and e.match == "drifted" for e in journal) > 0
    journal, _ = await attempt(tmp_path / "fail", ToyFactory(maze(), faults=Faults(fail_every=5)), searched("mcts"))
    assert fold(searched("mcts"), journal).spending.failures == sum(isinstance(e, ev.Failed) for e in journal) > 0


def test_going_on_after_the_end_takes_the_end_back(journal: list[ev.AnyEvent]) -> None:
    assert fold(searched("mcts"), journal).finished is not None
    assert fold(searched("mcts"), [*journal, ev.Resumed()]).finished is None


def test_a_selection_stays_open_until_its_last_need_is_told(journal: list[ev.AnyEvent]) -> None:
    at = next(i for i, e in enumerate(journal) if isinstance(e, ev.Asked) and isinstance(e.answer, Selection) and e.answer.edge is not None)
    open_ = [len(fold(searched("mcts"), journal[: at + n]).search.tree.open) for n in range(8)]
    assert open_[0] == 0 and open_[1] == 1
    told = [i for i, e in enumerate(journal[at:], at) if isinstance(e, ev.Told)][:2]
    assert [len(fold(searched("mcts"), journal[: i + 1]).search.tree.open) for i in told] == [1, 0]


async def test_a_state_is_expected_to_be_come_back_to_as_often_as_those_before_it(tmp_path: Path) -> None:
    _, state = await attempt(tmp_path, ToyFactory(form(3)), config())
    assert state.search.acted_at == {node for node, _ in state.search.acted} and len(state.search.acted_at) > 1
    root = state.search.tree.nodes[0]
    open_ = [index for index, edge in enumerate(root.edges) if not edge.closed and (0, index) not in state.search.acted]
    expected = (len(state.search.acted) + 2) / (len(state.search.acted_at) + 1) - 1
    for edge in range(len(root.edges)):
        assert state.search.expected_returns(root, edge) == min(len(set(open_) - {edge}), expected)
    state.search.acted, state.search.acted_at = {}, set()
    assert state.search.expected_returns(root, 0) <= 1  # once, to begin with


async def test_a_state_with_four_actions_is_expected_to_be_restored_three_times_within_the_budget(tmp_path: Path) -> None:
    _, state = await attempt(tmp_path, ToyFactory(bandit(5)), config())
    other = Node(id=9, edges=[Edge(action=edge.action, prior=edge.prior) for edge in state.search.tree.nodes[0].edges])
    step = next(iter(state.search.acted.values()))
    state.search.acted_at, state.search.acted = {0, 1}, {(node, edge): step for node in (0, 1) for edge in range(5)}
    assert state.search.expected_returns(other, 0) == 3.0  # (10 + 2) / (2 + 1) - 1
    state.search.acted |= {(9, edge): step for edge in (1, 2)}  # of four
    assert state.search.expected_returns(other, 0) == 1


def test_moved_elements_distinguish_states_and_are_no_write() -> None:
    sent = (SideEffect(kind="request", method="POST", url="http://shop.test/orders"),)
    here, there = (beyond("", (), {"moved": f"[1] moved by {x},0"}) for x in (10, 20))
    assert here and there and here != there and written(here) == written("") == set()
    both = beyond(beyond("", sent, {}), (), {"moved": "[1] moved by 10,0"})
    assert written(both) == written(beyond("", sent, {})) != set() and both != beyond("", sent, {})


@pytest.mark.parametrize("kind", VALUES)
def test_a_state_is_evaluated_again_only_by_a_cheap_judge_whose_answers_differ(kind: str) -> None:
    """The configuration's page says the same."""
    algorithm = AttemptState(Config.parse({"value": {"kind": kind}})).search.algorithm
    assert isinstance(algorithm, MCTS) and algorithm.evaluations == (3 if kind == "llm" else 1)
    described = (ROOT / "docs" / "configuration" / "search.md").read_text()
    assert "`null`: 3 for `value.kind: llm`, whose evaluations are cheap and differ; 1 for the other kinds" in described
