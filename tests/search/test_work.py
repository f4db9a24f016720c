"""What is done with results: failures, misuse, and the move of the root."""

from __future__ import annotations

import math

import pytest

from exact.environments.toy.known import chain, form
from exact.search.base import Need, Proposed, Result, Selection, Stepped, Wait
from exact.search.mcts import MCTS
from exact.search.tree import SearchError, touched
from tests.search.harness import Harness, check_idle, failed, proposed, two_arms, valued


def begun(iterations: int = 16, **more: int) -> Harness:
    """Return a search of a chain whose root is evaluated and expanded."""
    run = Harness(chain(3), MCTS(iterations=iterations, k=2, **more))
    run.meet(run.select())
    run.meet(run.select())
    return run


# --- edges


def test_an_edge_is_made_once_and_only_when_somebody_looks_at_it() -> None:
    run = Harness(two_arms(), MCTS(iterations=1, k=2))
    run.meet(run.select())
    run.meet(run.select())
    assert len(run.tree.root.edges) == 2 and not touched(run.tree.root)
    last = run.tree.root.edges[-1]
    assert [*touched(run.tree.root)] == [last] == run.tree.root.edges[1:]
    first = run.tree.root.edges[0]
    assert [first, last] == run.tree.root.edges
    with pytest.raises(IndexError):
        run.tree.root.edges[2]


# --- failures


@pytest.mark.parametrize("kind", ["model", "environment"])
def test_a_failed_step_is_asked_for_again_and_closed_when_the_retries_are_used_up(kind: str) -> None:
    run = begun(retries=2)
    edge = run.tree.root.edges[0]
    for tries in (1, 2, 3):
        assert not edge.closed
        step = run.select()
        assert (step.node, step.edge) == (0, 0)
        run.tell(step, failed(kind))  # type: ignore[arg-type]
        assert edge.failures == tries
    assert edge.closed == f"{kind}: broke" and not edge.futile
    assert run.select().edge == 1
    assert edge.visits == 0 and edge.value is None


@pytest.mark.parametrize("kind, futile", [("action", True), ("drifted", False)])
def test_a_permanently_refused_action_is_closed_at_once(kind: str, futile: bool) -> None:
    run = begun()
    run.tell(run.select(), failed(kind))  # type: ignore[arg-type]
    edge = run.tree.root.edges[0]
    assert edge.closed == f"{kind}: broke" and edge.futile is futile and edge.child is None
    assert run.select().edge == (None if futile else 1), "of a refusal the policy hears first"


def test_an_evaluation_that_fails_after_the_step_is_retried_as_often_as_any_other() -> None:
    run = begun(retries=2)
    tries = 0

    def fault(selection: Selection, need: Need) -> Result | None:
        nonlocal tries
        about = run.edge(selection)
        child = selection.node == 1 or (about is not None and about is run.tree.root.edges[0])
        tries += need == "value" and child
        return failed("model") if need == "value" and child else None

    run.fault = fault  # type: ignore[assignment]
    run.search()
    assert tries == 3
    edge = run.tree.root.edges[0]
    assert edge.closed == "model: broke" and edge.child is not None and edge.child.closed == "model: broke"


def test_a_state_that_cannot_be_expanded_is_closed_and_keeps_its_value() -> None:
    run = begun(iterations=12, retries=0)
    run.fault = lambda selection, need: failed("model") if need == "proposals" else None
    run.search()
    edge = run.tree.root.edges[0]
    assert edge.closed == "model: broke" and edge.visits == 1 and edge.value is not None
    assert run.algorithm.decide(run.tree).edges


def test_a_failure_changes_no_value_and_no_visit() -> None:
    run = begun()
    before = (run.tree.root.visits, run.tree.root.backups)
    run.tell(run.select(), failed("environment"))
    assert before == (run.tree.root.visits, run.tree.root.backups)
    check_idle(run.tree)


# --- misuse


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.01, 1.01])
def test_a_value_outside_its_range_is_refused_with_the_node_named(value: float) -> None:
    run = begun()
    step = run.select()
    run.tell(step, Stepped(fingerprint="s1"))
    with pytest.raises(SearchError, match="node 1: value"):
        run.tell(step, valued(value))
    assert run.tree.root.edges[0].visits == 0


@pytest.mark.parametrize(
    "result",
    [
        proposed(),
        proposed(on=0.5, off=0.4),
        proposed(on=1.5, off=-0.5),
        proposed(on=math.nan),
        proposed(on=math.inf),
    ],
)
def test_priors_that_are_no_distribution_are_refused_with_the_node_named(result: Proposed) -> None:
    run = Harness(chain(2), MCTS(iterations=3, k=2))
    run.meet(run.select())
    with pytest.raises(SearchError, match="node 0: "):
        run.tell(run.select(), result)
    assert not run.tree.root.edges and run.tree.root.expansions == 0


def test_a_result_of_the_wrong_kind_is_refused() -> None:
    run = Harness(chain(2), MCTS(iterations=9, k=2))
    value = run.select()
    for wrong in (proposed(on=1.0), Stepped(fingerprint="x")):
        with pytest.raises(SearchError, match="node 0"):
            run.tell(value, wrong)
    run.meet(value)
    proposals = run.select()
    with pytest.raises(SearchError, match="node 0"):
        run.tell(proposals, valued(0.5))
    run.meet(proposals)
    step = run.select()
    for early in (valued(0.5), proposed(on=1.0)):
        with pytest.raises(SearchError, match="node 0"):
            run.tell(step, early)
    run.tell(step, Stepped(fingerprint="s1"))
    with pytest.raises(SearchError, match="node 0"):
        run.tell(step, Stepped(fingerprint="s1"))


def test_a_second_result_is_refused_and_counts_nothing() -> None:
    run = begun()
    done = [run.asked[0], run.asked[1], run.select()]
    run.meet(done[2])
    before = run.tree.root.visits
    for selection, again in zip(done, (valued(0.5), proposed(on=1.0), valued(0.5)), strict=True):
        for result in (again, failed()):
            with pytest.raises(SearchError):
                run.tell(selection, result)
        with pytest.raises(SearchError):
            run.algorithm.release(run.tree, selection)
    assert run.tree.root.visits == before
    check_idle(run.tree)


def test_the_same_action_proposed_twice_is_one_edge() -> None:
    run = Harness(chain(2), MCTS(iterations=3, k=2))
    run.meet(run.select())
    run.tell(run.select(), Proposed(proposals=proposed(on=0.6).proposals + proposed(on=0.4).proposals))
    assert [(edge.action.key, edge.prior) for edge in run.tree.root.edges] == [('go "on"', 1.0)]


# --- the move of the root


def test_an_equal_state_keeps_the_subtree_and_its_statistics() -> None:
    run = Harness(chain(4), MCTS(iterations=20, k=2))
    run.search()
    child = run.tree.root.edges[0].child
    assert child is not None
    visits, nodes = child.visits, len(run.tree.nodes)
    assert run.algorithm.advance(run.tree, 0, Stepped(fingerprint="s1"))
    assert run.tree.root is child and child.visits == visits and len(run.tree.nodes) == nodes
    check_idle(run.tree)


def test_another_state_than_foreseen_is_searched_anew() -> None:
    run = Harness(chain(4), MCTS(iterations=20, k=2))
    run.search()
    old = run.tree.root.edges[0].child
    assert not run.algorithm.advance(run.tree, 0, Stepped(fingerprint="elsewhere"))
    root = run.tree.root
    assert root is not old and (root.fingerprint, root.visits, root.evaluation) == ("elsewhere", 0, None)
    assert root.depth == 1 and run.select().needs == ("value",)


def test_a_dropped_state_keeps_its_proposals_without_their_statistics() -> None:
    run = Harness(chain(4), MCTS(iterations=20, k=2))
    run.search()
    old = run.tree.root.edges[0].child
    assert old is not None and old.edges[0].visits
    run.algorithm.advance(run.tree, 0, Stepped(fingerprint="elsewhere"))
    kept = run.tree.root.edges
    assert [edge.action for edge in kept] == [edge.action for edge in old.edges] and not any(e.visits or e.child for e in kept)
    run.meet(run.select())
    assert run.select().needs == ("proposals",), "the policy is heard all the same"


def test_a_state_that_was_never_explored_is_searched_anew() -> None:
    run = begun()
    assert not run.algorithm.advance(run.tree, 1, Stepped(fingerprint="s9"))
    assert run.select().needs == ("value",)
    assert run.tree.root.parent is run.tree.nodes[0]


def test_the_state_behind_a_blocked_write_is_searched_after_its_commit() -> None:
    """The page may look the same before and after the write; its successors are still unknown."""
    run = begun()
    step = run.select()
    run.tell(step, Stepped(fingerprint="s0", blocked=True))
    run.tell(step, valued(0.9))
    assert not run.algorithm.advance(run.tree, 0, Stepped(fingerprint="s0"))
    assert not run.tree.root.leaf
    assert run.select().needs == ("value",)


def test_the_evaluation_of_a_terminal_outlives_its_commit() -> None:
    run = Harness(two_arms(), MCTS(iterations=9, k=2))
    run.search()
    assert not run.algorithm.advance(run.tree, 0, Stepped(fingerprint="", terminated=True))
    assert run.tree.root.terminated and run.tree.root.value == 1.0


def test_an_unforeseen_end_has_no_evaluation() -> None:
    run = begun()
    run.meet(run.select())
    run.algorithm.advance(run.tree, 0, Stepped(fingerprint="", terminated=True))
    assert run.tree.root.terminated and run.tree.root.value is None


def test_a_refused_commit_leaves_the_root_and_is_not_chosen_again() -> None:
    run = Harness(form(2), MCTS(iterations=20, k=3))
    run.search()
    first = run.algorithm.decide(run.tree).edges[0]
    run.algorithm.refuse(run.tree, first, "gone")
    assert run.tree.root is run.tree.nodes[0]
    assert run.tree.root.edges[first].closed == "action: gone"
    run.search()
    assert run.algorithm.decide(run.tree).edges[0] != first


def test_a_decision_tells_how_every_action_stood() -> None:
    run = Harness(two_arms(), MCTS(iterations=7, k=2, revisit="repeat"))
    run.search()
    decision = run.algorithm.decide(run.tree)
    assert (decision.edges, decision.value, decision.reason) == ((0,), 1.0, "the highest lower bound")
    assert [(a.edge, a.action, a.prior, a.visits, a.value) for a in decision.alternatives] == [
        (0, 'go "arm 0"', 0.5, 5, 1.0),
        (1, 'go "arm 1"', 0.5, 1, 0.0),
    ]


def test_where_nothing_was_explored_the_likeliest_is_committed_and_the_reason_says_so() -> None:
    run = begun()
    decision = run.algorithm.decide(run.tree)
    assert decision.edges == (0,) and decision.value is None and "nothing was explored" in decision.reason


def test_an_ask_while_the_root_is_being_judged_waits() -> None:
    run = Harness(chain(2), MCTS(iterations=5, k=2))
    run.select()
    assert run.ask() == Wait()
