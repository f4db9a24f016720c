"""Gumbel search: the schedule and the improved policy by hand, toy environments, budgets, phases in parallel, kept subtrees."""

from __future__ import annotations

import math

import pytest

from exact.config import SearchConfig
from exact.context import Evaluation
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, bandit, chain, deceptive_chain, maze
from exact.errors import UsageError
from exact.search.algorithms.gumbel import Gumbel, gumbel
from exact.search.base import Done, Selection, Wait
from exact.search.registry import algorithm
from exact.search.rules.afford import Replans, affordable
from exact.search.rules.improve import by_noise, by_visits, improved, mixed_value, scores
from exact.search.tree import Edge, Node, Tree
from tests.search.harness import Harness, check, check_idle, go, graph


def made(**more: object) -> Gumbel:
    return Gumbel(**{"iterations": 16, "k": 16, "merging": "none", "revisit": "repeat", **more})  # type: ignore[arg-type]


def tall(arms: int, looks: dict[int, float] | None = None, priors: dict[int, float] | None = None, depth: int = 6) -> ToyGraph:
    """Arms that lead to corridors; each looks like its figure all along, else 0.5."""
    states = {"a": ToyState(edges={f"arm {i}": ToyEdge(to=f"{i}.0", prior=(priors or {}).get(i, 1.0)) for i in range(arms)}, looks=0.5)}
    for i in range(arms):
        for level in range(depth):
            on = {way: ToyEdge(to=f"{i}.{level + 1}") for way in ("on",)}
            states[f"{i}.{level}"] = ToyState(edges=on, looks=(looks or {}).get(i, 0.5))
        states[f"{i}.{depth}"] = ToyState(reward=(looks or {}).get(i, 0.5))
    return graph(states)


def node(value: float, *edges: tuple[float, int, float]) -> Node:
    """Return an evaluated state with edges of (prior, visits, Q)."""
    found = [Edge(go(f"{i}"), prior, visits=n, total=n * q, q=q) for i, (prior, n, q) in enumerate(edges)]
    return Node(0, evaluation=Evaluation(value=value), evaluations=1, value_sum=value, edges=found)


def test_an_untried_action_counts_with_the_mixed_value_of_its_state() -> None:
    assert mixed_value(node(0.4, (0.5, 0, 0.0), (0.5, 0, 0.0))) == 0.4
    weighted = (0.6 * 0.9 + 0.2 * 0.1) / 0.8
    assert mixed_value(node(0.4, (0.6, 3, 0.9), (0.2, 1, 0.1), (0.2, 0, 0.0))) == pytest.approx((0.4 + 4 * weighted) / 5)


def test_one_standard_error_of_the_judge_weighs_as_much_as_one_nat_of_prior() -> None:
    tree, state = Tree(), node(0.5, (0.5, 4, 0.6), (0.5, 4, 0.7))
    tree.squares, tree.repeats = 10 * 0.2**2, 10
    low, high = scores(tree, state, by_noise())
    assert high - low == pytest.approx(0.1 / (0.2 / math.sqrt(4)))


def test_the_noise_is_assumed_until_it_is_measured_and_never_below_its_floor() -> None:
    tree, state = Tree(), node(0.5, (0.5, 1, 0.6), (0.5, 1, 0.7))
    assert by_noise(assumed=0.1)(tree, state, [0.6, 0.7]) == pytest.approx([6.0, 7.0])
    tree.repeats = 1
    assert by_noise(floor=0.05)(tree, state, [0.6, 0.7]) == pytest.approx([12.0, 14.0])


def test_mctxs_sigma_is_its_formula() -> None:
    state = node(0.5, (0.5, 3, 0.6), (0.5, 1, 0.7))
    assert by_visits()(Tree(), state, [0.6, 0.7, 0.65]) == pytest.approx([0.0, 5.3, 2.65])


def test_below_the_root_visits_come_to_be_spread_as_the_improved_policy_is() -> None:
    state, rule = node(0.5, (0.6, 0, 0.5), (0.3, 0, 0.5), (0.1, 0, 0.5)), improved(by_noise())
    for _ in range(100):
        edge = state.edges[rule(Tree(), state)]
        edge.visits, edge.q = edge.visits + 1, 0.5
    assert [edge.visits for edge in state.edges] == pytest.approx([60, 30, 10], abs=1)


@pytest.mark.parametrize("iterations", range(4, 33))
def test_a_budget_is_used_to_the_last_iteration_and_not_passed(iterations: int) -> None:
    run = Harness(tall(9, depth=40), made(iterations=iterations, depth=50))
    run.search()
    assert run.tree.iterations == iterations == run.tree.root.visits
    check_idle(run.tree)


def test_half_of_the_actions_go_on_in_each_phase() -> None:
    run = Harness(tall(8, {5: 0.9, 2: 0.8}), made(iterations=15))
    run.search()
    assert sorted((edge.visits for edge in run.tree.root.edges), reverse=True) == [3, 3, 2, 2, 1, 1, 1, 1]
    assert run.commit() == "arm 5"


def test_the_likeliest_proposals_are_considered() -> None:
    run = Harness(tall(8, priors={3: 5.0, 6: 4.0, 1: 3.0}), made(iterations=10, considered=3))
    run.search()
    assert {str(edge.action.args[0]) for edge in run.tree.root.edges if edge.visits} == {"arm 3", "arm 6", "arm 1"}


@pytest.mark.parametrize("iterations", [4, 8, 16, 32])
def test_known_environments_are_solved(iterations: int) -> None:
    for seed in range(4):
        arms = bandit(min(iterations - 2, 4), seed=seed)
        considered = min(iterations - 2, 4)
        assert arms.states[Harness(arms, made(iterations=iterations, considered=considered)).solve()].reward == 1.0
        assert chain(4).states[Harness(chain(4), made(iterations=iterations)).solve()].reward == 1.0


def test_a_maze_and_a_deception_are_solved_with_a_budget_that_suffices() -> None:
    assert Harness(maze(), made(iterations=32, depth=10, revisit="exhaust", merging="siblings")).solve() == "2,2"
    assert Harness(deceptive_chain(3), made(iterations=32)).solve() == "right3"


def test_without_noise_the_search_is_the_same_for_every_seed_and_with_it_the_first_actions_differ() -> None:
    def visited(scale: float, seed: int) -> list[str]:
        run = Harness(tall(16), made(iterations=4, scale=scale))
        run.tree.seed = seed
        run.search()
        return [str(edge.action.args[0]) for edge in run.tree.root.edges if edge.visits]

    assert len({tuple(visited(0.0, seed)) for seed in range(10)}) == 1
    assert len({tuple(visited(1.0, seed)) for seed in range(10)}) > 5
    assert visited(1.0, 3) == visited(1.0, 3)


def test_gumbel_noise_has_the_mean_and_variance_of_its_distribution() -> None:
    tree = Tree(seed=1)
    drawn = [gumbel(tree, tree.root, i) for i in range(4000)]
    mean = sum(drawn) / len(drawn)
    assert mean == pytest.approx(0.5772, abs=0.06)
    assert sum((x - mean) ** 2 for x in drawn) / len(drawn) == pytest.approx(math.pi**2 / 6, rel=0.1)


def test_a_phase_is_asked_for_at_once_and_the_next_one_waits_for_all_its_results() -> None:
    run = Harness(tall(8), made(iterations=15))
    run.meet(run.select())
    run.meet(run.select())
    first = [run.select() for _ in range(8)]
    assert isinstance(run.ask(), Wait)
    assert len({selection.edge for selection in first}) == 8
    for selection in first[:-1]:
        run.meet(selection)
        assert isinstance(run.ask(), Wait)
    run.meet(first[-1])
    second = [run.select() for _ in range(4)]
    assert {selection.needs for selection in second} == {("proposals",)} and isinstance(run.ask(), Wait)


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_any_number_of_workers_visits_the_same_actions_as_often(workers: int) -> None:
    def visits(workers: int) -> list[int]:
        looks = {i: i * 5 % 8 / 8 for i in range(8)}
        run, open_ = Harness(tall(8, looks), made(iterations=31)), list[Selection]()
        while True:
            answer = run.ask() if len(open_) < workers else Wait()
            if isinstance(answer, Selection):
                open_.append(answer)
            elif isinstance(answer, Done):
                return [edge.visits for edge in run.tree.root.edges]
            else:
                run.meet(open_.pop())
            check(run.tree)

    assert visits(workers) == visits(1)


def test_a_kept_subtree_is_halved_anew_with_a_whole_budget() -> None:
    run = Harness(maze(4, 4), made(iterations=12, depth=6))
    run.search()
    run.commit()
    before, kept = run.tree.iterations, run.tree.root.visits
    assert kept > 0
    run.search()
    assert run.tree.iterations - before == 12 and run.tree.phase is not None and run.tree.phase.root == run.tree.root.id
    check_idle(run.tree)


def test_a_budget_that_shrinks_is_planned_anew_at_the_next_phase() -> None:
    search = made(iterations=63, considered=8)
    run = Harness(tall(8), search)
    while run.tree.phase is None or run.tree.phase.number == 0:
        search.replan(run.tree, max(0, 30 - run.tree.iterations))
        selection = run.ask()
        assert isinstance(selection, Selection)
        run.meet(selection)
    search.replan(run.tree, 30 - run.tree.iterations)
    assert run.search().reason.startswith("30 iterations: the budget pays for no more")
    assert isinstance(search, Replans)


def test_the_affordable_iterations_follow_from_the_cost_of_one() -> None:
    assert affordable({"money": 0.2, "seconds": 10}, {"money": 0.5, "seconds": 100, "calls": None}, 4) == 10
    assert affordable({"money": 0.2}, {"money": 0.0}, 4) == 0
    assert affordable({}, {"money": 1.0}, 4) is None and affordable({"money": 1.0}, {"money": 1.0}, 0) is None


def test_an_end_that_is_known_for_good_still_wins_the_choice_when_others_are_searched_on() -> None:
    states = dict(tall(7, dict.fromkeys(range(7), 0.6)).states)
    states["a"] = ToyState(edges={**states["a"].edges, "win": ToyEdge(to="won", prior=1.5)}, looks=0.5)
    run = Harness(graph({**states, "won": ToyState(reward=0.9)}), made(iterations=24, revisit="exhaust"))
    run.search()
    edge = next(edge for edge in run.tree.root.edges if edge.action.args[0] == "win")
    assert edge.visits == 1 and edge.settled
    assert run.commit() == "win"


def test_the_registry_makes_it_and_says_which_options_it_takes() -> None:
    found = algorithm(SearchConfig(algorithm="gumbel", options={"considered": 4, "halving": "visits", "sigma": "visits", "scale": 1}))
    assert isinstance(found, Gumbel) and found.considered == 4 and found.late and found.scale == 1.0
    for options in ({"considred": 4}, {"considered": 0}, {"sigma": "loud"}, {"scale": -1}):
        with pytest.raises(UsageError):
            algorithm(SearchConfig(algorithm="gumbel", options=options))
