"""Doors that close behind the agent, in an environment that nothing can roll back."""

from __future__ import annotations

from exact.environments.toy.draw import uniform
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState

SIDES = ("left", "right")


def doors(n: int = 2, *, seed: int = 0) -> ToyGraph:
    """Return n rooms in a row, each with two doors. Opening one is a write that cannot be undone: one leads on, the other to a cell.

    The environment is not isolated: simulation blocks each write, so search never sees what lies behind a door. A keyhole in each door
    shows it without a write. The policy prefers doors to keyholes, and likes the wrong door best. Known answer: in each room open the
    door that its keyhole shows to lead on (`right_doors`): 1.0.
    """
    states = {
        "free": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
        "cell": ToyState(text="A cell without a door", edges={"wait": ToyEdge(to="cell"), "give up": ToyEdge(to="lost")}, looks=0.0),
    }
    for room, good in enumerate(right_doors(n, seed=seed)):
        states |= _room(room, n, good)
    return ToyGraph(name="doors", instruction="Get out. Doors close behind you.", start="room 0", states=states, isolated=False)


def right_doors(n: int = 2, *, seed: int = 0) -> tuple[str, ...]:
    """Return the door that leads on, for each room of `doors(n, seed=seed)`."""
    return tuple(SIDES[uniform(seed, "door", room) < 0.5] for room in range(n))


def _room(room: int, n: int, good: str) -> dict[str, ToyState]:
    """Return the states of a room and of its keyholes."""
    here, looks = f"room {room}", 0.3 + 0.4 * room / n
    beyond = {side: ("free" if room + 1 == n else f"room {room + 1}") if side == good else "cell" for side in SIDES}
    opened = {side: ToyEdge(to=to, prior=2.0 if side == good else 3.0, write=True) for side, to in beyond.items()}
    states = {
        here: ToyState(text=f"Room {room}", edges=opened | {f"look {side}": ToyEdge(to=f"{here}, {side}") for side in SIDES}, looks=looks)
    }
    for side in SIDES:
        shown = "the way on" if side == good else "a cell"
        edges = {side: ToyEdge(to=beyond[side], prior=3.0 if side == good else 0.1, write=True), "back": ToyEdge(to=here)}
        seen = looks + 0.1 if side == good else looks - 0.1
        states[f"{here}, {side}"] = ToyState(text=f"At the {side} keyhole of room {room}: {shown}", edges=edges, looks=seen)
    return states
