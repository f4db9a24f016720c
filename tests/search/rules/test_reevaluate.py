"""Candidates within the noise of each other are judged again, out of the same iterations, until the gap exceeds its error."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import pytest

from exact.context import Evaluation
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState
from exact.search.algorithms.gumbel import Gumbel
from exact.search.base import Done, Failure, Need, Result, Selection, Valued
from exact.search.mcts import MCTS
from tests.search.harness import Harness, check_idle, graph

Dear = Callable[[str, int], Evaluation]
"""What the dear judge says of a state, the how-manieth time."""


def rooms(*looks: float) -> ToyGraph:
    """Return rooms with the given values to the search; beyond each is a long corridor of the same value."""
    states = {"a": ToyState(edges={f"to{i}": ToyEdge(to=f"room{i}", prior=float(9 - i)) for i in range(len(looks))}, looks=0.5)}
    for i, look in enumerate(looks):
        way = [f"room{i}", *(f"hall{i}{step}" for step in range(7)), f"end{i}"]
        states |= {name: ToyState(edges={"on": ToyEdge(to=after)}, looks=look) for name, after in itertools.pairwise(way)}
        states[way[-1]] = ToyState(reward=look)
    return graph(states)


class Reevaluating(Harness):
    """Answers what is contested by a dear judge."""

    def __init__(self, made: ToyGraph, algorithm: MCTS, dear: Dear) -> None:
        super().__init__(made, algorithm)
        self.dear, self.again = dear, list[str]()

    def result(self, selection: Selection, need: Need) -> Result:
        if not selection.reevaluates:
            return super().result(selection, need)
        state = self.state(self.tree.nodes[selection.node])
        self.again.append(state)
        return Valued(evaluation=self.dear(state, self.again.count(state)))


def sure(**values: float) -> Dear:
    return lambda state, times: Evaluation(value=values[state], samples=(values[state],) * 6, within=0.02)


def searched(made: ToyGraph, dear: Dear, reevaluations: int = 6, **more: object) -> Reevaluating:
    run = Reevaluating(made, MCTS(**{"iterations": 16, "k": 4, "reevaluations": reevaluations, **more}), dear)  # type: ignore[arg-type]
    run.search()
    check_idle(run.tree)
    return run


def test_rivals_are_judged_once_each_at_the_end_and_the_surest_wins() -> None:
    run = searched(rooms(0.5, 0.5), sure(room0=0.3, room1=0.8))
    assert sorted(run.again) == ["room0", "room1"]
    assert run.tree.iterations == 16
    first = next(i for i, selection in enumerate(run.asked) if selection.reevaluates)
    before = sum("value" in selection.needs for selection in run.asked[:first])
    assert before >= 10, "the rest of the iterations were the search's own"
    decision = run.algorithm.decide(run.tree)
    assert decision.edges == (1,) and "close candidates" in decision.reason


def at_once(run: Reevaluating, workers: int) -> None:
    """Return the search of several workers in which an evaluation by the expensive judge takes three times as long as other work."""
    clock, under_way = 0, list[tuple[int, int, Selection]]()
    while True:
        answer: object = None
        while len(under_way) < workers and isinstance(answer := run.ask(), Selection):
            heapq.heappush(under_way, (clock + (3 if answer.reevaluates else 1), answer.id, answer))
        if not under_way:
            assert isinstance(answer, Done)
            return
        clock, _, selection = heapq.heappop(under_way)
        run.meet(selection)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize(("reevaluations", "iterations"), [(4, 16), (8, 32)])
def test_however_many_work_at_once_what_is_kept_for_the_rivals_goes_to_them(workers: int, reevaluations: int, iterations: int) -> None:
    dear = sure(room0=0.2, room1=0.3, room2=0.4, room3=0.8)
    run = Reevaluating(rooms(0.5, 0.5, 0.5, 0.5), MCTS(iterations=iterations, k=4, reevaluations=reevaluations), dear)
    at_once(run, workers)
    check_idle(run.tree)
    assert set(run.again) == {"room0", "room1", "room2", "room3"} and len(run.again) <= reevaluations
    assert run.tree.iterations == iterations and run.commit() == "to3"


def test_a_clear_lead_is_not_contested() -> None:
    run = searched(rooms(0.95, 0.05), sure())
    assert run.again == [] and run.algorithm.decide(run.tree).edges == (0,)


def test_they_are_judged_until_the_gap_exceeds_its_error() -> None:
    """A judge whose noise is 0.25 around a gap of 0.2 is asked more often than a certain one, and never beyond the reserve."""

    def wavering(state: str, times: int) -> Evaluation:
        value = {"room0": 0.4, "room1": 0.6}[state] + (0.25 if times % 2 else -0.25)
        return Evaluation(value=value, samples=(value - 0.3, value + 0.3), within=0.5)

    def firm(state: str, times: int) -> Evaluation:
        return sure(room0=0.4, room1=0.6)(state, times)

    assert len(searched(rooms(0.5, 0.5), firm).again) == 2
    assert len(searched(rooms(0.5, 0.5), wavering).again) == 6
    assert len(searched(rooms(0.5, 0.5), wavering, reevaluations=4).again) == 4


def test_an_evaluation_without_samples_has_the_assumed_noise() -> None:
    assert len(searched(rooms(0.5, 0.5), lambda state, times: Evaluation(value=0.6 if state == "room1" else 0.4)).again) > 2


def test_a_reevaluation_is_an_evaluation_of_the_state_too() -> None:
    run = searched(rooms(0.5, 0.5), sure(room0=0.3, room1=0.8))
    child = run.tree.root.edges[1].child
    assert child is not None and child.evaluations == 2 and child.value == pytest.approx(0.65)


def test_without_a_contest_nothing_is_judged_again() -> None:
    assert searched(rooms(0.5, 0.5), sure(), reevaluations=0).again == []


def test_a_judge_that_fails_leaves_the_choice_as_it_was() -> None:
    run = Reevaluating(rooms(0.5, 0.5), MCTS(iterations=16, k=4, reevaluations=6, retries=1), sure(room0=0.1, room1=0.2))
    run.fault = lambda selection, need: Failure(kind="model", reason="gone") if selection.reevaluates else None
    run.search()
    check_idle(run.tree)
    assert run.algorithm.decide(run.tree).edges and not run.again


def test_a_search_that_tried_everything_has_its_rivals_judged_before_it_ends() -> None:
    run = searched(rooms(0.5, 0.5), sure(room0=0.3, room1=0.8), iterations=400)
    assert sorted(run.again) == ["room0", "room1"] and run.tree.iterations < 100
    assert run.algorithm.decide(run.tree).edges == (1,)


def test_gumbel_search_has_its_rivals_judged_too() -> None:
    run = Reevaluating(rooms(0.5, 0.5), Gumbel(iterations=16, k=4, reevaluations=4), sure(room0=0.3, room1=0.8))
    run.search()
    assert sorted(run.again) == ["room0", "room1"] and run.tree.iterations == 16
    assert run.algorithm.decide(run.tree).edges == (1,)
