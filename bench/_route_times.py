"""A site that is walked down in a sandbox and beside it, and the seconds of each route back to the states that were met."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from typing import Any

import _common
from _environments import Site, walk

from exact.environments.base import Environment, EnvironmentFactory, Snapshot
from exact.environments.browser.fork.factory import ForkingFactory
from exact.environments.restore.slot import Slot
from exact.environments.restore.waypoint import Waypoint

Times = dict[str, dict[int, list[float]]]
"""Seconds by route and depth."""


async def timed(awaitable: Any) -> tuple[float, Any]:
    """Seconds, and what came."""
    began = time.perf_counter()
    came = await awaitable
    return time.perf_counter() - began, came


async def fork_seconds(environments: ForkingFactory, snapshot: Snapshot) -> float:
    """Return the seconds of a fork, without its closing."""
    began = time.perf_counter()
    async with environments.fork(snapshot, simulation=True):
        return time.perf_counter() - began


class RouteTimes:
    """One site, walked down in a sandbox and beside it."""

    def __init__(self, site: Site, depths: tuple[int, ...], forks: ForkingFactory, plain: EnvironmentFactory) -> None:
        self.site, self.depths, self.forks, self.plain = site, depths, forks, plain
        self.times: Times = defaultdict(lambda: defaultdict(list))
        self.marked: list[tuple[float, float]] = []
        """Restores of environments, each with how slow the machine was just then."""
        self.snapshots: list[float] = []
        self.unfaithful = set[int]()
        """Depths at which a restored page was in another state."""

    async def begin(self, stack: AsyncExitStack, quick: bool) -> None:
        """Walk down, take the snapshots, and ask a place that stands at a state for it. `quick`: all at once; snapshots are slower."""
        self.native: Environment = await stack.enter_async_context(self.plain.open(simulation=False))
        inside: Environment = await stack.enter_async_context(self.forks.open(simulation=True))
        pages = self.depths if self.native.capabilities.fidelity == "page" else ()
        if not quick:
            await self._live()
        (self.actions, kept), (_, self.pages), *_ = await asyncio.gather(
            walk(self.site, _Timing(inside, self.snapshots), max(self.depths), self.depths),
            walk(self.site, self.native, max(self.depths), pages),
            *([self._live()] if quick else []),
        )
        self.kept: dict[int, Snapshot] = kept

    async def round(self, number: int, slow: bool, noise: _common.Noise) -> None:
        """Take each route once at each depth, beginning with another one in each round. `slow`: replays too."""
        first = number % len(self.depths)
        for depth in (*self.depths[first:], *self.depths[:first]):
            before = noise.probe()
            seconds, same = await self._forked(self.forks, self.kept[depth])
            self.times["environment"][depth].append(seconds)
            self.marked.append((max(before, noise.probe()), seconds))
            if not same:
                raise SystemExit(f"{self.site.name}: a restored environment is in another state than was kept")
            if depth in self.pages:
                seconds, same = await self._forked(self.plain, self.pages[depth])
                self.times["page"][depth].append(seconds)
                self.unfaithful |= {depth} if not same else set()
            if slow:
                seconds, seen = await timed(self._replay(depth))
                self.times["replay"][depth].append(seconds)
                if seen != self.kept[depth].fingerprint:
                    raise SystemExit(f"{self.site.name}: the replay to depth {depth} came to another state")

    async def _forked(self, environments: Any, snapshot: Snapshot) -> tuple[float, bool]:
        """Seconds, and whether the state is the one that was kept."""
        began = time.perf_counter()
        async with environments.fork(snapshot, simulation=True) as branch:
            return time.perf_counter() - began, branch.observation.fingerprint == snapshot.fingerprint

    async def _replay(self, depth: int) -> str:
        seen = await self.native.reset(self.site.task)
        for action in self.actions[:depth]:
            transition = await self.native.step(action)
            assert transition.observation is not None
            seen = transition.observation
        return seen.fingerprint

    async def _live(self) -> None:
        """Walk down in an environment, and at each depth ask it for the state that it stands at."""
        place = Slot(self.forks, self.site.task)
        async with self.forks.open(simulation=True) as environment:
            seen = await environment.reset(self.site.task)
            path = [Waypoint(None, seen.fingerprint)]
            await place.arrive(path)
            for step in range(max(self.depths)):
                action = self.site.action(environment, seen, step)
                transition = await place.act(action)
                assert transition.observation is not None
                seen = transition.observation
                path.append(Waypoint(action, seen.fingerprint))
                for _ in range(5 if step + 1 in self.depths else 0):
                    seconds, arrival = await timed(place.arrive(path))
                    assert arrival.route == "reuse"
                    self.times["live"][step + 1].append(seconds)
        await place.close()

    def median(self, route: str, depth: int) -> float | None:
        return statistics.median(self.times[route][depth]) if self.times[route].get(depth) else None

    def growth(self) -> float:
        """Return the median restore at the deepest depth divided by that at the shallowest."""
        shallow, deep = (statistics.median(self.times["environment"][end]) for end in (min(self.depths), max(self.depths)))
        return deep / shallow

    def crossover(self) -> float | None:
        """Return the depth at which a line through the replays reaches the restore; None where the line does not rise."""
        found = [(depth, value) for depth in self.depths if (value := self.median("replay", depth)) is not None]
        environment = statistics.median([each for depth in self.depths for each in self.times["environment"][depth]])
        slope, start = statistics.linear_regression(*zip(*found, strict=True))
        return (environment - start) / slope if slope > 0 else None


class _Timing:
    """An environment whose snapshots are timed."""

    def __init__(self, inner: Any, seconds: list[float]) -> None:
        self._inner, self._seconds = inner, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def snapshot(self) -> Snapshot:
        seconds, snapshot = await timed(self._inner.snapshot())
        self._seconds.append(seconds)
        return snapshot
