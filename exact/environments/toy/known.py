"""Toy graphs small enough that the right answer is known, and all ready-made ones by name. Each docstring gives the known answer.

Mazes: without traps, in which every step can be undone, and with traps, in which one step ends the episode.

Environments with stochastic steps: the same action in the same state does not always lead to the same state.

The outcome is keyed by (seed, state, action, number of earlier tries in this environment): two fresh environments repeat each other, and
an environment that is reset continues its counts.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

import msgspec

from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState, doors, probability, uniform
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


_ATTEMPTS = 50


def maze(width: int = 3, height: int = 3, seed: int = 0) -> ToyGraph:
    """Return a maze without loops, from the north-west to the south-east corner. Looks are straight-line distances, blind to walls.

    Known answer: the only path to the exit, 1.0 (`way_out`). Every step can be undone; looks mislead at turns of the path.
    """
    moves = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
    doors: dict[tuple[int, int], dict[str, tuple[int, int]]] = {room: {} for room in itertools.product(range(width), range(height))}
    dice, path, seen = random.Random(seed), [(0, 0)], {(0, 0)}
    while path:
        x, y = path[-1]
        ways = [(m, (x + dx, y + dy)) for m, (dx, dy) in moves.items() if (x + dx, y + dy) in doors and (x + dx, y + dy) not in seen]
        if not ways:
            path.pop()
            continue
        move, room = ways[dice.randrange(len(ways))]
        doors[x, y][move] = room
        doors[room][{"north": "south", "south": "north", "east": "west", "west": "east"}[move]] = (x, y)
        seen.add(room)
        path.append(room)
    goal, far = (width - 1, height - 1), width + height - 2
    states = {
        f"{x},{y}": ToyState(
            text=f"Room {x},{y} of a maze; the exit is at {goal[0]},{goal[1]}",
            edges={move: ToyEdge(to=f"{to[0]},{to[1]}") for move, to in sorted(ways.items())},
            looks=1 - (goal[0] - x + goal[1] - y) / (far + 1),
        )
        for (x, y), ways in doors.items()
    }
    states[f"{goal[0]},{goal[1]}"] = ToyState(reward=1.0)
    return ToyGraph(name="maze", instruction="Reach the exit.", start="0,0", states=states)


def trapped_maze(width: int = 4, height: int = 4, *, traps: int = 2, seed: int = 0) -> ToyGraph:
    """Return a maze in which some rooms beside the path are traps that end the episode with 0.

    The policy likes traps three times as well. The seed draws them. Known answer: as in the maze, the only path never enters a trap:
    1.0. An agent that follows the priors falls into the first; one step of search shows a trap beside it. A maze with too few rooms
    beside the path is drawn again; raises UsageError if none is found.
    """
    plain, beside = _roomy(width, height, traps, seed)
    chosen = sorted(beside, key=lambda name: uniform(seed, "trap", name))[:traps]
    states = {name: ToyState(reward=0.0) if name in chosen else _leaning(state, chosen) for name, state in plain.states.items()}
    return ToyGraph(name="traps", instruction="Reach the exit. Traps cannot be left.", start=plain.start, states=states)


def _roomy(width: int, height: int, traps: int, seed: int) -> tuple[ToyGraph, list[str]]:
    """Return the first maze that has room for the traps, and its rooms beside the path.

    The exit's neighbours are left out, because no agent reaches them.
    """
    for attempt in range(_ATTEMPTS):
        plain = maze(width, height, seed + attempt * 1_000_003)
        way = rooms_on_the_way_out(plain)
        beside = sorted({edge.to for name in way for edge in plain.states[name].edges.values()} - {*way})
        if 0 <= traps <= len(beside):
            return plain, beside
    raise UsageError(f"{traps} traps in a maze of {width} by {height} rooms: give fewer, or a larger maze")


def way_out(graph: ToyGraph) -> tuple[str, ...]:
    """Return the moves of the only path from a maze's start to its exit."""
    return tuple(move for move, _ in _way(graph))


def rooms_on_the_way_out(graph: ToyGraph) -> tuple[str, ...]:
    """Return the rooms of the only path from a maze's start to its exit, both included."""
    return (graph.start, *(room for _, room in _way(graph)))


def _way(graph: ToyGraph) -> list[tuple[str, str]]:
    """Return (move, room) from the start to the exit, traced back through the rooms from which each was first reached."""
    came: dict[str, tuple[str, str]] = {}
    known, queue = {graph.start}, [graph.start]
    for room in queue:
        for move, edge in graph.states[room].edges.items():
            if edge.to not in known:
                known.add(edge.to)
                came[edge.to] = (move, room)
                queue.append(edge.to)
    room = next(name for name, state in graph.states.items() if state.reward == 1.0)
    way = list[tuple[str, str]]()
    while room != graph.start:
        move, before = came[room]
        way.append((move, room))
        room = before
    return way[::-1]


def _leaning(state: ToyState, traps: Sequence[str]) -> ToyState:
    """Return the room with a policy that leans towards traps."""
    edges = {move: msgspec.structs.replace(edge, prior=3.0) if edge.to in traps else edge for move, edge in state.edges.items()}
    return msgspec.structs.replace(state, edges=edges)


def ice(n: int = 3, *, slip: float = 0.4, seed: int = 0) -> ToyGraph:
    """Return a river: two steps over ice, which breaks with probability `slip`, or n + 1 over a bridge, which holds.

    Known answer: the bridge is worth 1.0, the ice 1 - slip (`expected_rewards`). The policy prefers the ice, and one lucky crossing
    looks perfect: only repeated tries show the second outcome of the step.
    """
    probability("slip", slip)
    if n < 1:
        raise UsageError(f"a bridge of {n} steps: it has one at least")
    bridge = {
        f"bridge {i}": ToyState(
            text=f"On the bridge, {i} of {n}", edges={"on": ToyEdge(to=f"bridge {i + 1}" if i < n else "over")}, looks=0.6
        )
        for i in range(1, n + 1)
    }
    fork = {"ice": ToyEdge(to="shore", prior=0.7, slips={"water": slip} if slip else {}), "bridge": ToyEdge(to="bridge 1", prior=0.3)}
    states = {
        "bank": ToyState(text="A frozen river, and a bridge", edges=fork, looks=0.5),
        "shore": ToyState(text="At the other shore", edges={"on": ToyEdge(to="over")}, looks=0.9),
        "water": ToyState(text="The ice broke", edges={"on": ToyEdge(to="lost")}, looks=0.1),
        "over": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    return ToyGraph(name="ice", instruction="Cross the river.", start="bank", states=states | bridge, seed=seed)


def bernoulli_bandit(means: Sequence[float], *, seed: int = 0) -> ToyGraph:
    """Return one pull of k arms: arm i pays 1 with probability `means[i]`, else 0. The priors are equal.

    The pull is followed by `take`, so that its result can be seen. Known answer: the arm with the largest mean, worth that mean
    (`expected_rewards`).
    """
    if not means:
        raise UsageError("a bandit without arms: give one mean for each")
    arms = {f"arm {i}": ToyEdge(to="paid", slips={"empty": 1.0 - probability("mean", mean)}) for i, mean in enumerate(means)}
    states = {
        "start": ToyState(text=f"{len(means)} arms", edges=arms, looks=sum(means) / len(means)),
        "paid": ToyState(text="It paid", edges={"take": ToyEdge(to="won")}, looks=1.0),
        "empty": ToyState(text="It paid nothing", edges={"take": ToyEdge(to="lost")}, looks=0.0),
        "won": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    return ToyGraph(name="bernoulli", instruction="Pull the best arm.", start="start", states=states, seed=seed)
