"""Snapshots of one attempt by the paths of their states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exact.environments.base import Environment, EnvironmentFactory, ForkableFactory, Snapshot
from exact.environments.restore.waypoint import Waypoint

Path = tuple[Waypoint, ...]


class Kept(NamedTuple):
    """One snapshot."""

    path: Path
    snapshot: Snapshot
    taker: Environment
    """Whoever took it can return to it; others need a fork."""
    writes: int
    """Steps that had written in the taker's environment by then."""


class Shelf:
    """What all environments of an attempt can go back to. Snapshots may go at any time: others need their room."""

    def __init__(self, environments: EnvironmentFactory) -> None:
        self.forks: ForkableFactory | None = environments if isinstance(environments, ForkableFactory) else None
        self._kept: dict[Path, Kept] = {}
        self.taking: set[Path] = set()
        """States of which a snapshot is being taken now."""
        self.marks: dict[Path, str] = {}
        """By what a state is compared: as it was when an environment came there first."""
        self.written: set[Path] = set()
        """States that a write led to: what came of it when it was repeated may be another."""

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, kept: Kept) -> None:
        """Keep one; an older one of the same state goes."""
        if (old := self._kept.get(kept.path)) is not None:
            self.drop(old)
        self._kept[kept.path] = kept

    def has(self, path: Path) -> bool:
        """Whether a snapshot of the state at the end of a path is there, or on its way."""
        kept = self._kept.get(path)
        return path in self.taking or (kept is not None and (self.forks is None or self.forks.has(kept.snapshot)))

    def wrote(self, path: Sequence[Waypoint]) -> int:
        """Index of the last waypoint on a path that a write led to; 0 where there is none."""
        return next((index for index in reversed(range(1, len(path))) if tuple(path[: index + 1]) in self.written), 0)

    def along(self, path: Sequence[Waypoint]) -> Iterator[tuple[int, Kept]]:
        """Those of the states on a path, with the indices of their waypoints, the last state first; only what is still there."""
        for index in reversed(range(len(path))):
            kept = self._kept.get(tuple(path[: index + 1]))
            if kept is None:
                continue
            if self.forks is not None and not self.forks.has(kept.snapshot):
                self.drop(kept)
            else:
                yield index, kept

    def drop(self, kept: Kept) -> None:
        """Nobody comes back to it."""
        if self._kept.get(kept.path) is kept:
            del self._kept[kept.path]
        if self.forks is not None:
            self.forks.drop(kept.snapshot)

    def keep_below(self, root: Sequence[Waypoint]) -> None:
        """Drop all that is neither on the way to a state nor below it: the search goes on from there."""
        root = tuple(root)
        for kept in list(self._kept.values()):
            shorter = min(len(root), len(kept.path))
            if kept.path[:shorter] != root[:shorter]:
                self.drop(kept)

    def outdate(self) -> None:
        """The outside was written to: drop all that did not take it along."""
        for kept in list(self._kept.values()):
            if kept.snapshot.fidelity != "full":
                self.drop(kept)

    def clear(self) -> None:
        """Drop all."""
        for kept in list(self._kept.values()):
            self.drop(kept)
