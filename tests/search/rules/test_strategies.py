"""Each strategy that `mcts` takes by configuration, in a small scenario that it alone decides: disconnected, the test fails."""

from __future__ import annotations

from typing import Any

import pytest

from exact.action import Action
from exact.config import SearchConfig
from exact.context import Evaluation, Proposal
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, chain
from exact.search.base import Done, Need, Proposed, Selection, Stepped, Wait
from exact.search.registry import algorithm, final_choice, rule
from exact.search.rules import select
from exact.search.rules.backup import maximum
from exact.search.rules.final import lower_bound
from exact.search.rules.merge import answers
from exact.search.tree import Edge, Node, Tree
from tests.search.harness import Harness, failed, go, graph, proposed, two_arms, valued
from tests.search.parity.trees import Counts, State, searched


def mcts(**settings: Any) -> Any:
    return algorithm(SearchConfig(**settings))


def explored(made: ToyGraph, **settings: Any) -> Harness:
    run = Harness(made, mcts(**settings))
    run.search()
    return run


def counts(tree: State, **settings: Any) -> Counts:
    return searched(tree, mcts(**settings))


def node(value: float, *edges: Edge) -> Node:
    visits = 1 + sum(edge.visits for edge in edges)
    state = Node(0, evaluation=Evaluation(value=value), evaluations=1, value_sum=value, visits=visits, backups=1, edges=list(edges))
    state.in_flight = sum(edge.in_flight for edge in edges)
    return state


def edge(prior: float, visits: int = 0, q: float = 0.0, **more: Any) -> Edge:
    made = Edge(go("on"), prior, visits=visits, total=q * visits, q=q)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def followed(state: Node, tree: Tree | None = None, **settings: Any) -> int:
    return rule(SearchConfig(**settings))(tree or Tree(), state)


WAY = State(0.5, (1.0,), (State(0.2, (1.0,), (State(0.8),)),))
"""One action after the other; the judge says 0.5, 0.2, 0.8."""


# --- selection


@pytest.mark.parametrize("explore, index", [("puct", 0), ("muzero", 0), ("uct", 1)])
def test_uct_tries_each_action_once_for_any_prior(explore: str, index: int) -> None:
    assert followed(node(0.5, edge(0.99, 5, 0.9), edge(0.01)), explore=explore) == index


def test_muzeros_constant_is_larger_by_its_quarter() -> None:
    state = node(0.5, edge(0.5, 3, 0.82), edge(0.5, 1, 0.5))
    assert followed(state, c=1.0, explore="puct") == 0 and followed(state, c=1.15, explore="muzero") == 1


@pytest.mark.parametrize("kind, index, second", [("parent", 1, 2), ("mean", 1, 0), ("zero", 0, 0), ("lowest", 0, 0)])
def test_first_play_decides_whether_an_untried_action_is_followed(kind: str, index: int, second: int) -> None:
    settings = {"first_play": kind, "c": 0.0}
    assert followed(node(0.5, edge(0.5, 1, 0.4), edge(0.5)), **settings) == index
    assert followed(node(0.5, edge(0.3, 1, 0.3), edge(0.4, 8, 0.1), edge(0.3)), **settings) == second


def test_normalising_lets_a_small_difference_of_values_outweigh_the_priors() -> None:
    state, tree = node(0.51, edge(0.1, 10, 0.52), edge(0.9, 9, 0.50)), Tree()
    assert [select.rule(normalise=select.siblings(floor))(tree, state) for floor in (0.001, 0.5)] == [0, 1], (
        "a floor keeps differences small"
    )
    assert select.rule()(tree, state) == 1
    tree.squares, tree.repeats = 1.0, 4
    assert tree.noise == 0.5 and select.rule(normalise=select.siblings(0.001))(tree, state) == 1, "so does the noise of the judge"


# --- several at once


def test_a_selection_in_flight_counts_as_a_visit_without_a_value() -> None:
    state = node(0.5, edge(0.5, 4, 0.6, in_flight=4, child=Node(1)), edge(0.5, 4, 0.4))
    assert followed(state, c=0.0) == 0 and followed(state, c=9.0) == 1


def test_a_descent_passes_over_a_state_that_is_worked_on_and_waits_if_all_are() -> None:
    run = Harness(two_arms(), mcts(iterations=9, k=2, first_play="zero", c=0.0))
    run.meet(run.select())
    run.meet(run.select())
    assert [run.select().edge, run.select().edge] == [0, 1]
    assert isinstance(run.ask(), Wait)


@pytest.mark.parametrize(
    "expansion, after, together",
    [("lazy", ("value",), False), ("eager", ("value", "proposals"), False), ("speculative", ("value", "proposals"), True)],
)
def test_expansion_says_when_the_policy_is_asked(expansion: str, after: tuple[Need, ...], together: bool) -> None:
    run = Harness(chain(5), mcts(expansion=expansion, iterations=9))
    assert run.select().needs == after
    run.meet(run.asked[0])
    if expansion == "lazy":
        run.meet(run.select())
    step = run.select()
    assert (step.needs, step.together) == (("step", *after), together)


@pytest.mark.parametrize("revisit, visits, judged", [("exhaust", 1, 3), ("repeat", 8, 3)])
def test_an_end_that_is_visited_again_is_closed_or_counts_once_more(revisit: str, visits: int, judged: int) -> None:
    run = explored(two_arms(), revisit=revisit, iterations=10, c=0.5, k=2)
    best = run.tree.root.edges[0]
    assert (best.visits, bool(best.closed)) == (visits, revisit == "exhaust")
    assert sum("value" in selection.needs for selection in run.asked) == judged


def test_an_end_is_judged_as_often_as_it_may_be() -> None:
    run = explored(two_arms(), iterations=30, k=2, evaluations=3)
    assert [edge.child.evaluations for edge in run.tree.root.edges if edge.child] == [3, 3]


# --- growing


def kept(kind: str, seed: int) -> list[str]:
    """Return which of four actions become children where two may."""
    run = Harness(chain(3), mcts(candidates=kind, k=2, iterations=9))
    run.tree.seed = seed
    run.meet(run.select())
    run.tell(run.select(), proposed(a=0.01, b=0.01, c=0.97, d=0.01))
    assert sum(edge.prior for edge in run.tree.root.edges) == pytest.approx(1.0)
    return [str(edge.action.args[0]) for edge in run.tree.root.edges]


@pytest.mark.parametrize("kind, least, most", [("best", 60, 60), ("sampled", 55, 60)])
def test_candidates_are_the_likeliest_or_drawn_by_prior(kind: str, least: int, most: int) -> None:
    drawn = [kept(kind, seed) for seed in range(60)]
    assert least <= sum("c" in names for names in drawn) <= most
    assert drawn == [kept(kind, seed) for seed in range(60)], "drawn by key, not from a stream"
    assert (len({tuple(names) for names in drawn}) == 1) == (kind == "best")


@pytest.mark.parametrize("temperature, prior", [(1.0, 0.8), (0.5, 0.64 / 0.68), (2.0, 2 / 3)])
def test_temperature_sharpens_or_flattens_the_priors(temperature: float, prior: float) -> None:
    run = Harness(chain(3), mcts(temperature=temperature, iterations=9))
    run.meet(run.select())
    run.tell(run.select(), proposed(a=0.8, b=0.2))
    assert run.tree.root.edges[0].prior == pytest.approx(prior)


@pytest.mark.parametrize("temperature", [0.01, 0.001, 1e-9, 5e-324])
def test_a_low_temperature_leaves_the_likeliest(temperature: float) -> None:
    run = Harness(chain(3), mcts(temperature=temperature, iterations=9))
    run.meet(run.select())
    run.tell(run.select(), proposed(a=0.3, b=0.4, c=0.3))
    assert [edge.prior for edge in run.tree.root.edges] == pytest.approx([0.0, 1.0, 0.0])


def widened(iterations: int, **settings: Any) -> Harness:
    """Return a search that requests one new action at a time."""
    arms = {f"x{i}": ToyEdge(to="end") for i in range(20)}
    run = Harness(
        graph({"a": ToyState(edges=arms), "end": ToyState(reward=0.5)}), mcts(iterations=iterations, revisit="repeat", **settings)
    )
    meet = run.result

    def result(selection: Selection, need: Need) -> Any:
        return Proposed(proposals=(Proposal(action=go(f"x{selection.draw}"), prior=1.0),)) if need == "sample" else meet(selection, need)

    run.result = result  # type: ignore[method-assign]
    run.search()
    return run


@pytest.mark.parametrize("scale, children", [(1.0, 6), (2.0, 12)])
def test_widening_gives_a_state_children_by_the_root_of_its_visits(scale: float, children: int) -> None:
    run = widened(36, widening=scale, merging="none")
    assert len(run.tree.root.edges) == children
    assert {selection.needs for selection in run.asked if "step" not in selection.needs} == {("value",), ("sample",)}


@pytest.mark.parametrize("draws_before", [1, 2, 3])
def test_with_widening_a_refused_action_makes_room_for_another(draws_before: int) -> None:
    ways = {"broken": ToyEdge(to="won"), "win": ToyEdge(to="won")}
    states = {"a": ToyState(edges={"on": ToyEdge(to="b")}), "b": ToyState(edges=ways), "won": ToyState(reward=1.0)}
    run = Harness(graph(states), mcts(iterations=60, widening=1.0))
    meet = run.result

    def result(selection: Selection, need: Need) -> Any:
        name = "on" if selection.node == 0 else "broken" if selection.draw < draws_before else "win"
        return Proposed(proposals=(Proposal(action=go(name), prior=1.0),)) if need == "sample" else meet(selection, need)

    run.result = result  # type: ignore[method-assign]
    run.fault = lambda selection, need: failed("action") if need == "step" and (selection.node, selection.edge) == (1, 0) else None  # type: ignore[assignment]
    run.search()
    assert [edge.futile for edge in run.tree.nodes[1].edges] == [True, False]
    assert run.tree.root.edges[0].q == 1.0


# --- what is backed up


@pytest.mark.parametrize("backup, q", [("mean", 0.5), ("max", 0.8)])
def test_a_backup_makes_q_of_the_values_below(backup: str, q: float) -> None:
    assert counts(WAY, iterations=3, backup=backup).q[0,] == pytest.approx(q)


def test_a_discount_makes_the_farther_value_count_less() -> None:
    assert counts(WAY, iterations=3, discount=0.9).q[0,] == pytest.approx((0.9 * 0.2 + 0.81 * 0.8) / 2)


def test_a_discount_counts_for_the_best_below_as_for_the_mean() -> None:
    assert counts(WAY, iterations=3, discount=0.9, backup="max").q[0,] == pytest.approx(0.81 * 0.8)


def test_an_edge_that_leads_in_a_circle_is_no_best_way_on() -> None:
    below = Node(1, evaluation=Evaluation(value=0.1), evaluations=1, value_sum=0.1)
    below.edges = [edge(0.5, 1, 0.9, closed="no-op: back", unsearched=True), edge(0.5, 1, 0.3)]
    assert maximum(edge(1.0, 3, 0.4), below) == 0.3
    below.edges = below.edges[:1]
    assert maximum(edge(1.0, 2, 0.5), below) == 0.1


def test_ends_with_one_answer_pool_what_is_said_of_them() -> None:
    run = Harness(chain(3), mcts(iterations=9, k=2, depth=3))
    run.meet(run.select())
    stops = [Action("stop", (text,), f'stop "{text}"') for text in ("42", "7")]
    run.tell(run.select(), Proposed(proposals=(Proposal(action=go("on"), prior=0.5), Proposal(action=stops[0], prior=0.5))))
    for value in (0.2, 0.8):
        while (asked := run.select()).edge != 1:
            if asked.needs == ("proposals",):
                run.tell(asked, Proposed(proposals=(Proposal(action=go("x"), prior=0.1), Proposal(action=stops[0], prior=0.9))))
                continue
            run.tell(asked, Stepped(fingerprint=f"s{len(run.tree.nodes)}"))
            run.tell(asked, valued(0.9))
        run.tell(asked, Stepped(fingerprint="", terminated=True))
        run.tell(asked, valued(value))
    (answer,) = answers(run.tree)
    assert (answer.key, len(answer.nodes), answer.value, answer.weight) == ('stop "42"', 2, pytest.approx(0.5), pytest.approx(1.0))
    second = run.tree.nodes[answer.nodes[1]].edge
    assert second is not None and second.q == pytest.approx(0.5), "0.2 and 0.8 were said of it"


# --- merging


LOOP = graph({"a": ToyState(edges={"stay": ToyEdge(to="a", prior=9.0), "win": ToyEdge(to="won")}), "won": ToyState(reward=1.0)})
TWINS = graph(
    {
        "a": ToyState(edges={"x": ToyEdge(to="b", prior=3.0), "y": ToyEdge(to="b")}),
        "b": ToyState(edges={"z": ToyEdge(to="c")}),
        "c": ToyState(reward=0.5),
    }
)
DIAMOND = graph(
    {
        "a": ToyState(edges={"x": ToyEdge(to="b"), "y": ToyEdge(to="c")}),
        "b": ToyState(edges={"x": ToyEdge(to="d"), "y": ToyEdge(to="e")}),
        "c": ToyState(edges={"x": ToyEdge(to="d")}),
        "d": ToyState(edges={"x": ToyEdge(to="f")}),
        "e": ToyState(edges={"x": ToyEdge(to="d")}),
        "f": ToyState(reward=1.0),
    }
)
"""`d` is reached in two steps by two ways, and in three by a third."""


def nodes(made: ToyGraph, state: str, **settings: Any) -> int:
    """Return the number of nodes that are states of their own."""
    shut = ("no-op", "twin", "merged")
    tree = explored(made, c=2.0, k=2, **settings).tree
    return sum(node.fingerprint == state and not node.closed.startswith(shut) for node in tree.nodes)


@pytest.mark.parametrize("merging, loops, twins, ways", [("none", 3, 2, 3), ("noop", 1, 2, 3), ("siblings", 1, 1, 3), ("full", 1, 1, 2)])
def test_merging_says_what_counts_as_one_state(merging: str, loops: int, twins: int, ways: int) -> None:
    assert nodes(LOOP, "a", iterations=3, merging=merging) == loops
    assert nodes(TWINS, "b", iterations=8, merging=merging) == twins
    assert nodes(DIAMOND, "d", iterations=60, merging=merging) == ways, "those of equal depth"


def test_after_a_commit_a_merged_state_tells_the_way_that_was_taken_to_it() -> None:
    run = Harness(DIAMOND, mcts(iterations=60, merging="full", c=2.0, k=2))
    run.search()
    for name in ("y", "x"):
        index = [edge.action.args[0] for edge in run.tree.root.edges].index(name)
        assert run.algorithm.advance(run.tree, index, run.step(run.tree.root, run.tree.root.edges[index]))
    assert run.tree.root.fingerprint == "d" and [edge.action.args[0] for edge in run.tree.root.path()] == ["y", "x"]


def test_the_priors_of_siblings_that_land_together_add() -> None:
    run = explored(TWINS, iterations=6, k=2, c=9.0)
    assert [edge.prior for edge in run.tree.root.edges] == [1.0, 0.0]
    assert run.tree.root.edges[1].futile and run.tree.root.edges[1].closed.startswith("twin")


def test_a_sibling_lands_on_one_that_was_exhausted_before() -> None:
    run = explored(TWINS, iterations=12, k=2, c=0.0)
    assert run.tree.root.edges[0].settled and run.tree.root.edges[1].closed.startswith("twin")


def test_states_that_look_alike_and_differ_beyond_are_not_merged() -> None:
    run = Harness(DIAMOND, mcts(iterations=60, merging="full", c=2.0, k=2))
    step = run.step
    run.step = lambda node, edge: Stepped(**{**_fields(step(node, edge)), "beyond": f"written in {run.state(node)}"})  # type: ignore[method-assign]
    run.search()
    assert len({n.beyond for n in run.tree.nodes if n.fingerprint == "d" and not n.closed.startswith("merged")}) == 3
    assert not any(node.closed.startswith("merged") for node in run.tree.nodes)


def _fields(stepped: Stepped) -> dict[str, Any]:
    return {"fingerprint": stepped.fingerprint, "terminated": stepped.terminated}


# --- the end of a search


def test_the_final_choice_is_by_visits_or_by_value_or_by_both_or_by_a_bound() -> None:
    state, tree = node(0.5, edge(0.5, 10, 0.5), edge(0.5, 3, 0.9)), Tree()
    tree.squares, tree.repeats = 1.0, 4

    def first(**settings: Any) -> int:
        return final_choice(SearchConfig(**settings)).order(tree, state)[0]

    assert (first(final="visits"), first(final="value"), first(final="max_robust")) == (0, 1, 0)
    assert (first(final="lower_bound"), lower_bound(z=5.0).order(tree, state)[0]) == (1, 0)
    state.edges = [*state.edges, edge(0.1, 10, 0.7)]
    assert first(final="visits") == 2, "of equal visits the higher value"


@pytest.mark.parametrize("q, index", [(0.9, 1), (0.3, 0)])
def test_an_exhausted_end_can_win_with_any_number_of_visits(q: float, index: int) -> None:
    state = node(0.5, edge(0.5, 10, 0.5), edge(0.5, 1, q, closed="exhausted", settled=True))
    assert final_choice(SearchConfig()).order(Tree(), state)[0] == index


def test_the_final_choice_reaches_the_decision() -> None:
    made = graph(
        {
            "a": ToyState(edges={"often": ToyEdge(to="b", prior=5.0), "best": ToyEdge(to="c")}, looks=0.5),
            "b": ToyState(edges={"on": ToyEdge(to="b2"), "off": ToyEdge(to="b3")}, looks=0.5),
            "b2": ToyState(edges={"on": ToyEdge(to="b3")}, looks=0.5),
            "b3": ToyState(edges={"on": ToyEdge(to="b2")}, looks=0.4),
            "c": ToyState(edges={"on": ToyEdge(to="b3")}, looks=0.95),
        }
    )
    assert [explored(made, iterations=7, final=final, c=5.0).commit() for final in ("visits", "value")] == ["often", "best"]


@pytest.mark.parametrize("think, write, ended", [(None, False, False), (0.9, False, True), (0.96, False, False), (0.9, True, False)])
def test_a_clear_action_is_committed_without_a_search(think: float | None, write: bool, ended: bool) -> None:
    run = Harness(two_arms(), mcts(think=think, iterations=9))
    run.meet(run.select())
    sure = Proposal(action=go("x"), prior=0.95, writes=write)
    run.tell(run.select(), Proposed(proposals=(sure, Proposal(action=go("y"), prior=0.05))))
    assert isinstance(run.ask(), Done) == ended


@pytest.mark.parametrize("second, ended", [(0.95, True), (0.2, False)])
def test_a_good_end_ends_the_search_once_it_is_confirmed(second: float, ended: bool) -> None:
    run = Harness(two_arms(), mcts(enough=0.9, iterations=20, k=2))
    for _ in range(3):
        run.meet(run.select())
    confirming = run.select()
    assert confirming.confirms and confirming.needs == ("value",) and confirming.node == 1 and confirming.draw == 1
    run.tell(confirming, valued(second))
    assert isinstance(run.ask(), Done) == ended
    assert not any(selection.confirms for selection in explored(two_arms(), iterations=20, k=2).asked)


@pytest.mark.parametrize("commit, length", [("replan", 1), ("plan", 4)])
def test_a_plan_is_the_whole_way(commit: str, length: int) -> None:
    run = explored(chain(4), iterations=60, commit=commit)
    assert run.algorithm.decide(run.tree).edges == (0,) * length
