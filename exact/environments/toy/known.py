"""Toy graphs small enough that the right answer is known, and all ready-made ones by name. Each docstring gives the known answer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

from exact.environments.toy.chance import ice
from exact.environments.toy.doors import doors
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.maze import maze, trapped_maze
from exact.errors import UsageError, unknown
from exact.task import Task

__all__ = [
    "WORLDS",
    "ToyEdge",
    "ToyState",
    "ToyGraph",
    "bandit",
    "chain",
    "deceptive_chain",
    "doors",
    "form",
    "ice",
    "maze",
    "toy_task",
    "toy_graph",
    "trapped_maze",
]


def chain(n: int = 4) -> ToyGraph:
    """Return a chain in which n right steps in a row win and a wrong one ends it. Looks grow along the way.

    Known answer: `on` n times, 1.0. Greedy finds it.
    """
    states = {
        f"s{i}": ToyState(text=f"Step {i} of {n}", edges={"on": ToyEdge(to=f"s{i + 1}"), "off": ToyEdge(to="lost")}, looks=i / n)
        for i in range(n)
    }
    ends = {f"s{n}": ToyState(reward=1.0), "lost": ToyState(reward=0.0)}
    return ToyGraph(name="chain", instruction="Go on to the end.", start="s0", states=states | ends)


def deceptive_chain(n: int = 3) -> ToyGraph:
    """Return two corridors of n steps. The left one is likelier and looks better until its end, which loses; the right one wins.

    Known answer: `right`, then `on`: 1.0. An agent that follows looks or priors goes left and gets 0; a search n steps deep does not.
    """

    def corridor(side: str, looks: float, reward: float) -> dict[str, ToyState]:
        rooms = {
            f"{side}{i}": ToyState(text=f"Corridor {side}, room {i}", edges={"on": ToyEdge(to=f"{side}{i + 1}")}, looks=looks)
            for i in range(1, n)
        }
        return rooms | {f"{side}{n}": ToyState(reward=reward)}

    fork = {"left": ToyEdge(to="left1", prior=0.7), "right": ToyEdge(to="right1", prior=0.3)}
    start = {"start": ToyState(text="A fork", edges=fork, looks=0.5)}
    states = start | corridor("left", 0.8, 0.0) | corridor("right", 0.3, 1.0)
    return ToyGraph(name="deceptive", instruction="Find the way out.", start="start", states=states)


def bandit(k: int = 5, *, rewards: Sequence[float] | None = None, seed: int = 0) -> ToyGraph:
    """Return one choice of k arms that ends the episode. Without `rewards`, one arm, chosen by the seed, wins and the others lose.

    Known answer: the arm with the largest reward. For arms that pay by chance see `bernoulli_bandit`.
    """
    best = random.Random(seed).randrange(k)
    paid = tuple(rewards) if rewards is not None else tuple(float(i == best) for i in range(k))
    if len(paid) != k:
        raise UsageError(f"a bandit of {k} arms with {len(paid)} rewards: give one for each arm")
    arms = {f"arm {i}": ToyEdge(to=f"end {i}") for i in range(k)}
    ends = {f"end {i}": ToyState(reward=reward) for i, reward in enumerate(paid)}
    states = {"start": ToyState(text=f"{k} arms", edges=arms, looks=sum(paid) / k)} | ends
    return ToyGraph(name="bandit", instruction="Pull the best arm.", start="start", states=states)


def form(n: int = 3, *, seed: int = 0, write: bool = False) -> ToyGraph:
    """Return n boxes to tick or leave, as the instruction says, and a final submit. `write`: submitting writes to the outside.

    Known answer: toggle each box that the instruction names, then `submit`: 1.0. Any box can be undone before that.
    """
    boxes = [chr(ord("A") + i) for i in range(n)]
    dice = random.Random(seed)
    wanted = frozenset(box for box in boxes if dice.random() < 0.5) or frozenset(boxes[:1])
    states = {"right": ToyState(reward=1.0), "wrong": ToyState(reward=0.0)}
    for ticked in (frozenset(c) for size in range(n + 1) for c in itertools.combinations(boxes, size)):
        edges = {f"toggle {box}": ToyEdge(to=_form_state(ticked ^ {box})) for box in boxes}
        edges["submit"] = ToyEdge(to="right" if ticked == wanted else "wrong", write=write)
        shown = ", ".join(f"{box}: {'on' if box in ticked else 'off'}" for box in boxes)
        states[_form_state(ticked)] = ToyState(text=shown, edges=edges, looks=0.8 * (1 - len(ticked ^ wanted) / n) + 0.1)
    instruction = f"Tick {' and '.join(sorted(wanted))} only, then submit."
    return ToyGraph(name="form", instruction=instruction, start=_form_state(frozenset()), states=states)


def _form_state(ticked: frozenset[str]) -> str:
    return "form " + "".join(sorted(ticked))


WORLDS: Mapping[str, Callable[[int], ToyGraph]] = {
    "chain": lambda seed: chain(),
    "deceptive": lambda seed: deceptive_chain(),
    "maze": lambda seed: maze(seed=seed),
    "bandit": lambda seed: bandit(seed=seed),
    "form": lambda seed: form(seed=seed),
    "traps": lambda seed: trapped_maze(seed=seed),
    "doors": lambda seed: doors(seed=seed),
    "ice": lambda seed: ice(seed=seed),
}
"""Ready-made graphs by name, each from a seed."""


def toy_graph(name: str, seed: int = 0) -> ToyGraph:
    """Return a ready-made graph. Raises UsageError that names the nearest one."""
    if name not in WORLDS:
        raise unknown("toy environment", name, WORLDS)
    return WORLDS[name](seed)


def toy_task(graph: ToyGraph | str, seed: int = 0) -> Task:
    """Return the task of a graph, or of a ready-made graph's name: `toy/form?seed=2`."""
    found = toy_graph(graph, seed) if isinstance(graph, str) else graph
    return Task(id=f"toy/{found.name}?seed={seed}", instruction=found.instruction, start=f"toy://{found.name}/", seed=seed)
