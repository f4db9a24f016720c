"""Worlds small enough that the right answer is known: graphs given as data, and builders for the usual ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

import msgspec

from exact.errors import UsageError, unknown
from exact.task import Task


class ToyEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Where an action leads."""

    to: str
    """Name of the next state."""
    prior: float = 1.0
    """Weight that ToyPolicy gives it, above 0; the weights of a state are normalised."""
    write: bool = False
    """Whether taking it changes something outside."""


class ToyState(msgspec.Struct, frozen=True, kw_only=True):
    """One state. It is terminal if it has a reward."""

    text: str = ""
    """What the agent reads."""
    edges: Mapping[str, ToyEdge] = {}
    """By the name that `go` takes."""
    answers: Mapping[str, float] = {}
    """Reward in [0, 1] of `stop` with that answer, here; any other answer gets 0."""
    reward: float | None = None
    """In [0, 1], of an episode that ends here."""
    looks: float | None = None
    """What ToyValue takes it for, in [0, 1]; None: the reward of a terminal state, else 0.5."""


class ToyWorld(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of states. Raises UsageError where an edge leads nowhere or a figure is out of range."""

    name: str
    instruction: str
    start: str
    states: Mapping[str, ToyState]

    def __post_init__(self) -> None:
        if self.start not in self.states:
            raise unknown("start state", self.start, self.states)
        if self.states[self.start].reward is not None:
            raise UsageError(f"world {self.name!r}: its start {self.start!r} has a reward, so it ends before it begins")
        for name, state in self.states.items():
            for action, edge in state.edges.items():
                if edge.to not in self.states:
                    raise UsageError(f"world {self.name!r}: {action!r} in {name!r} leads to {edge.to!r}, which is no state")
                if edge.prior <= 0:
                    raise UsageError(f"world {self.name!r}: prior {edge.prior:g} of {action!r} in {name!r} is not above 0")
            for figure in (state.reward, state.looks, *state.answers.values()):
                if figure is not None and not 0 <= figure <= 1:
                    raise UsageError(f"world {self.name!r}: {figure:g} in state {name!r} is not in [0, 1]")


def chain(n: int = 4) -> ToyWorld:
    """n right steps in a row win; a wrong one ends it. Looks grow along the way."""
    states = {
        f"s{i}": ToyState(text=f"Step {i} of {n}", edges={"on": ToyEdge(to=f"s{i + 1}"), "off": ToyEdge(to="lost")}, looks=i / n)
        for i in range(n)
    }
    ends = {f"s{n}": ToyState(reward=1.0), "lost": ToyState(reward=0.0)}
    return ToyWorld(name="chain", instruction="Go on to the end.", start="s0", states=states | ends)


def deceptive_chain(n: int = 3) -> ToyWorld:
    """Two corridors of n steps. The left one is likelier and looks better until its end, which loses; the right one wins."""

    def corridor(side: str, looks: float, reward: float) -> dict[str, ToyState]:
        rooms = {
            f"{side}{i}": ToyState(text=f"Corridor {side}, room {i}", edges={"on": ToyEdge(to=f"{side}{i + 1}")}, looks=looks)
            for i in range(1, n)
        }
        return rooms | {f"{side}{n}": ToyState(reward=reward)}

    fork = {"left": ToyEdge(to="left1", prior=0.7), "right": ToyEdge(to="right1", prior=0.3)}
    start = {"start": ToyState(text="A fork", edges=fork, looks=0.5)}
    states = start | corridor("left", 0.8, 0.0) | corridor("right", 0.3, 1.0)
    return ToyWorld(name="deceptive", instruction="Find the way out.", start="start", states=states)


def maze(width: int = 3, height: int = 3, seed: int = 0) -> ToyWorld:
    """A maze without loops, from the north-west to the south-east corner. Looks are by distance as the crow flies, blind to walls."""
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
    return ToyWorld(name="maze", instruction="Reach the exit.", start="0,0", states=states)


def bandit(k: int = 5, *, rewards: Sequence[float] | None = None, seed: int = 0) -> ToyWorld:
    """One choice of k arms that ends it. Without `rewards`, one arm, chosen by the seed, wins and the others lose."""
    best = random.Random(seed).randrange(k)
    paid = tuple(rewards) if rewards is not None else tuple(float(i == best) for i in range(k))
    if len(paid) != k:
        raise UsageError(f"a bandit of {k} arms with {len(paid)} rewards: give one for each arm")
    arms = {f"arm {i}": ToyEdge(to=f"end {i}") for i in range(k)}
    ends = {f"end {i}": ToyState(reward=reward) for i, reward in enumerate(paid)}
    states = {"start": ToyState(text=f"{k} arms", edges=arms, looks=sum(paid) / k)} | ends
    return ToyWorld(name="bandit", instruction="Pull the best arm.", start="start", states=states)


def form(n: int = 3, *, seed: int = 0, write: bool = False) -> ToyWorld:
    """n boxes to tick or leave, as the instruction says, then submit, once. `write`: submitting writes to the outside."""
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
    return ToyWorld(name="form", instruction=instruction, start=_form_state(frozenset()), states=states)


def _form_state(ticked: frozenset[str]) -> str:
    return "form " + "".join(sorted(ticked))


WORLDS: Mapping[str, Callable[[int], ToyWorld]] = {
    "chain": lambda seed: chain(),
    "deceptive": lambda seed: deceptive_chain(),
    "maze": lambda seed: maze(seed=seed),
    "bandit": lambda seed: bandit(seed=seed),
    "form": lambda seed: form(seed=seed),
}
"""The ready-made worlds by name, each from a seed."""


def toy_world(name: str, seed: int = 0) -> ToyWorld:
    """A ready-made world. Raises UsageError that names the nearest."""
    if name not in WORLDS:
        raise unknown("toy world", name, WORLDS)
    return WORLDS[name](seed)


def toy_task(world: ToyWorld | str, seed: int = 0) -> Task:
    """The task of a world, or of a ready-made world's name: `toy/form?seed=2`."""
    found = toy_world(world, seed) if isinstance(world, str) else world
    return Task(id=f"toy/{found.name}?seed={seed}", instruction=found.instruction, start=f"toy://{found.name}/", seed=seed)
