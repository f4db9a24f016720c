"""The routes to a state, and which is the cheapest. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Literal, NamedTuple, TypeVar

from exact.environments.restore.costs import Costs

RouteName = Literal["reuse", "advance", "restore", "restore+replay", "fork", "fork+replay", "replay"]
"""`reuse`: an environment was at the state. `advance`: one was at a state on the way, and the rest was replayed. `restore`: it returned to
a snapshot of the state; `fork`: a new environment was made of one; `+replay`: the snapshot was of a state on the way, and the rest was
replayed. `replay`: reset, and the whole way."""
Means = Literal["reuse", "restore", "fork", "reset", "open"]
K = TypeVar("K")


class Start(NamedTuple, Generic[K]):
    """A state on the way at which an environment can be had without replaying what leads to it."""

    means: Means
    at: int
    """Index of its waypoint; 0 is the task's start."""
    kept: K | None = None
    """The snapshot, for `restore` and `fork`."""


class Route(NamedTuple, Generic[K]):
    """A start, and the replay of the rest."""

    start: Start[K]
    steps: int
    """Actions to replay."""
    seconds: float
    """Expected."""

    @property
    def name(self) -> RouteName:
        match self.start.means:
            case "reuse":
                return "advance" if self.steps else "reuse"
            case "restore":
                return "restore+replay" if self.steps else "restore"
            case "fork":
                return "fork+replay" if self.steps else "fork"
        return "replay"


def routes(starts: Iterable[Start[K]], end: int, costs: Costs, *, since: int = 0, wrote: int = 0) -> list[Route[K]]:
    """All faithful routes to waypoint `end`, the cheapest first; of equally cheap ones that with fewer steps, then the first named.

    Starts beyond `end` are no starts. `since`: steps up to that waypoint may not be repeated: they wrote to something that no reset undoes.
    `wrote`: the last waypoint that a write led to. What is written again may come out differently (a date, a number), so routes that
    repeat it come after all that do not.
    """
    found = [
        Route(start, end - start.at, (0.0 if start.means == "reuse" else costs.of(start.means)) + (end - start.at) * costs.of("step"))
        for start in starts
        if start.at == end or since <= start.at < end
    ]
    return sorted(found, key=lambda route: (route.start.at < wrote, route.seconds, route.steps))
