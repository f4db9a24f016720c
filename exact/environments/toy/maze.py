"""Mazes: without traps, where every step can be undone, and with traps, where one step ends the episode."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import msgspec

from exact.environments.toy.draw import uniform
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.errors import UsageError

_ATTEMPTS = 50


def maze(width: int = 3, height: int = 3, seed: int = 0) -> ToyGraph:
    """Return a maze without loops, from the north-west to the south-east corner. Looks are straight-line distances, blind to walls.

    Known answer: the only path to the exit, 1.0 (`way_out`). Every step can be undone; looks mislead where the path turns away.
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
    beside the path is drawn again; raises UsageError where none is found.
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
