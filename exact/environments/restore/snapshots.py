"""Snapshots of one attempt, by the paths of their states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exact.environments.base import Environment, EnvironmentFactory, ForkableFactory, Snapshot
from exact.environments.restore.waypoint import Waypoint

StatePath = tuple[Waypoint, ...]
"""Waypoints from the task's start to a state."""


class StoredSnapshot(NamedTuple):
    """One snapshot of the store."""

    path: StatePath
    snapshot: Snapshot
    taker: Environment
    """Environment that took the snapshot and can restore it; other environments need a fork."""
    writes: int
    """Steps that had written in the taker by then."""


class SnapshotStore:
    """Snapshots that all environments of an attempt can return to. A factory may evict a snapshot at any time."""

    def __init__(self, environments: EnvironmentFactory) -> None:
        self.forks: ForkableFactory | None = environments if isinstance(environments, ForkableFactory) else None
        self._stored: dict[StatePath, StoredSnapshot] = {}
        self.taking: set[StatePath] = set()
        """States of which a snapshot is being taken now."""
        self.keys: dict[StatePath, str] = {}
        """Key of each state, as observed when an environment reached it first (see `verify.state_key`)."""
        self.replayed: Counter[StatePath] = Counter()
        """How often each state was passed or reached by a reset or a replay, for want of a snapshot."""
        self.stochastic = False
        """Whether equal actions were seen to lead to different states."""
        self.written: set[StatePath] = set()
        """States that a write led to. Repeating the write may lead to another state."""

    def __len__(self) -> int:
        return len(self._stored)

    def add(self, stored: StoredSnapshot) -> None:
        """Add a snapshot; an older one of the same state is dropped."""
        if (old := self._stored.get(stored.path)) is not None:
            self.drop(old)
        self._stored[stored.path] = stored

    def has(self, path: StatePath) -> bool:
        """Return whether a snapshot of the state at the end of a path exists or is being taken."""
        stored = self._stored.get(path)
        return path in self.taking or (stored is not None and (self.forks is None or self.forks.has(stored.snapshot)))

    def wrote(self, path: Sequence[Waypoint]) -> int:
        """Return the index of the last waypoint on a path that a write led to; 0 if there is none."""
        return next((index for index in reversed(range(1, len(path))) if tuple(path[: index + 1]) in self.written), 0)

    def along(self, path: Sequence[Waypoint]) -> Iterator[tuple[int, StoredSnapshot]]:
        """Yield the snapshots of states on a path that still exist, with the indices of their waypoints, the last state first."""
        for index in reversed(range(len(path))):
            stored = self._stored.get(tuple(path[: index + 1]))
            if stored is None:
                continue
            if self.forks is not None and not self.forks.has(stored.snapshot):
                self.drop(stored)
            else:
                yield index, stored

    def drop(self, stored: StoredSnapshot) -> None:
        """Remove a snapshot and release it in the factory."""
        if self._stored.get(stored.path) is stored:
            del self._stored[stored.path]
        if self.forks is not None:
            self.forks.drop(stored.snapshot)

    def retain_below(self, root: Sequence[Waypoint]) -> None:
        """Drop all snapshots that are neither on the path to a state nor below it. Called when search continues from that state."""
        root = tuple(root)
        for stored in list(self._stored.values()):
            shorter = min(len(root), len(stored.path))
            if stored.path[:shorter] != root[:shorter]:
                self.drop(stored)

    def drop_outdated(self) -> None:
        """Drop all snapshots whose fidelity is not `full`: state outside, which they do not include, has changed."""
        for stored in list(self._stored.values()):
            if stored.snapshot.fidelity != "full":
                self.drop(stored)

    def clear(self) -> None:
        """Drop all snapshots."""
        for stored in list(self._stored.values()):
            self.drop(stored)
