"""Measure the cost of search without its models: ask and tell of `mcts` with instant answers, against OpenSpiel's Python MCTS.

Both search the same synthetic game (`_synthetic.py`) with the same priors, values, exploration constant and conventions, and must visit
each root action equally often, or the bench fails. Every state has 20 actions, and an end is 4 actions deep, so that descents are nearly
as long after 100,000 iterations as after 10,000, and nearly every iteration makes a new state.

Times are processor seconds, which other processes disturb less than wall-clock seconds. A simulation includes ask and tell, an instant
policy, value and environment; and OpenSpiel's copies of states, moves and evaluations. `vs_openspiel` is the worst ratio of whole
simulations over two games; in the second every state has 6 actions, the default number of proposals, and no end is in reach, so that
descents are longer and choices cheaper. `vs_openspiel_net` is the worst ratio without the cost of the game on both sides, which is
measured by repeating it without a search. TreeQuest's standard MCTS is shown for information (its steps make one child each).

Bytes of a node are measured by tracemalloc: the whole tree after 10,000 iterations divided by the number of states, including edges that
were not followed. `bytes_per_node` is the worse of the two games without the actions, which the policy made and which all states share.
`bytes_with_texts` has new actions with new texts in every state. Journal: writing asks and tells without waiting for the disk. Driver: a
whole run over a toy environment, with search, journal with fsync, blobs and budgets.

OpenSpiel and TreeQuest have virtual environments of their own, which the first run makes (it needs the package index then).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from _common import ROOT, Figure, Noise, finish, interval, parser, table, versions
from _peers import Peer, make_venv, peer
from _synthetic import Game

sys.path.insert(0, str(ROOT))

from exact.action import Action
from exact.context import Evaluation, Proposal
from exact.environments.toy.factory import TOY_ACTIONS, ToyFactory
from exact.environments.toy.known import chain
from exact.runs.journal import events
from exact.runs.journal.file import Journal
from exact.search.base import Done, Need, Proposed, Result, Selection, Stepped, Valued
from exact.search.mcts import MCTS
from exact.search.rules import select
from exact.search.tree import Tree
from tests.runs.toys import config, toy_runner

OPENSPIEL, TREEQUEST = "open-spiel==2.0.2", "treequest==0.3.3"
SHORT, LONG = 10_000, 100_000
WIDE, NARROW = (20, 4, 10.0), (6, 12, 4.0)
"""Actions a state, depth of the ends, exploration constant."""

Told = Callable[[Selection, Result], None]


class Instant:
    """Policy, value and environment of the game, at once."""

    def __init__(self, game: Game, *, new_texts: bool = False) -> None:
        self.game, self.new_texts = game, new_texts
        self.states, self.depths = [1], [0]
        self.proposed = self.propose()

    def propose(self) -> Proposed:
        place = f"{len(self.states)}:" if self.new_texts else ""
        actions: list[Action] = [TOY_ACTIONS.action("go", f"{place}{i}") for i, _ in self.game.priors]
        return Proposed(proposals=tuple(Proposal(action=actions[i], prior=prior) for i, prior in self.game.priors))

    def result(self, asked: Selection, need: Need) -> Result:
        if need == "step":
            assert asked.edge is not None
            state, depth = self.game.child(self.states[asked.node], asked.edge), self.depths[asked.node] + 1
            self.states.append(state)
            self.depths.append(depth)
            return Stepped(fingerprint=f"s{state}", terminated=depth == self.game.depth)
        if need == "value":
            return Valued(evaluation=Evaluation(value=self.game.value(self.states[asked.node if asked.edge is None else -1])))
        return self.propose() if self.new_texts else self.proposed


@dataclass
class Times:
    """Microseconds an iteration, one for each round."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    our_game: list[float] = field(default_factory=list)
    their_game: list[float] = field(default_factory=list)

    def whole(self) -> tuple[float, float, float]:
        """Ours over theirs, all of a simulation: median, smallest, largest round."""
        return interval([ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)])

    def ratio(self) -> tuple[float, float, float]:
        """Ours over theirs, the game taken off: median, smallest, largest round."""
        rounds = zip(self.ours, self.our_game, self.theirs, self.their_game, strict=True)
        return interval([(a - b) / (c - d) for a, b, c, d in rounds])

    def net(self) -> float:
        """Return the fastest of our rounds without the time of the game."""
        return min(a - b for a, b in zip(self.ours, self.our_game, strict=True))


def search(environment: Instant, c: float, iterations: int, told: Told | None = None) -> Tree:
    """`mcts` with OpenSpiel's conventions, asked and told until done."""
    rule = select.rule(c=c, first_play=select.zero, ends="value")
    algorithm = MCTS(iterations=iterations, k=99, depth=99, rule=rule, revisit="repeat", merging="none")
    tree = Tree()
    while not isinstance(asked := algorithm.ask(tree), Done):
        assert isinstance(asked, Selection)
        for need in asked.needs:
            result = environment.result(asked, need)
            algorithm.tell(tree, asked, result)
            if told:
                told(asked, result)
    return tree


def again(game: Game, tree: Tree) -> float:
    """Seconds to make the results of a search once more."""
    environment, expanded = Instant(game), [node.id for node in tree.nodes if node.expansions]
    steps = [(node.parent.id, node.via) for node in tree.nodes if node.parent]
    start = time.process_time()
    for number, (node, edge) in enumerate(steps):
        asked = Selection(id=number, node=node, edge=edge, needs=("step", "value"))
        environment.result(asked, "step")
        environment.result(asked, "value")
    for node in expanded:
        environment.result(Selection(id=0, node=node, needs=("proposals",)), "proposals")
    return time.process_time() - start


def race(game: Game, c: float, openspiel: Peer, iterations: int, rounds: int, noise: Noise) -> Times:
    """Run the rounds of all contenders in turn."""
    times, us = Times(), 1e6 / iterations
    for _ in range(rounds):
        noise.probe()
        environment = Instant(game)
        gc.collect()
        start = time.process_time()
        tree = search(environment, c, iterations)
        times.ours.append((time.process_time() - start) * us)
        times.our_game.append(again(game, tree) * us)
        visits = [edge.visits for edge in tree.root.edges]
        del tree, environment
        answer = openspiel.ask(iterations)
        if answer["visits"] != visits:
            raise SystemExit(f"not the same search: {visits} and OpenSpiel's {answer['visits']}")
        times.theirs.append(answer["seconds"] * us)
        times.their_game.append(answer["game"] * us)
    return times


def bytes_of_a_node(game: Game, c: float, *, new_texts: bool) -> float:
    gc.collect()
    tracemalloc.start()
    environment = Instant(game, new_texts=new_texts)
    before = tracemalloc.get_traced_memory()[0]
    tree = search(environment, c, SHORT)
    environment.states.clear()
    environment.depths.clear()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held / len(tree.nodes)


def journal_cost(game: Game, c: float, iterations: int) -> float:
    """Microseconds an iteration to write what was asked and told."""
    moves: list[tuple[Selection, Result]] = []
    search(Instant(game), c, iterations, lambda asked, result: moves.append((asked, result)))
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.jsonl")
        start = time.perf_counter()
        for asked, result in moves:
            journal.write(events.Asked(answer=asked))
            journal.write(events.Told(selection=asked.id, result=result))
        seconds = time.perf_counter() - start
        journal.close()
    return seconds / iterations * 1e6


def driver_cost(iterations: int) -> float:
    """Microseconds an iteration of a run over a toy environment with everything but models and browser."""
    logging.disable(logging.INFO)
    settings = config(search={"algorithm": "mcts", "iterations": iterations, "k": 2, "depth": 99}, limits={"actions": 1})
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        asyncio.run(toy_runner(Path(folder), ToyFactory(chain(80)), settings).run())
        return (time.perf_counter() - start) / iterations * 1e6


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    rounds = {SHORT: 3, LONG: 1} if options.quick else {SHORT: 12, LONG: 4}
    noise, times = Noise(), dict[str, Times]()
    python, quest = make_venv(OPENSPIEL), make_venv(TREEQUEST)
    for name, (branching, depth, c) in {"wide": WIDE, "narrow": NARROW}.items():
        game = Game(branching=branching, depth=depth)
        with peer(python, "_openspiel.py", branching, depth, c) as openspiel:
            openspiel.ask(1000)  # warms up
            for iterations in (SHORT, LONG) if name == "wide" else (SHORT,):
                times[f"{name} {iterations}"] = race(game, c, openspiel, iterations, rounds[iterations], noise)
    with peer(quest, "_treequest.py", WIDE[0]) as treequest:
        treequest_us = treequest.ask(500)["seconds"] / 500 * 1e6
    wide = Game(branching=WIDE[0], depth=WIDE[1])
    sizes, with_texts = (
        {shape[0]: bytes_of_a_node(Game(branching=shape[0], depth=shape[1]), shape[2], new_texts=new) for shape in (WIDE, NARROW)}
        for new in (False, True)
    )
    ours_500 = time.perf_counter()
    search(Instant(wide), WIDE[2], 500)
    ours_500 = (time.perf_counter() - ours_500) / 500 * 1e6
    journal, driver = journal_cost(wide, WIDE[2], 2000), driver_cost(100 if options.quick else 300)
    noise.probe()

    rows = []
    for name, t in times.items():
        middle, low, high = t.whole()
        cells = [f"{min(values):.1f}" for values in (t.ours, t.our_game, t.theirs, t.their_game)]
        rows.append([name, *cells, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{t.ratio()[0]:.2f}"])
    table(["us an iteration (fastest round)", "ours", "of it game", "OpenSpiel", "of it game", "ratio", "rounds", "net ratio"], rows)
    print("bytes a node: " + ", ".join(f"{n} actions {size:.0f} ({with_texts[n]:.0f} with new texts)" for n, size in sizes.items()))
    print(f"\nTreeQuest's standard MCTS at 500: {treequest_us:.1f} us a step (ours at 500: {ours_500:.1f} us an iteration)")
    print(f"journal: {journal:.1f} us an iteration; driver with journal, blobs and fsync: {driver:.0f} us an iteration")
    growth = times[f"wide {LONG}"].net() / times[f"wide {SHORT}"].net()
    figures = [
        Figure("vs_openspiel_net", max(t.ratio()[0] for t in times.values())),
        Figure("vs_openspiel", max(t.whole()[0] for t in times.values()), 0.9, at_least=False),
        Figure("bytes_with_texts", max(with_texts.values())),
        Figure("bytes_per_node", max(sizes.values()), 900, at_least=False),
        Figure("growth_100k", growth, 1.05, at_least=False),
    ]
    details = {
        "microseconds": {n: {k: [round(v, 2) for v in values] for k, values in vars(t).items()} for n, t in times.items()},
        "treequest_us": round(treequest_us, 1),
        "journal_us": round(journal, 1),
        "driver_us": round(driver, 1),
    }
    finish(options, figures, noise, {**versions("exact-agent"), "open-spiel": OPENSPIEL, "treequest": TREEQUEST}, details)


if __name__ == "__main__":
    main()
