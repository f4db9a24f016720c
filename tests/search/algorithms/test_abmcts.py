"""AB-MCTS: posteriors by hand, one more sample or on in a child, duplicates, policies; against TreeQuest where it is installed."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from exact.config import SearchConfig
from exact.context import Evaluation, Proposal
from exact.environments.toy.known import ToyEdge, ToyState, bandit, chain, maze
from exact.errors import UsageError
from exact.search.algorithms.abmcts import ABMCTS, below, single, widths
from exact.search.base import Done, Need, Proposed, Result, Selection, Stepped, Valued
from exact.search.intervention import expand
from exact.search.registry import algorithm
from exact.search.rules.backup import generator
from exact.search.rules.posterior import Belief, Beta, Gaussian, Moments
from exact.search.tree import Tree
from tests.search.harness import Harness, check_idle, go, graph

VALUES = [[], [0.9], [0.2, 0.4, 0.9], [0.7, 0.75, 0.8, 0.7, 0.72, 0.71]]


def made(**more: object) -> ABMCTS:
    return ABMCTS(**{"iterations": 24, "merging": "none", **more})  # type: ignore[arg-type]


def seen(values: list[float]) -> Moments:
    found = Moments()
    for value in values:
        found = found.plus(single(value))
    return found


class Unbounded:
    """A policy that never draws the same twice, in states without an end; a state's value is keyed by its number."""

    def __init__(self, search: ABMCTS, *, seed: int = 0, rewards: dict[int, float] | None = None) -> None:
        self.search, self.tree, self.rewards, self.names = search, Tree(seed=seed), rewards, itertools.count()
        self.asked: list[Selection] = []

    def value(self, selection: Selection) -> float:
        node = self.tree.nodes[selection.node]
        if self.rewards is not None:
            return self.rewards[node.edges[selection.edge or 0].policy]
        return generator(self.tree.seed, "value", len(self.tree.nodes)).betavariate(2, 2)

    def result(self, selection: Selection, need: Need) -> Result:
        if need == "sample":
            return Proposed(proposals=(Proposal(action=go(f"{next(self.names)}"), prior=1.0),))
        if need == "step":
            return Stepped(fingerprint=f"s{len(self.tree.nodes)}")
        return Valued(evaluation=Evaluation(value=self.value(selection)))

    def run(self) -> Tree:
        while not isinstance(asked := self.search.ask(self.tree), Done):
            assert isinstance(asked, Selection)
            self.asked.append(asked)
            for need in asked.needs:
                self.search.tell(self.tree, asked, self.result(asked, need))
        return self.tree


@pytest.mark.parametrize("values", VALUES)
def test_a_beta_posterior_counts_values_as_fractions_of_successes(values: list[float]) -> None:
    dice, belief, found = random.Random(1), Beta(), seen(values)
    a, b = 0.5 + sum(values), 0.5 + len(values) - sum(values)
    drawn = [belief.draw(found, dice) for _ in range(4000)]
    assert belief.mean(found) == pytest.approx(a / (a + b))
    assert sum(drawn) / 4000 == pytest.approx(a / (a + b), abs=0.02)


def test_a_sampled_action_is_tried_before_anything_else_is_drawn() -> None:
    run = Unbounded(made(iterations=12))
    run.run()
    sampled = [(one, following) for one, following in itertools.pairwise(run.asked) if one.needs == ("sample",)]
    assert len(sampled) > 5
    assert all(following.needs[0] == "step" and following.node == one.node for one, following in sampled)


def test_a_gaussian_posterior_is_murphys() -> None:
    belief, found, dice = Gaussian(), seen([0.2, 0.4, 0.9]), random.Random(1)
    drawn = [belief.draw(found, dice) for _ in range(6000)]
    assert belief.mean(found) == pytest.approx(1.5 / 4)
    tau2 = (0.1 + 0.26 + 3 / 4 * 0.25) / 4  # S = 0.26 about the mean 0.5
    mean = sum(drawn) / len(drawn)
    assert mean == pytest.approx(1.5 / 4, abs=0.02)
    variance = sum((x - mean) ** 2 for x in drawn) / len(drawn)
    assert variance == pytest.approx(tau2 * 4 / (4 - 2) / 4, rel=0.25)  # a Student t with 4 degrees of freedom


def test_children_count_for_generating_and_what_lies_below_them_for_going_on() -> None:
    tree = Unbounded(made(iterations=30), seed=3).run()
    wide, deep = widths(tree.root)
    values = [node.value for node in tree.nodes if node.depth == 1]
    assert wide.n == len(values) and wide.total == pytest.approx(sum(v or 0 for v in values))
    assert wide.n + deep.n == 30 == sum(below(edge).n for edge in tree.root.edges)


@pytest.mark.parametrize("iterations", range(4, 33, 4))
def test_a_budget_is_used_to_the_last_iteration_and_not_passed(iterations: int) -> None:
    assert Unbounded(made(iterations=iterations)).run().iterations == iterations


def test_the_same_seed_makes_the_same_choices_and_another_one_others() -> None:
    def asked(seed: int) -> list[Selection]:
        search = Unbounded(made(), seed=0)
        search.tree.seed = seed
        search.value = lambda selection: 0.5  # type: ignore[method-assign]
        search.run()
        return search.asked

    assert asked(1) == asked(1) and asked(1) != asked(2)


def test_a_known_action_that_is_drawn_again_leads_on_in_its_child() -> None:
    only = graph({f"s{i}": ToyState(edges={"on": ToyEdge(to=f"s{i + 1}")}) for i in range(9)} | {"s9": ToyState(reward=1.0)}, "s0")
    run = Harness(only, made(iterations=6, depth=9))
    run.search()
    assert all(len(node.edges) <= 1 for node in run.tree.nodes)
    assert max(node.depth for node in run.tree.nodes) == 6
    samples = [selection for selection in run.asked if selection.needs == ("sample",)]
    assert len({(selection.node, selection.draw) for selection in samples}) == len(samples) > 6
    check_idle(run.tree)


def test_priors_are_the_frequencies_of_the_draws() -> None:
    run = Harness(bandit(3, rewards=[0.5, 0.5, 0.5]), made(iterations=60, evaluations=60))
    run.search()
    draws = run.tree.root.expansions
    assert draws > 5 and sum(edge.prior for edge in run.tree.root.edges) == pytest.approx(1.0)
    assert all(edge.prior * draws == pytest.approx(round(edge.prior * draws), abs=1e-6) for edge in run.tree.root.edges)


def test_a_policy_that_has_no_more_to_say_is_not_asked_for_ever() -> None:
    run = Harness(bandit(2), made(iterations=200, patience=3))
    assert run.search() == Done("every action was tried, and the policy draws no other")
    assert run.tree.root.expansions <= 3 * 3


def test_the_better_policy_is_drawn_from_more_often() -> None:
    search = Unbounded(made(iterations=60, policies=3), rewards={0: 0.1, 1: 0.9, 2: 0.2})
    search.run()
    counts = [sum(s.policy == p for s in search.asked if "sample" in s.needs) for p in range(3)]
    assert counts[1] > 2 * max(counts[0], counts[2]) and min(counts) > 0


@pytest.mark.parametrize("belief", [Beta(), Gaussian()])
def test_known_environments_are_solved(belief: Belief) -> None:
    for seed in range(4):
        arms = bandit(4, seed=seed)
        assert arms.states[Harness(arms, made(belief=belief, iterations=30)).solve()].reward == 1.0
    assert Harness(chain(4), made(belief=belief, iterations=40)).solve() == "s4"
    assert Harness(maze(), made(belief=belief, iterations=80, depth=10, merging="siblings")).solve() == "2,2"


def test_the_registry_makes_it_and_says_which_options_it_takes() -> None:
    found = algorithm(SearchConfig(algorithm="abmcts", options={"belief": "gaussian", "policies": 2, "patience": 5}))
    assert isinstance(found, ABMCTS) and found.belief == Gaussian() and found.policies == 2 and found.patience == 5
    for options in ({"belief": "blind"}, {"policies": 0}, {"arms": 2}):
        with pytest.raises(UsageError):
            algorithm(SearchConfig(algorithm="abmcts", options=options))


# --- against TreeQuest


def treequest() -> Any:
    return pytest.importorskip("treequest", reason="TreeQuest is not installed: shells/setup.sh --extras")


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize(("name", "belief"), [("beta", Beta()), ("gaussian", Gaussian())])
def test_draws_are_distributed_as_treequests(name: str, belief: Belief, values: list[float]) -> None:
    treequest()
    numpy = pytest.importorskip("numpy")
    stats = pytest.importorskip("scipy.stats")
    prob_state = pytest.importorskip("treequest.algos.ab_mcts_a.prob_state")

    numpy.random.seed(7)
    theirs, dice = prob_state.ProbabilisticDist(prob_state.PriorConfig(dist_type=name)), random.Random(7)
    for value in values:
        theirs.tell_observation(value)
    one_, two = [theirs.draw_sample() for _ in range(3000)], [belief.draw(seen(values), dice) for _ in range(3000)]
    assert stats.ks_2samp(one_, two).pvalue > 0.01


@pytest.mark.parametrize(("name", "belief"), [("beta", Beta()), ("gaussian", Gaussian())])
def test_trees_grow_as_treequests_do(name: str, belief: Belief) -> None:
    """Mean width of the root and mean depth of all states, over 150 searches of 20 iterations."""
    tq, numpy = treequest(), pytest.importorskip("numpy")

    numpy.random.seed(11)
    theirs, mine = [], []
    for seed in range(150):
        search, dice, depth = tq.ABMCTSA(dist_type=name), random.Random(seed), dict[int, int]()
        state = search.init_tree()
        for i in range(20):
            generate = {"one": lambda parent, i=i, dice=dice, depth=depth: (_below(depth, parent, i), dice.betavariate(2, 2))}
            state = search.step(state, generate, inplace=True)
        theirs.append((len(state.tree.root.children), sum(depth.values()) / 20))
        tree = Unbounded(made(belief=belief, iterations=20, depth=99), seed=seed).run()
        mine.append((len(tree.root.edges), sum(node.depth for node in tree.nodes) / 20))
    for a, b in zip(zip(*theirs, strict=True), zip(*mine, strict=True), strict=True):
        error = (numpy.var(a) / len(a) + numpy.var(b) / len(b)) ** 0.5
        assert abs(numpy.mean(a) - numpy.mean(b)) < 3 * error, (numpy.mean(a), numpy.mean(b))


def _below(depth: dict[int, int], parent: int | None, i: int) -> int:
    depth[i] = 1 if parent is None else depth[parent] + 1
    return i


def test_what_a_viewer_expands_at_the_depth_limit_is_not_followed_below_it() -> None:
    run = Harness(maze(4), made(iterations=60, depth=2))
    while not (deepest := [node for node in run.tree.nodes if node.depth == 2 and node.value is not None and not node.leaf]):
        run.meet(run.select())
    wanted = expand(run.algorithm, run.tree, deepest[0])
    assert wanted is not None and wanted.needs == ("proposals",)
    run.meet(wanted)
    assert deepest[0].edges
    run.search()
    assert max(node.depth for node in run.tree.nodes) == 2
