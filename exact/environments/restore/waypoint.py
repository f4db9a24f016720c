"""What a path to a state is made of, and how an environment got along it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from exact.action import Action
from exact.environments.base import SideEffect, Transition
from exact.environments.restore.routes import RouteName

Verdict = Literal["exact", "equivalent", "drifted", "diverged"]
"""`exact`, `equivalent`, `drifted`: see verify.py. `diverged`: a healthy environment went elsewhere after an action, every time it was
tried: the action has another outcome."""


class Waypoint(msgspec.Struct, frozen=True):
    """A state on a path: the action that leads to it (None for the start), and its fingerprint (empty where the episode ended)."""

    action: Action | None
    fingerprint: str


class Divergence(NamedTuple):
    """Where a path was left by a healthy environment."""

    waypoint: int
    """Index of the one that was not reached."""
    transition: Transition
    """What its action led to instead."""

    @property
    def fingerprint(self) -> str:
        """Of the state that came; empty where the episode ended."""
        return self.transition.observation.fingerprint if self.transition.observation else ""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """How an environment got to a state."""

    route: RouteName
    """The last one that was tried."""
    verdict: Verdict
    transitions: int = 0
    """Steps replayed, on all routes that were tried."""
    resets: int = 0
    effects: tuple[SideEffect, ...] = ()
    reason: str = ""
    """Why the last route did not lead there; empty where it did."""
    failed: tuple[RouteName, ...] = ()
    """Routes that did not lead there, before the last."""
    divergence: Divergence | None = None
    """Where the verdict is `diverged`."""

    @property
    def arrived(self) -> bool:
        """Whether the environment is in the state that was meant."""
        return self.verdict in ("exact", "equivalent")
