"""The order in which MCTS works, step by step, and what it finds in environments whose answer is known."""

from __future__ import annotations

import pytest

from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, bandit, chain, deceptive_chain, form, maze
from exact.search.base import Done, Failure, Need, Selection, Stepped
from exact.search.mcts import MCTS
from exact.search.rules.final import lower_bound
from exact.search.tree import SearchError, Tree
from tests.search.harness import Harness, check, check_idle, failed, graph, proposed, two_arms, valued


def mcts(iterations: int = 16, k: int = 4, **more: int | float | str) -> MCTS:
    return MCTS(iterations=iterations, k=k, **more)  # type: ignore[arg-type]


def test_the_root_is_judged_first_and_expanded_on_its_second_visit() -> None:
    run = Harness(chain(3), mcts())
    assert run.select().needs == ("value",)
    run.tell(run.asked[0], valued(0.5))
    assert (run.tree.root.visits, run.tree.iterations) == (1, 1)
    assert run.select().needs == ("proposals",)
    run.tell(run.asked[1], proposed(on=0.6, off=0.4))
    assert (run.tree.root.visits, run.tree.iterations) == (1, 1)
    step = run.select()
    assert (step.node, step.edge, step.needs) == (0, 0, ("step", "value"))


def test_a_leaf_is_judged_on_its_first_visit_and_expanded_on_its_second() -> None:
    for iterations, visits, expansions in [(2, 1, 0), (3, 2, 1), (4, 3, 1)]:
        run = Harness(chain(3), mcts(iterations=iterations, c=0.0))
        run.search()
        child = run.tree.root.edges[0].child
        assert child is not None and (child.visits, child.expansions) == (visits, expansions)


def test_two_arms_are_pulled_in_the_order_worked_out_by_hand() -> None:
    """c = 0.5, P = 0.5, V(root) = 0.5: the first arm (Q = 1) leads until 0.5 + 0.25 sqrt(N) passes 1 + 0.25 sqrt(N) / (1 + n), at n = 5."""
    for iterations, visits in [(2, [1, 0]), (6, [5, 0]), (7, [5, 1]), (8, [6, 1]), (20, [18, 1])]:
        run = Harness(two_arms(), mcts(iterations=iterations, c=0.5, revisit="repeat"))
        run.search()
        assert [edge.visits for edge in run.tree.root.edges] == visits
        assert run.tree.root.visits == iterations == run.tree.root.backups + sum(visits)


def test_a_first_play_is_worth_what_its_own_state_is_worth() -> None:
    """Without exploration the second arm is tried only after the first has fallen below the root's own value."""
    for first, visits in [(0.4, [1, 4]), (0.6, [5, 0])]:
        run = Harness(bandit(2, rewards=(first, 0.6)), mcts(iterations=6, c=0.0, revisit="repeat"))
        run.tell(run.select(), valued(0.5))
        run.search()
        assert [edge.visits for edge in run.tree.root.edges] == visits


def test_the_mean_of_an_action_is_that_of_all_values_below_it() -> None:
    run = Harness(chain(2), mcts(iterations=12))
    run.search()
    for edge in run.tree.root.edges[:1]:
        assert edge.child is not None and len(edge.child.edges) == 2
        below = [n for n in run.tree.walk(edge.child) if n.evaluation]
        assert edge.total == pytest.approx(sum(n.backups * n.value for n in below if n.value is not None))
        assert edge.visits == sum(n.backups for n in below)


def test_visiting_a_terminal_again_costs_nothing_and_counts_where_that_is_the_choice() -> None:
    run = Harness(two_arms(), mcts(iterations=50, revisit="repeat"))
    run.search()
    assert len(run.asked) == 4  # the root's value and proposals, each arm once
    assert run.tree.iterations == 50


def test_an_end_is_judged_as_often_as_it_may_be_and_then_there_is_nothing_more_to_learn() -> None:
    run = Harness(two_arms(), mcts(iterations=50, evaluations=3))
    assert run.search() == Done("every action was tried")
    assert [selection.draw for selection in run.asked if "value" in selection.needs and selection.node in (1, 2)] == [1, 2, 1, 2]
    assert [(edge.visits, edge.settled) for edge in run.tree.root.edges] == [(3, True), (3, True)]
    assert run.algorithm.decide(run.tree).edges == (0,)


def test_each_evaluation_of_an_end_is_backed_up_by_itself() -> None:
    run = Harness(bandit(1, rewards=(0.5,)), mcts(iterations=6, evaluations=3))
    run.meet(run.select())
    run.meet(run.select())
    first = run.select()
    run.tell(first, run.result(first, "step"))
    run.tell(first, valued(0.0))
    for _ in range(2):
        run.tell(run.select(), valued(1.0))
    [edge] = run.tree.root.edges
    assert (edge.visits, edge.total) == (3, 2.0)


@pytest.mark.parametrize("widening", [0.5, 1.0])
def test_a_search_that_widens_asks_for_more_when_all_it_knows_is_closed(widening: float) -> None:
    states = {"a": ToyState(edges={"bad": ToyEdge(to="bad", prior=2.0), "good": ToyEdge(to="good")}, looks=0.5)}
    run = Harness(graph(states | {"bad": ToyState(reward=0.1), "good": ToyState(reward=0.9)}), mcts(iterations=40, widening=widening))
    fewer = 0
    for seed in range(20):
        run.tree = Tree(seed=seed)
        run.tree.root.fingerprint = "a"
        run.search()
        fewer += len(run.tree.root.edges) < 2
        assert run.tree.root.expansions >= 4
    assert fewer <= 9, "now and then a policy draws its favourite four times"


def test_an_end_with_few_visits_wins_against_a_much_visited_edge_of_lower_value() -> None:
    states = {name: ToyState(edges={"on": ToyEdge(to=after)}, looks=0.6) for name, after in zip("bcdefgh", "cdefghi", strict=True)}
    states["a"] = ToyState(edges={"long": ToyEdge(to="b", prior=2.0), "win": ToyEdge(to="won")}, looks=0.5)
    run = Harness(graph({**states, "i": ToyState(reward=0.6), "won": ToyState(reward=0.9)}), mcts(iterations=9))
    run.search()
    assert run.tree.root.edges[0].visits > run.tree.root.edges[1].visits == 1
    assert run.commit() == "win"


def test_below_the_depth_limit_nothing_is_expanded() -> None:
    run = Harness(chain(9), mcts(iterations=60, depth=2, revisit="repeat"))
    run.search()
    deepest = max(run.tree.nodes, key=lambda node: node.depth)
    assert deepest.depth == 2 and not deepest.edges and deepest.backups > 1
    run.commit()
    run.search()
    assert max(node.depth for node in run.tree.nodes) == 3


@pytest.mark.parametrize("made", [chain(4), maze(), maze(4, 3, seed=5), form(2), form(3, seed=4)], ids=lambda made: made.name)
def test_known_environments_are_solved(made: ToyGraph) -> None:
    run = Harness(made, mcts(iterations=60, k=6, depth=10))
    assert made.states[run.solve()].reward == 1.0
    check_idle(run.tree)


def test_a_deception_is_seen_through_with_enough_iterations_and_not_with_few() -> None:
    assert Harness(deceptive_chain(3), mcts(iterations=60)).solve() == "right3"
    assert Harness(deceptive_chain(3), mcts(iterations=3)).solve() == "left3"


def test_the_best_of_many_arms_is_found_if_each_is_tried() -> None:
    for seed in range(5):
        made = bandit(5, seed=seed)
        assert made.states[Harness(made, mcts(iterations=40, k=5, c=2.0)).solve()].reward == 1.0


def test_a_state_on_the_own_path_is_closed_and_counts_the_value_it_had() -> None:
    made = graph({"a": ToyState(edges={"stay": ToyEdge(to="a", prior=9.0), "win": ToyEdge(to="won")}), "won": ToyState(reward=1.0)})
    run = Harness(made, mcts(iterations=2))
    run.search()
    stay = run.tree.root.edges[0]
    assert stay.closed.startswith("no-op") and stay.unsearched and not stay.futile
    assert (stay.visits, stay.value) == (1, run.tree.root.value)
    assert len(run.asked) == 3, "it was not judged again"
    assert run.commit() == "win"


def test_an_unsearchable_action_is_committed_if_its_value_is_clearly_higher() -> None:
    """Picking a card leaves no trace: the state looks the same. The only action with a visible effect is a bad end."""
    for bad, taken in ((0.05, "pick"), (0.45, "end")):
        states = {"a": ToyState(edges={"pick": ToyEdge(to="a", prior=9.0), "end": ToyEdge(to="lost")}, looks=0.5)}
        run = Harness(graph({**states, "lost": ToyState(reward=bad)}), mcts(iterations=12))
        run.search()
        assert run.commit() == taken


def test_it_must_promise_more_than_the_best_that_was_searched_not_only_than_the_surest() -> None:
    """The end has the value 0.95 by one evaluation. A path with many visits comes first, and the unsearched action has a lower value."""
    states = {
        "a": ToyState(edges={"pick": ToyEdge(to="a", prior=9.0), "end": ToyEdge(to="won"), "way": ToyEdge(to="b0")}, looks=0.85),
        "won": ToyState(reward=0.95),
        **{f"b{i}": ToyState(edges={"on": ToyEdge(to=f"b{i + 1}")}, looks=0.7) for i in range(30)},
    }
    run = Harness(graph({**states, "b30": ToyState(reward=0.7)}), MCTS(iterations=20, k=4, depth=30, final=lower_bound(z=2.0)))
    run.search()
    assert run.commit() == "way"


def test_the_policy_hears_once_what_the_environment_refused() -> None:
    def fault(selection: Selection, need: Need) -> Failure | None:
        return failed("action") if need == "step" and selection.edge == 0 else None  # type: ignore[return-value]

    run = Harness(two_arms(), mcts(iterations=8), fault)
    run.search()
    assert run.tree.root.expansions == 2
    assert sum(edge.prior for edge in run.tree.root.edges) == pytest.approx(1.0)


def test_a_wrong_turn_that_was_committed_can_be_taken_back() -> None:
    """`b` is a dead end: the only way on leads to the first root, which is no longer on the search's own path."""
    made = graph(
        {
            "a": ToyState(edges={"wrong": ToyEdge(to="b"), "right": ToyEdge(to="won")}, looks=0.2),
            "b": ToyState(edges={"back": ToyEdge(to="a")}, looks=0.9),
            "won": ToyState(reward=1.0),
        }
    )
    run = Harness(made, mcts(iterations=2))
    run.search()
    assert run.commit() == "wrong"
    run.search()
    assert run.commit() == "back"
    assert run.state(run.tree.root) == "a" and not run.tree.root.closed
    run.search()
    assert run.commit() == "right"


def test_exhausted_states_close_upward() -> None:
    made = graph(
        {
            "a": ToyState(edges={"in": ToyEdge(to="b", prior=9.0), "out": ToyEdge(to="lost")}, looks=0.5),
            "b": ToyState(edges={"in": ToyEdge(to="c")}, looks=0.5),
            "c": ToyState(edges={"to a": ToyEdge(to="a"), "to b": ToyEdge(to="b")}, looks=0.5),
            "lost": ToyState(reward=0.0),
        }
    )
    run = Harness(made, mcts(iterations=30))
    run.search()
    into = run.tree.root.edges[0]
    assert into.closed.startswith("exhausted") and into.child is not None and into.child.edges[0].closed.startswith("exhausted")
    assert run.algorithm.decide(run.tree).edges == (1,) or into.visits > 0
    assert not into.futile


def test_a_root_whose_every_action_leads_nowhere_is_expanded_again_a_few_times() -> None:
    made = graph({"a": ToyState(edges={"stay": ToyEdge(to="a")})})
    run = Harness(made, mcts(iterations=30, retries=2))
    assert run.search() == Done("every action was tried")
    assert run.tree.root.expansions == 3
    assert run.commit() == "stay", "as a last resort"


def test_a_policy_that_has_nothing_to_add_leaves_the_state_as_it_is() -> None:
    def fault(selection: Selection, need: Need) -> Failure | None:
        again = need == "proposals" and bool(run.tree.nodes[selection.node].edges)
        return failed("action") if again or (need == "step" and selection.edge == 0) else None  # type: ignore[return-value]

    run = Harness(two_arms(), mcts(iterations=8), fault)
    run.search()
    root = run.tree.root
    assert not root.closed and root.edges[0].futile and root.edges[1].visits == 1


def test_equal_searches_ask_for_the_same_in_the_same_order() -> None:
    one, two = (Harness(maze(seed=2), mcts(iterations=50)) for _ in range(2))
    one.solve(), two.solve()
    assert one.asked == two.asked and len(one.asked) > 20


def test_selections_are_numbered_from_zero_without_a_gap() -> None:
    run = Harness(form(2), mcts(iterations=20))
    run.solve()
    assert [selection.id for selection in run.asked] == list(range(len(run.asked)))


def test_iterations_that_a_step_leaves_over_serve_the_next() -> None:
    run = Harness(form(2), mcts(iterations=10, revisit="repeat"))
    while run.tree.iterations < 4:
        run.meet(run.select())
    run.commit()
    assert (run.tree.iterations, run.tree.allowed) == (4, 20)
    run.search()
    assert run.tree.iterations == 20


def test_a_root_whose_actions_the_real_environment_refuses_is_expanded_again_a_few_times() -> None:
    run = Harness(two_arms(), mcts(iterations=20))
    run.search()
    for index in (0, 1):
        run.algorithm.refuse(run.tree, index, "gone")
    run.tree.allowed += 5
    assert run.search() == Done("every action was tried")
    assert run.tree.root.expansions == 3
    with pytest.raises(SearchError, match="no action is left to commit"):
        run.algorithm.decide(run.tree)


def test_no_more_is_asked_for_than_the_iterations_allow_however_many_ask_at_once() -> None:
    run = Harness(bandit(5), mcts(iterations=4, k=5))
    run.meet(run.select())
    run.meet(run.select())
    together: list[Selection] = []
    while isinstance(answer := run.ask(), Selection):
        together.append(answer)
    for selection in together:
        run.meet(selection)
    assert isinstance(run.ask(), Done)
    assert run.tree.iterations == 4 and len(together) == 3


def test_many_at_once_go_to_different_leaves() -> None:
    run = Harness(bandit(4), mcts(iterations=16))
    run.meet(run.select())
    run.meet(run.select())
    open_ = [run.select() for _ in range(4)]
    assert {selection.edge for selection in open_} == {0, 1, 2, 3}
    assert not isinstance(run.ask(), Selection | Done)
    check(run.tree)


def test_a_released_selection_is_asked_for_again_from_where_it_was() -> None:
    run = Harness(chain(3), mcts())
    run.meet(run.select())
    run.meet(run.select())
    step = run.select()
    run.tell(step, Stepped(fingerprint="s1"))
    run.algorithm.release(run.tree, step)
    check_idle(run.tree)
    value = run.select()
    assert (value.node, value.edge, value.needs) == (1, None, ("value",))
    with pytest.raises(SearchError, match="not open"):
        run.tell(step, valued(0.5))
    run.meet(value)
    check_idle(run.tree)


def test_a_blocked_write_is_judged_once_and_the_search_goes_on_elsewhere() -> None:
    run = Harness(chain(3), mcts(iterations=9, c=0.0, revisit="repeat"))
    run.meet(run.select())
    run.meet(run.select())
    step = run.select()
    run.tell(step, Stepped(fingerprint="s0", blocked=True))
    run.tell(step, valued(0.9))
    assert run.select().edge == 1
    edge = run.tree.root.edges[0]
    assert (edge.visits, edge.value, edge.settled) == (1, pytest.approx(0.9), False) and edge.closed.startswith("unseen")
    assert run.algorithm.decide(run.tree).edges == (0,)


def test_nothing_is_requested_after_the_episodes_end() -> None:
    run = Harness(two_arms(), mcts())
    run.solve()
    assert run.ask() == Done("the episode has ended")


def test_the_forecast_names_open_nodes_and_changes_nothing() -> None:
    run = Harness(chain(4), mcts(iterations=12))
    run.search()
    before = [(node.visits, node.in_flight) for node in run.tree.nodes]
    likely = run.algorithm.forecast(run.tree, 2)
    assert 1 <= len(likely) <= 2 and all(node.edges and not node.closed and not node.leaf for node in likely)
    assert before == [(node.visits, node.in_flight) for node in run.tree.nodes]
    assert run.algorithm.forecast(run.tree, 0) == []


def test_a_failed_root_ends_the_search_with_the_reason() -> None:
    run = Harness(chain(2), mcts(retries=1), lambda selection, need: failed("model"))
    assert run.search() == Done("model: broke")
    assert len(run.asked) == 2


def test_a_selection_is_in_flight_on_every_edge_above_it() -> None:
    run = Harness(chain(4), mcts(c=0.0))
    selection = run.select()
    while run.tree.nodes[selection.node].depth < 2 or selection.edge is None:
        run.meet(selection)
        selection = run.select()
    node = run.tree.nodes[selection.node]
    assert [edge.in_flight for edge in node.path()] == [1, 1] == [run.tree.root.in_flight, node.in_flight]
    assert node.edges[selection.edge].in_flight == 1


def test_the_shorter_of_two_ways_to_one_end_is_committed() -> None:
    """The end is one click away; all other actions were tried and lead there as well."""
    detours = {name: ToyState(edges={"end": ToyEdge(to="won")}, looks=0.7) for name in "bcd"}
    ways = {"detour": ToyEdge(to="b", prior=3.0), "end": ToyEdge(to="won"), "other": ToyEdge(to="c"), "third": ToyEdge(to="d")}
    made = graph({"a": ToyState(edges=ways, looks=0.6), **detours, "won": ToyState(reward=0.95)})
    run = Harness(made, mcts(iterations=60))
    assert run.search() == Done("every action was tried")
    assert run.tree.root.edges[0].visits > run.tree.root.edges[1].visits
    assert run.commit() == "end"
