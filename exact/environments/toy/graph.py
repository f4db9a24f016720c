"""The definition of a toy environment: a graph of states, as data.

Doors that close behind the agent, in an environment that nothing can roll back.

Random draws keyed by their subject, never taken from a stream: neither the order of calls nor the process matters.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from statistics import NormalDist

import msgspec

from exact.errors import UsageError, unknown
from exact.observation import Observation


class ToyEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Edge of the graph: the outcome of an action."""

    to: str
    """Name of the next state."""
    prior: float = 1.0
    """Weight that ToyPolicy gives it, above 0; the weights of a state are normalised."""
    write: bool = False
    """Flag: taking it changes something outside."""
    slips: Mapping[str, float] = {}
    """States that it leads to instead, with their probabilities; the rest of 1 leads to `to`."""

    @property
    def outcomes(self) -> dict[str, float]:
        """All states that it may lead to, with their probabilities: above 0, summing to 1."""
        found = {self.to: 1.0 - math.fsum(self.slips.values())}
        for name, chance in self.slips.items():
            found[name] = found.get(name, 0.0) + chance
        return {name: chance for name, chance in found.items() if chance > 0}

    def outcome(self, point: float) -> str:
        """Return the state that it leads to for a draw from [0, 1)."""
        for name, chance in self.slips.items():
            point -= chance
            if point < 0:
                return name
        return self.to


class ToyState(msgspec.Struct, frozen=True, kw_only=True):
    """State of the graph. It is terminal if it has a reward."""

    text: str = ""
    """Text that the agent reads."""
    edges: Mapping[str, ToyEdge] = {}
    """Edges by the name that `go` takes."""
    answers: Mapping[str, float] = {}
    """Reward in [0, 1] of `stop` with that answer, here; any other answer gets 0."""
    reward: float | None = None
    """Reward, in [0, 1], of an episode that ends here."""
    looks: float | None = None
    """Value that ToyValue sees, in [0, 1]; None: the reward of a terminal state, else 0.5."""


class ToyGraph(msgspec.Struct, frozen=True, kw_only=True):
    """Graph of states. Raises UsageError if an edge leads nowhere or a figure is out of range."""

    name: str
    instruction: str
    start: str
    states: Mapping[str, ToyState]
    seed: int = 0
    """Seed of the draws that decide the target of a step that slips."""
    isolated: bool = True
    """Default isolation of its environments; see Capabilities."""

    def __post_init__(self) -> None:
        if self.start not in self.states:
            raise unknown("start state", self.start, self.states)
        if self.states[self.start].reward is not None:
            raise UsageError(f"environment {self.name!r}: its start {self.start!r} has a reward, so it ends before it begins")
        for name, state in self.states.items():
            for action, edge in state.edges.items():
                self._check(name, action, edge)
            for figure in (state.reward, state.looks, *state.answers.values()):
                if figure is not None and not 0 <= figure <= 1:
                    raise UsageError(f"environment {self.name!r}: {figure:g} in state {name!r} is not in [0, 1]")

    @property
    def deterministic(self) -> bool:
        """Flag: no edge slips."""
        return not any(edge.slips for state in self.states.values() for edge in state.edges.values())

    def next_state(self, state: str, action: str, tried: int) -> str:
        """Return the state that an action leads to the `tried`-th time, from 0.

        The draw is keyed by (seed, state, action, tried). Raises KeyError for an unknown action.
        """
        edge = self.states[state].edges[action]
        return edge.outcome(uniform(self.seed, "slip", state, action, tried)) if edge.slips else edge.to

    def _check(self, name: str, action: str, edge: ToyEdge) -> None:
        for to in (edge.to, *edge.slips):
            if to not in self.states:
                raise UsageError(f"environment {self.name!r}: {action!r} in {name!r} leads to {to!r}, which is no state")
        if edge.prior <= 0:
            raise UsageError(f"environment {self.name!r}: prior {edge.prior:g} of {action!r} in {name!r} is not above 0")
        if min(edge.slips.values(), default=0.0) < 0 or math.fsum(edge.slips.values()) > 1 + 1e-9:
            raise UsageError(f"environment {self.name!r}: the slips of {action!r} in {name!r} are no probabilities: {dict(edge.slips)}")


def state_of(graph: ToyGraph, observation: Observation) -> str:
    """Return the name of the observed state. Raises UsageError if it is not a state of this graph."""
    prefix = f"toy://{graph.name}/"
    name = observation.url.removeprefix(prefix)
    if not observation.url.startswith(prefix) or name not in graph.states:
        raise UsageError(
            f"{observation.url!r} is no state of the toy environment {graph.name!r}: give agent and environment the same environment"
        )
    return name


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


_STANDARD = NormalDist()


def uniform(seed: int, *about: object) -> float:
    """Return a draw from [0, 1) that depends on its arguments only."""
    return (_bits(seed, about) >> 11) / 2**53


def gaussian(seed: int, *about: object) -> float:
    """Return a draw from the standard normal distribution that depends on its arguments only."""
    return _STANDARD.inv_cdf(((_bits(seed, about) >> 12) + 0.5) / 2**52)


def index(count: int, seed: int, *about: object) -> int:
    """Return a draw from 0 .. count - 1 that depends on its arguments only."""
    return int(uniform(seed, *about) * count)


def probability(name: str, figure: float) -> float:
    """Return the figure, which must be a probability. Raises UsageError if it is not."""
    if not 0.0 <= figure <= 1.0:
        raise UsageError(f"{name} {figure:g} is not in [0, 1]")
    return figure


def _bits(seed: int, about: tuple[object, ...]) -> int:
    text = "\n".join((str(seed), *map(str, about)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
