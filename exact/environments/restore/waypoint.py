"""Waypoints of a path to a state, and the result of moving an environment along it.

Comparison of the state that was reached with the state that was wanted.

A fingerprint identifies a state by its parts that are not volatile. Whether two states of one fingerprint are equal in their volatile
parts too is distinguished by the digest that an observation has beside it. A journal stores the fingerprint alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import msgspec

from exact.action import Action
from exact.environments.base import SideEffect, Snapshot, Transition
from exact.environments.restore.routes import RouteName
from exact.observation import Observation, same_state

ArrivalMatch = Literal["exact", "equivalent", "drifted", "diverged"]
"""`exact`, `equivalent`, `drifted`: see `verify`. `diverged`: a healthy environment reached another state after an action, every time it
was tried: the action has another outcome."""


class Waypoint(msgspec.Struct, frozen=True):
    """A state on a path."""

    action: Action | None
    """Action that leads to the state. None for the task's start."""
    fingerprint: str
    """Fingerprint of the state. Empty if the episode ended."""


def state_fingerprint(transition: Transition) -> str:
    """Return the fingerprint of the state that a step led to. Empty if the episode ended, with or without an observation."""
    return "" if transition.observation is None or transition.terminated else transition.observation.fingerprint


class Divergence(NamedTuple):
    """Point at which a healthy environment left a path."""

    waypoint: int
    """Index of the waypoint that was not reached."""
    transition: Transition
    """Result of its action."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the state that was reached. Empty if the episode ended."""
        return state_fingerprint(self.transition)


class PassedSnapshot(NamedTuple):
    """A snapshot that was taken of a state on the way."""

    waypoint: int
    """Index of the state's waypoint."""
    snapshot: Snapshot
    seconds: float
    """Seconds that it took."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """Result of bringing an environment to a state."""

    route: RouteName
    """Last route that was tried."""
    match: ArrivalMatch
    """Comparison of the state reached with the state wanted."""
    transitions: int = 0
    """Steps replayed on all routes that were tried."""
    resets: int = 0
    """Replays that were tried."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of all steps replayed."""
    reason: str = ""
    """Reason why the last route did not arrive. Empty if it did."""
    failed: tuple[RouteName, ...] = ()
    """Routes that did not arrive, before the last."""
    snapshots: tuple[PassedSnapshot, ...] = ()
    """Snapshots that were taken on the way."""
    divergence: Divergence | None = None
    """Divergence, if the match is `diverged`."""
    stochastic: bool = False
    """Whether this arrival was the first to show that equal actions may lead to different states."""

    @property
    def arrived(self) -> bool:
        """Return whether the environment is in the wanted state."""
        return self.match in ("exact", "equivalent")


Match = Literal["exact", "equivalent", "drifted"]
"""`exact`: the same state. `equivalent`: equal except for volatile parts, or not known to be more. `drifted`: another state."""

MATCHES: tuple[Match, ...] = get_args(Match)
"""All values of Match, from best to worst."""

_SEPARATOR = "~"


def state_key(observation: Observation | None) -> str:
    """Return the fingerprint of an observation, with the digest of its volatile parts if it has any. Empty for None."""
    if observation is None:
        return ""
    return observation.fingerprint + (f"{_SEPARATOR}{observation.volatile}" if observation.volatile else "")


def compare_states(wanted: str, reached: str) -> Match:
    """Compare two states by their keys. A bare fingerprint stands for a state whose volatile parts are unknown.

    A terminated state has the empty key, which equals itself only.
    """
    if wanted == reached:
        return "exact"
    return "equivalent" if same_state(wanted.partition(_SEPARATOR)[0], reached.partition(_SEPARATOR)[0]) else "drifted"


def worst_match(matches: list[Match]) -> Match:
    """Return the worst match along a path. `exact` for an empty path."""
    return max(matches, key=MATCHES.index, default="exact")
