"""Routes to a state, sorted by cost. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Literal, NamedTuple, TypeVar

from exact.environments.restore.costs import Costs

RouteName = Literal["reuse", "advance", "restore", "restore+replay", "fork", "fork+replay", "replay"]
"""`reuse`: the environment was at the state. `advance`: it was on the path, and the rest was replayed. `restore`: it returned to a snapshot
of the state. `fork`: a new environment was made from one. `+replay`: the snapshot was of a state on the path, and the rest was replayed.
`replay`: reset, and the whole path."""
StartMeans = Literal["reuse", "restore", "fork", "reset", "open"]
"""How the environment gets to the start of a route."""
S = TypeVar("S")


class Start(NamedTuple, Generic[S]):
    """A state on the path at which an environment can be had without replay. S: type of snapshots."""

    means: StartMeans
    at: int
    """Index of its waypoint; 0 is the task's start."""
    snapshot: S | None = None
    """Snapshot to use, for `restore` and `fork`."""


class RestoreRoute(NamedTuple, Generic[S]):
    """A start, and the replay of the rest of the path."""

    start: Start[S]
    steps: int
    """Actions to replay."""
    seconds: float
    """Expected duration."""

    @property
    def name(self) -> RouteName:
        """Name of the route in journals."""
        match self.start.means:
            case "reuse":
                return "advance" if self.steps else "reuse"
            case "restore":
                return "restore+replay" if self.steps else "restore"
            case "fork":
                return "fork+replay" if self.steps else "fork"
        return "replay"


def find_routes(starts: Iterable[Start[S]], end: int, costs: Costs, *, since: int = 0, wrote: int = 0) -> list[RestoreRoute[S]]:
    """Return all faithful routes to waypoint `end`, the cheapest first. Ties: fewer steps first, then the order of `starts`.

    Starts beyond `end` are ignored. `since`: steps up to this waypoint may not be repeated, because they wrote to something that no reset
    undoes. `wrote`: last waypoint that a write led to. A repeated write may have another result (a date, a number), so routes that repeat
    it come last.
    """
    found = [
        RestoreRoute(
            start, end - start.at, (0.0 if start.means == "reuse" else costs.of(start.means)) + (end - start.at) * costs.of("step")
        )
        for start in starts
        if start.at == end or since <= start.at < end
    ]
    return sorted(found, key=lambda route: (route.start.at < wrote, route.seconds, route.steps))
