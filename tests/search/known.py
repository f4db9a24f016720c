"""Which algorithm finds the optimum of which toy environment: the table of docs/algorithms.md.

`python -m tests.search.known` writes it anew. Where an algorithm should not find an optimum, MISSES says why; the test fails both
where one is missed without a reason and where a reason does not hold.
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
from exact.environments.toy.chance import ice
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.decision_environment import decision_graph
from exact.environments.toy.doors import doors
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, bandit, chain, deceptive_chain, form
from exact.environments.toy.maze import maze, trapped_maze
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
ALGORITHMS = (*BUILTIN, VOTE)


def pit() -> ToyGraph:
    """What looks best cannot be undone: behind it all is lost, two steps on. Beside it a dull way wins."""
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
    """Four ways that look fair and end at 0.3; the fifth looks hopeless for two steps, and wins."""
    fair = {f"f{i}": ToyState(edges={"on": ToyEdge(to=f"g{i}")}, looks=0.5) for i in range(4)}
    ends = {f"g{i}": ToyState(reward=0.3) for i in range(4)}
    hidden = {"n": ToyState(edges={"on": ToyEdge(to="nn")}, looks=0.1), "nn": ToyState(edges={"on": ToyEdge(to="won")}, looks=0.1)}
    ways = {f"w{i}": ToyEdge(to=f"f{i}") for i in range(4)} | {"w4": ToyEdge(to="n")}
    return made_of({"a": ToyState(edges=ways, looks=0.4), **fair, **ends, **hidden, "won": ToyState(reward=1.0)})


class Known(NamedTuple):
    """An environment whose optimum is known."""

    made: Callable[[int], ToyGraph]
    about: str


WORLDS: Mapping[str, Known] = {
    "bandit": Known(lambda seed: bandit(5, seed=seed), "one of five arms wins"),
    "chain": Known(lambda seed: chain(4), "four right steps of two each; the value grows on the way"),
    "deceptive chain": Known(lambda seed: deceptive_chain(3), "of two corridors the likelier and better-looking one loses at its end"),
    "maze": Known(lambda seed: maze(3, 3, seed=seed), "3 by 3 rooms; the value is the distance as the crow flies"),
    "traps": Known(lambda seed: trapped_maze(seed=seed), "4 by 4 rooms, two of which end it and are liked best by the policy"),
    "form": Known(lambda seed: form(3, seed=seed), "three boxes to tick as told, then submit, once; any box can be undone"),
    "pit": Known(lambda seed: pit(), "what looks best cannot be undone, and loses two steps later"),
    "needle": Known(lambda seed: needle(), "four fair ways end at 0.3; the fifth looks hopeless for two steps, and wins"),
    "doors": Known(lambda seed: doors(seed=seed), "opening a door is a write, held in search and not undone; keyholes show what is behind"),
    "tree": Known(lambda seed: decision_graph(DecisionTree(3, 4, seed=seed, rate=0.0)), "three actions, four deep, one end wins"),
    "ice": Known(
        lambda seed: ice(seed=seed), "stochastic: the ice looks best and breaks in 4 of 10 cases; the bridge holds (first choice counts)"
    ),
}

BLIND = "takes the policy's first choice, without a look"
NEAR = "looks one step ahead, and the first step deceives"
CHANCE = "a policy that is indifferent, or likes the wrong, seldom draws the one right way"
PRUNED = "the right way looks hopeless at first, so it is pruned"
LUCK = "believes what came of a step once; that it slips shows only on a second try"
DEEP = "the mean below what looks good stays high for long, so draws seldom go where it looks bad"
SHARES = "a share of the votes says which sibling is best, not how good it is"

MISSES: Mapping[tuple[str, str], str] = {
    **{("react", graph): BLIND for graph in WORLDS if graph != "chain"},
    **{("greedy", graph): NEAR for graph in ("deceptive chain", "pit", "needle")},
    **{("best_of_n", graph): CHANCE for graph in ("form", "doors", "tree", "traps")},
    **{(name, "needle"): PRUNED for name in ("beam", "tot_bfs", "tot_dfs", VOTE)},
    **{(VOTE, graph): SHARES for graph in ("maze", "form")},
    **{("flat_halving", graph): NEAR for graph in ("deceptive chain", "pit", "needle")},
    **{("abmcts", graph): DEEP for graph in ("deceptive chain", "pit", "needle")},
    **{
        (name, "ice"): LUCK
        for name in ("mcts", "gumbel", "flat_halving", "abmcts", "greedy", "best_first", "best_of_n", "beam", "tot_bfs", VOTE, "tot_dfs")
    },
}
"""Where an algorithm should not always find the optimum, and why."""


class Held(Harness):
    """Holds writes back in search where the environment cannot be rolled back, as the driver does."""

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
    """Whether the best reward was committed, action by action; on the ice, whether the first choice was the bridge."""
    if graph.name == "ice":
        return first_choice(name, graph) == 'go "bridge"'
    run = Held(graph, algorithm(settings(name)))
    run.tree.seed = seed
    return graph.states[run.solve(20)].reward == 1.0


def first_choice(name: str, graph: ToyGraph) -> str:
    """What is committed first where steps are stochastic: by the driver, which comes to a state by acting again."""
    with tempfile.TemporaryDirectory() as folder:
        config = parse({"search": to_builtins(settings(name)), "reflection": {"kind": "none"}, "limits": {"actions": 1}})
        runner = toy_runner(Path(folder) / "run", ToyFactory(graph, fidelity="replay"), config)
        asyncio.run(runner.run())
        journal = next((Path(folder) / "run" / "tasks").glob("*/journal.jsonl"))
        return next(event.action for event in read_journal(journal) if isinstance(event, Decided))


@cache
def count(name: str, graph: str) -> int:
    """In how many of the seeds the optimum is found."""
    return sum(found(name, WORLDS[graph].made(seed), seed) for seed in SEEDS)


def page() -> str:
    """The page, from what is found now."""
    environments = "\n".join(f"| {name} | {known.about} |" for name, known in WORLDS.items())
    notes = list(dict.fromkeys(MISSES.values()))
    rows = []
    for name in ALGORITHMS:
        cells = [f"{count(name, graph)}{_note(notes, name, graph)}" for graph in WORLDS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    table = "\n".join([f"| | {' | '.join(WORLDS)} |", "|---" * (len(WORLDS) + 1) + "|", *rows])
    because = "\n".join(f"{i}. {note}" for i, note in enumerate(notes, 1))
    return TEXT.format(table=table, because=because, environments=environments, iterations=ITERATIONS, seeds=len(SEEDS))


def _note(notes: list[str], name: str, graph: str) -> str:
    return f" ({notes.index(MISSES[name, graph]) + 1})" if (name, graph) in MISSES else ""


TEXT = """# Algorithms and what they find

`search.algorithm` chooses one; `mcts` is the default. `exact config algorithms` prints the names, those of installed packages too.
Their modules are in [exact/search](../exact/search). Some have keys of their own under `search.options`.

One of your own is a subclass of `exact.search.work.Work` and an entry point of the group `exact.algorithms`:
[examples/own_algorithm](../examples/own_algorithm), run by [examples/04_own_algorithm.py](../examples/04_own_algorithm.py).

Which algorithm finds the optimum of which toy environment, in how many of {seeds} seeds: {iterations} iterations for each action,
5 proposals a state, 8 actions deep, breadth 3 (`best_of_n`: {iterations} trajectories), one action committed at a time.
Values are as the states look, without noise: this table shows what an algorithm can and cannot see, not how good it is with a judge that
errs. That is measured in [results/search.md](results/search.md): from 16 judgements on `gumbel` is ahead of `mcts` there.
Written by `python -m tests.search.known`, checked by `tests/search/test_known.py`.

{table}

Where an algorithm should not always find it:

{because}

The environments:

| environment | |
|---|---|
{environments}
"""

if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
