"""Table of docs/algorithms.md: which algorithm finds the optimum of which toy environment.

`python -m tests.search.known` writes the page. MISSES explains each optimum that an algorithm is not expected to find. The test fails if
one is missed without a reason, and if a reason does not hold.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import to_builtins

from exact.config import SearchConfig, parse
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.factory import ToyFactory, decision_graph
from exact.environments.toy.graph import doors
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, bandit, chain, deceptive_chain, form, ice, maze, trapped_maze
from exact.runs.journal.events import Decided
from exact.runs.journal.file import read_journal
from exact.search.base import Stepped
from exact.search.registry import BUILTIN, algorithm
from exact.search.tree import Edge, Node
from tests.runs.toys import toy_runner
from tests.search.harness import Harness
from tests.search.harness import graph as made_of

FILE = Path(__file__).parents[2] / "docs" / "algorithms.md"
SEEDS = range(10)
ITERATIONS = 32
VOTE = "tot_bfs (vote)"
ALGORITHMS = (*(name for name in BUILTIN if name != "explorer"), VOTE)  # an explorer searches as react does: its environment differs


def pit() -> ToyGraph:
    """Return an environment whose best-looking action cannot be undone and loses two steps later; beside it a dull action wins."""
    return made_of(
        {
            "a": ToyState(edges={"shine": ToyEdge(to="pit", prior=3.0), "dull": ToyEdge(to="b")}, looks=0.5),
            "pit": ToyState(edges={"x": ToyEdge(to="deep"), "y": ToyEdge(to="deep too")}, looks=0.8),
            "deep": ToyState(edges={"x": ToyEdge(to="lost")}, looks=0.7),
            "deep too": ToyState(edges={"x": ToyEdge(to="lost")}, looks=0.7),
            "b": ToyState(edges={"x": ToyEdge(to="won"), "y": ToyEdge(to="lost")}, looks=0.4),
            "won": ToyState(reward=1.0),
            "lost": ToyState(reward=0.0),
        }
    )


def needle() -> ToyGraph:
    """Return an environment with four fair paths that end at 0.3, and a fifth with low values for two steps that wins."""
    fair = {f"f{i}": ToyState(edges={"on": ToyEdge(to=f"g{i}")}, looks=0.5) for i in range(4)}
    ends = {f"g{i}": ToyState(reward=0.3) for i in range(4)}
    hidden = {"n": ToyState(edges={"on": ToyEdge(to="nn")}, looks=0.1), "nn": ToyState(edges={"on": ToyEdge(to="won")}, looks=0.1)}
    ways = {f"w{i}": ToyEdge(to=f"f{i}") for i in range(4)} | {"w4": ToyEdge(to="n")}
    return made_of({"a": ToyState(edges=ways, looks=0.4), **fair, **ends, **hidden, "won": ToyState(reward=1.0)})


class Known(NamedTuple):
    """An environment with a known optimum."""

    made: Callable[[int], ToyGraph]
    about: str


ENVIRONMENTS: Mapping[str, Known] = {
    "bandit": Known(lambda seed: bandit(5, seed=seed), "one of five arms wins"),
    "chain": Known(lambda seed: chain(4), "four binary choices in a row; the value grows along the right path"),
    "deceptive chain": Known(lambda seed: deceptive_chain(3), "two corridors; the one with the higher prior and values loses at its end"),
    "maze": Known(lambda seed: maze(3, 3, seed=seed), "3 by 3 rooms; the value follows the straight-line distance"),
    "traps": Known(lambda seed: trapped_maze(seed=seed), "4 by 4 rooms; two of them end the episode and have the highest priors"),
    "form": Known(lambda seed: form(3, seed=seed), "tick three boxes as instructed, then submit once; each tick can be undone"),
    "pit": Known(lambda seed: pit(), "the action with the best value cannot be undone and loses two steps later"),
    "needle": Known(lambda seed: needle(), "four fair paths end at 0.3; the fifth has low values for two steps and wins"),
    "doors": Known(lambda seed: doors(seed=seed), "opening a door is a write, blocked in search; keyholes show what is behind the doors"),
    "tree": Known(lambda seed: decision_graph(DecisionTree(3, 4, seed=seed, rate=0.0)), "three actions, depth four, one winning end"),
    "ice": Known(
        lambda seed: ice(seed=seed),
        "stochastic: the ice has the best value and breaks in 4 of 10 cases; the bridge holds (first choice counts)",
    ),
}

BLIND = "commits the policy's first choice without evaluating it"
NEAR = "searches one step deep, and the first step deceives"
CHANCE = "a policy with flat or wrong priors seldom samples the one right path"
PRUNED = "the right path has low values at first, so it is pruned"
LUCK = "tries each step once; only a second try shows that the step is stochastic"
DEEP = "the mean below the promising action stays high for long, so the other is seldom drawn"
SHARES = "a share of votes ranks siblings but does not measure their value"

MISSES: Mapping[tuple[str, str], str] = {
    **{("react", graph): BLIND for graph in ENVIRONMENTS if graph != "chain"},
    **{("greedy", graph): NEAR for graph in ("deceptive chain", "pit", "needle")},
    **{("best_of_n", graph): CHANCE for graph in ("form", "doors", "tree", "traps")},
    **{(name, "needle"): PRUNED for name in ("beam", "tot_bfs", "tot_dfs", VOTE)},
    **{(VOTE, graph): SHARES for graph in ("maze", "form")},
    **{("flat_halving", graph): NEAR for graph in ("deceptive chain", "pit", "needle")},
    **{("abmcts", graph): DEEP for graph in ("deceptive chain", "pit", "needle")},
    **{(name, "ice"): LUCK for name in ("flat_halving", "greedy", "best_first", "best_of_n", "beam", "tot_bfs", VOTE, "tot_dfs")},
}
"""Pairs in which an algorithm is not expected to find the optimum every time, with the reason."""


class BlockingHarness(Harness):
    """Harness that blocks writes in search if the environment cannot be rolled back, as the driver does."""

    def step(self, node: Node, edge: Edge) -> Stepped:
        writes = self.graph.states[self.state(node)].edges[str(edge.action.args[0])].write
        return Stepped(fingerprint="", blocked=True) if writes and not self.graph.isolated else super().step(node, edge)

    def looks(self, node: Node) -> float:
        return super().looks(node.parent if node.blocked and node.parent is not None else node)

    def commit(self) -> str:
        index = self.algorithm.decide(self.tree).edges[0]
        edge = self.tree.root.edges[index]
        self.algorithm.advance(self.tree, index, Harness.step(self, self.tree.root, edge))
        return str(edge.action.args[0])


def settings(name: str) -> SearchConfig:
    options = {"rating": "vote"} if name == VOTE else {}
    breadth = ITERATIONS if name == "best_of_n" else 3
    return SearchConfig(algorithm=name.split()[0], iterations=ITERATIONS, k=5, depth=8, breadth=breadth, options=options)


def found(name: str, graph: ToyGraph, seed: int) -> bool:
    """Return whether the best reward was reached; on the ice, whether the first choice was the bridge."""
    if graph.name == "ice":
        return first_choice(name, graph) == 'go "bridge"'
    run = BlockingHarness(graph, algorithm(settings(name)))
    run.tree.seed = seed
    return graph.states[run.solve(20)].reward == 1.0


def first_choice(name: str, graph: ToyGraph) -> str:
    """Return the first committed action in a stochastic environment, by the driver, which reaches states by replay."""
    with tempfile.TemporaryDirectory() as folder:
        config = parse({"search": to_builtins(settings(name)), "reflection": {"kind": "none"}, "limits": {"actions": 1}})
        runner = toy_runner(Path(folder) / "run", ToyFactory(graph, fidelity="replay"), config)
        asyncio.run(runner.run())
        journal = next((Path(folder) / "run" / "tasks").glob("*/journal.jsonl"))
        return next(event.action for event in read_journal(journal) if isinstance(event, Decided))


@cache
def count(name: str, graph: str) -> int:
    """Return in how many of the seeds the optimum is found."""
    return sum(found(name, ENVIRONMENTS[graph].made(seed), seed) for seed in SEEDS)


def page() -> str:
    """Return the page with current counts."""
    environments = "\n".join(f"| {name} | {known.about} |" for name, known in ENVIRONMENTS.items())
    notes = list(dict.fromkeys(MISSES.values()))
    rows = []
    for name in ALGORITHMS:
        cells = [f"{count(name, graph)}{_note(notes, name, graph)}" for graph in ENVIRONMENTS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    table = "\n".join([f"| | {' | '.join(ENVIRONMENTS)} |", "|---" * (len(ENVIRONMENTS) + 1) + "|", *rows])
    because = "\n".join(f"{i}. {note}" for i, note in enumerate(notes, 1))
    return TEXT.format(table=table, because=because, environments=environments, iterations=ITERATIONS, seeds=len(SEEDS))


def _note(notes: list[str], name: str, graph: str) -> str:
    return f" ({notes.index(MISSES[name, graph]) + 1})" if (name, graph) in MISSES else ""


TEXT = """# Algorithms

`search.algorithm` selects the search algorithm. The default is `mcts`. `exact list algorithms` prints all names, including those of
installed packages.

The code is in [exact/search](../exact/search): `mcts.py` holds the default search, `algorithms/` the others, and `rules/` the selection,
backup, stopping and final-choice rules. PUCT is computed in [rules/select.py](../exact/search/rules/select.py). The design and its
conventions are in [design/search.md](design/search.md). [search_options.md](search_options.md) has every option of every algorithm, with
its effect, default and range.

To add an algorithm, subclass `exact.search.work.Work` and register it in the entry point group `exact.algorithms`. An example is
[examples/own_algorithm](../examples/own_algorithm), run by [examples/04_own_algorithm.py](../examples/04_own_algorithm.py).

## What each algorithm finds

The table counts in how many of {seeds} seeds an algorithm finds the optimum of a toy environment. Settings: {iterations} iterations for
each action, 5 proposals a state, depth 8, breadth 3 (`best_of_n`: {iterations} trajectories), one action committed at a time.

Values are exact heuristics without noise. So the table shows what an algorithm can see, not how well it copes with an evaluator that errs.
[results/search.md](results/search.md) measures that: from 16 evaluations on, `gumbel` is ahead of `mcts`.

`python -m tests.search.known` writes this page; `tests/search/test_known.py` checks it.

{table}

The numbers in brackets say why an algorithm is not expected to find the optimum every time:

{because}

The environments:

| environment | description |
|---|---|
{environments}
"""

if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
