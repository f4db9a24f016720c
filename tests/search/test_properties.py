"""What holds of every search, whatever its strategies, its environment and its luck."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exact.config import SearchConfig
from exact.search.base import Diverged, Done, Need, Selection, Stepped, Valued, Wait
from exact.search.inspect.export import to_json
from exact.search.registry import algorithm
from exact.search.tree import SearchError, Tree
from tests.search.harness import Harness, failed
from tests.search.test_any_order import KINDS, any_environment

CONFIGS: st.SearchStrategy[SearchConfig] = st.builds(
    SearchConfig,
    iterations=st.integers(1, 25),
    k=st.integers(1, 4),
    depth=st.integers(1, 5),
    retries=st.integers(0, 2),
    evaluations=st.integers(1, 3),
    explore=st.sampled_from(["puct", "uct", "muzero"]),
    c=st.sampled_from([0.0, 0.5, 5.0]),
    first_play=st.sampled_from(["parent", "mean", "zero", "lowest"]),
    expansion=st.sampled_from(["lazy", "eager", "speculative"]),
    revisit=st.sampled_from(["exhaust", "repeat"]),
    backup=st.sampled_from(["mean", "max"]),
    merging=st.sampled_from(["none", "noop", "siblings", "full"]),
    candidates=st.sampled_from(["best", "sampled"]),
    widening=st.sampled_from([None, 1.0]),
    enough=st.sampled_from([None, 0.8]),
)
LUCK = {"seed": st.integers(0, 2**32), "workers": st.integers(1, 5), "trouble": st.sampled_from([0.0, 0.1, 0.5])}


class Weather:
    """Workers that go on, fail, are cancelled or find the environment elsewhere, at random. Keeps every value that was told."""

    def __init__(self, config: SearchConfig, seed: int, workers: int, trouble: float) -> None:
        self.dice, self.workers, self.trouble = random.Random(seed), workers, trouble
        self.run = Harness(any_environment(self.dice), algorithm(config))
        self.open: list[tuple[Selection, list[Need]]] = []
        self.values: list[float] = []

    @property
    def tree(self) -> Tree:
        return self.run.tree

    def go(self, searches: int = 3) -> None:
        """Search and commit a few times."""
        for _ in range(searches):
            self.search()
            idle(self.tree)
            try:
                index = self.run.algorithm.decide(self.tree).edges[0]
            except SearchError:
                return
            seen = self.run.step(self.tree.root, self.tree.root.edges[index])
            if not seen.terminated and self.dice.random() < 0.2:
                seen = Stepped(fingerprint="elsewhere")
            self.run.algorithm.advance(self.tree, index, seen)
            if self.tree.root.terminated:
                return

    def search(self) -> None:
        for _ in range(3000):
            answer = self.run.ask() if len(self.open) < self.workers else Wait()
            if isinstance(answer, Done):
                for selection, _ in self.open:
                    self.run.algorithm.release(self.tree, selection)
                self.open.clear()
                return
            if isinstance(answer, Selection):
                self.open.append((answer, list(answer.needs)))
            if self.open and (not isinstance(answer, Selection) or self.dice.random() < 0.5):
                self.move()
            counted(self.tree)
        raise AssertionError("it never ends")

    def move(self) -> None:
        selection, needs = self.open.pop(self.dice.randrange(len(self.open)))
        if self.dice.random() < self.trouble:
            return self.mishap(selection)
        result = self.run.result(selection, needs.pop(0))
        if isinstance(result, Valued):
            self.values.append(result.evaluation.value)
        self.run.tell(selection, result)
        if selection.id in self.tree.open:
            self.open.append((selection, needs))

    def mishap(self, selection: Selection) -> None:
        """Return a cancellation, a failure or a drift."""
        way = [
            (node.id, node.edges.index(edge))
            for node, edge in self.tree.open[selection.id].path
            if edge.child and not edge.child.terminated
        ]
        kind = self.dice.choice(["cancelled", "failed", "elsewhere"])
        if kind == "cancelled":
            self.run.algorithm.release(self.tree, selection)
        elif kind == "failed" or not way or self.tree.open[selection.id].left != list(selection.needs):
            self.run.tell(selection, failed(self.dice.choice(KINDS)))  # type: ignore[arg-type]
        else:
            node, edge = self.dice.choice(way)
            stepped = Stepped(fingerprint=f"other {self.dice.randint(1, 2)}")
            self.run.tell(selection, Diverged(node=node, edge=edge, stepped=stepped))


def counted(tree: Tree) -> None:
    for node in tree.nodes:
        assert node.visits == node.backups + sum(edge.visits for edge in node.edges), f"visits of node {node.id}"
        assert node.in_flight >= 0 and all(edge.in_flight >= 0 for edge in node.edges)


def idle(tree: Tree) -> None:
    """Check that no reservation is left."""
    counted(tree)
    assert not tree.open
    assert not any(node.in_flight or node.pending or any(edge.in_flight for edge in node.edges) for node in tree.nodes)


@given(config=CONFIGS, **LUCK)
@settings(max_examples=200, deadline=None)
def test_visits_are_own_evaluations_and_those_of_the_edges_and_reservations_return_to_zero(config: SearchConfig, **luck: Any) -> None:
    Weather(config, **luck).go()


@given(config=CONFIGS, **LUCK)
@settings(max_examples=150, deadline=None)
def test_q_is_within_the_range_of_the_values_backed_up(config: SearchConfig, **luck: Any) -> None:
    weather = Weather(config, **luck)
    weather.go()
    for node in weather.tree.nodes:
        for edge in node.edges:
            assert not edge.visits or min(weather.values) - 1e-9 <= edge.q <= max(weather.values) + 1e-9


@given(config=CONFIGS, **LUCK)
@settings(max_examples=60, deadline=None)
def test_priors_of_a_state_sum_to_one_and_open_edges_are_never_futile(config: SearchConfig, **luck: Any) -> None:
    weather = Weather(config, **luck)
    weather.go()
    for node in weather.tree.nodes:
        assert not node.edges or node.closed or abs(sum(edge.prior for edge in node.edges) - 1.0) < 1e-6 or _warm(node)
        assert all(edge.closed for edge in node.edges if edge.futile)


def _warm(node: Any) -> bool:
    """Return a root that began with another state's proposals, some of which may be left out."""
    return bool(node.fingerprint == "elsewhere" and not node.expansions)


@given(config=CONFIGS, **LUCK)
@settings(max_examples=60, deadline=None)
def test_a_tree_is_json_with_every_node_and_edge(config: SearchConfig, **luck: Any) -> None:
    weather = Weather(config, **luck)
    weather.go()
    data, tree = json.loads(to_json(weather.tree)), weather.tree
    assert [node["visits"] for node in data["nodes"]] == [node.visits for node in tree.nodes]
    assert [[edge["value"] for edge in node["edges"]] for node in data["nodes"]] == [[e.value for e in node.edges] for node in tree.nodes]


@given(config=CONFIGS, seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_same_luck_leads_to_the_same_tree(config: SearchConfig, seed: int) -> None:
    trees = []
    for _ in range(2):
        weather = Weather(config, seed, 3, 0.2)
        weather.go()
        trees.append(to_json(weather.tree))
    assert trees[0] == trees[1]


def test_a_search_that_has_overdrawn_its_iterations_knows_that_none_is_left() -> None:
    """Workers fail, and what they had begun counts: there may be less than nothing left to change the decision with."""
    config = SearchConfig(
        iterations=2, k=1, depth=1, retries=0, c=0.0, first_play="parent", expansion="lazy",
        revisit="exhaust", backup="mean", enough=0.8, evaluations=1,
    )  # fmt: skip
    Weather(config, seed=4619, workers=1, trouble=0.1).go()
