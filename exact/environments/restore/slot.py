"""A simulated environment that is brought to states by the cheapest faithful route.

Every state on the way is compared by fingerprint. An environment that drifted is reported and never acted in; then the next route is
tried. A healthy environment that reached another state after an action, each time it was tried, has *diverged*: the action has another
outcome.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from exact.action import Action
from exact.environments.base import (
    Environment,
    EnvironmentFactory,
    SideEffect,
    Snapshot,
    StateChanged,
    Transition,
    step_in,
)
from exact.environments.restore.costs import Costs, Operation
from exact.environments.restore.routes import RestoreRoute, RouteName, Start, find_routes
from exact.environments.restore.snapshots import SnapshotStore, StatePath, StoredSnapshot
from exact.environments.restore.waypoint import (
    Arrival,
    ArrivalMatch,
    Divergence,
    PassedSnapshot,
    Waypoint,
    compare_states,
    state_fingerprint,
    state_key,
)
from exact.errors import ActionError, BudgetExceeded, EnvironmentFailure
from exact.observation import Observation, same_state
from exact.task import Task

ReserveSteps = Callable[[int], None]
"""Reserves a number of steps in a budget before they are taken. Raises BudgetExceeded."""


class SlotContent(NamedTuple):
    """An open environment and the path to the state it is in."""

    stack: AsyncExitStack
    environment: Environment
    path: StatePath


class _RouteAttempt(NamedTuple):
    """Result of trying one route. Without a reason it arrived."""

    route: RestoreRoute[StoredSnapshot]
    reason: str = ""
    """Reason why it did not arrive."""
    key: str = ""
    """Key of the state that was reached."""
    divergence: Divergence | None = None
    failure: EnvironmentFailure | None = None
    """Failure that is not evidence about the state."""


class Slot:
    """A simulated environment and the state it is in. Opened when first needed, and again after a failure. Calls do not overlap."""

    tries = 2
    """Replays that must agree before a drift, or a divergence in a deterministic environment, is reported."""

    def __init__(
        self,
        environments: EnvironmentFactory,
        task: Task,
        *,
        store: SnapshotStore | None = None,
        costs: Costs | None = None,
        clock: Callable[[], float] = time.perf_counter,
        resets: bool = True,
    ) -> None:
        """Create a slot without an environment.

        `store`, `costs`: shared by all slots of an attempt. `clock`: returns seconds. `resets`: whether a reset leads to the start.
        """
        self._resets = resets
        self._environments, self._task, self._clock = environments, task, clock
        self._store, self._costs = SnapshotStore(environments) if store is None else store, Costs() if costs is None else costs
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self._path: StatePath | None = None
        self._steps = self._writes = 0
        self._passed: list[PassedSnapshot] = []
        """Snapshots that were taken on the way since the present arrival began."""

    @property
    def opened(self) -> bool:
        """Return whether the slot has an environment now."""
        return self._environment is not None

    def is_at(self, path: Sequence[Waypoint]) -> bool:
        """Return whether the environment is at the end of `path` now, so that arriving costs nothing."""
        return self._path == tuple(path)

    def rank(self, wanted: Mapping[StatePath, int]) -> float:
        """Return the number of the state that the environment is in; infinite if it is in none of them."""
        return math.inf if self._path is None else wanted.get(self._path, math.inf)

    def take_step_count(self) -> int:
        """Return the steps taken since the last call, steps that broke the environment included, and start again at 0."""
        steps, self._steps = self._steps, 0
        return steps

    def routes(self, path: Sequence[Waypoint], *, since: int = 0) -> list[RestoreRoute[StoredSnapshot]]:
        """Return the routes to the end of `path`, the cheapest first. `since`: see `arrive`."""
        return find_routes(self._starts(tuple(path)), len(path) - 1, self._costs, since=since, wrote=self._store.wrote(path))

    async def arrive(self, path: Sequence[Waypoint], *, reserve: ReserveSteps = lambda steps: None, since: int = 0) -> Arrival:
        """Bring the environment to the end of `path`, which begins with the task's start.

        `reserve`: called with the steps of a route before it is taken. A route that it refuses is skipped; if no other route was taken,
        its BudgetExceeded is raised. `since`: steps up to this waypoint are not repeated, because they wrote to something that no reset
        undoes. Raises EnvironmentFailure if an environment broke on the way and no other route arrived.
        """
        if self.is_at(path):
            return Arrival(route="reuse", match="exact")
        before, effects, tried = self._steps, list[SideEffect](), list[_RouteAttempt]()
        self._passed = []
        refused: dict[RouteName, BudgetExceeded] = {}
        while (route := self._next(path, tried, refused, since)) is not None:
            try:
                reserve(route.steps)
            except BudgetExceeded as exceeded:
                refused[route.name] = exceeded
                continue
            tried.append(await self._take(route, path, effects))
            if not await self._is_worth_retrying(tried[-1]):
                break
        if not tried and refused:
            raise min(refused.values(), key=lambda exceeded: exceeded.wanted)
        if tried and tried[-1].failure is not None:
            raise tried[-1].failure
        return await self._arrived(path, tried, effects, self._steps - before)

    async def act(self, action: Action) -> Transition:
        """Take one step from the present state.

        Raises ActionError (the environment is unchanged), StateChanged (it is in another state) and EnvironmentFailure (it is closed).
        """
        environment = await self._open()
        path, self._path = self._path, None
        try:
            transition = await self._step(environment, action, path[-1].fingerprint if path else "")
        except StateChanged:  # its state is no longer that of the path
            raise
        except ActionError:
            self._path = path
            raise
        except BaseException:  # broken, or cancelled in the middle of a step: its state is unknown
            await self.close()
            raise
        if path is not None:
            self._path = (*path, Waypoint(action, state_fingerprint(transition)))
            self._store.keys.setdefault(self._path, state_key(transition.observation))
            if any(effect.is_write for effect in transition.effects):
                self._store.written.add(self._path)
        return transition

    def is_worth_snapshot(self, returns: float) -> bool:
        """Return whether a snapshot of the present state is possible and saves time.

        `returns`: expected number of returns to the state. It is at least as often replayed again as it was replayed before.
        """
        environment, path = self._environment, self._path
        if environment is None or path is None or environment.capabilities.fidelity == "replay" or self._store.has(path):
            return False
        return self._costs.pays(max(returns, self._store.replayed[path] - 1), self._return_seconds(path))

    async def snapshot_if_worth(self, returns: float) -> Snapshot | None:
        """Take a snapshot of the present state if `is_worth_snapshot`. Return None if not."""
        if not self.is_worth_snapshot(returns):
            return None
        assert self._environment is not None and self._path is not None
        return await self._snapshot(self._environment, self._path)

    async def snapshot_if_written(self) -> Snapshot | None:
        """Take a snapshot if a write led to the present state and the snapshot includes it (fidelity `full`). Return None if not.

        A repeated write may have another result (a date, a number), so that no replay leads back to this state.
        """
        environment, path = self._environment, self._path
        if environment is None or path is None or environment.capabilities.fidelity != "full" or self._store.has(path):
            return None
        return await self._snapshot(environment, path) if path in self._store.written else None

    def exchange(self, other: SlotContent) -> SlotContent:
        """Replace the environment and its state by another, and return the old ones. Requires an open environment in a known state."""
        assert self._environment is not None and self._path is not None, "an environment in an unknown state is not given away"
        mine = SlotContent(self._stack, self._environment, self._path)
        self._stack, self._environment, self._path = other
        return mine

    async def close(self) -> None:
        """Close the environment. The next use opens another."""
        self._environment, self._path = None, None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    # --- routes

    def _return_seconds(self, path: StatePath) -> float:
        """Return the expected seconds to reach a state again once this environment has left it."""
        return min((route.seconds for route in self.routes(path) if route.name != "reuse"), default=math.inf)

    def _starts(self, path: StatePath) -> list[Start[StoredSnapshot]]:
        """Return the states on a path at which an environment can be had without replay."""
        found = list[Start[StoredSnapshot]]()
        if self._path is not None and self._path == path[: len(self._path)]:
            found.append(Start("reuse", len(self._path) - 1))
        for index, stored in self._store.along(path):
            if stored.taker is self._environment and (stored.snapshot.fidelity == "full" or stored.writes == self._writes):
                found.append(Start("restore", index, stored))
            if self._store.forks is not None and (stored.snapshot.fidelity == "full" or not stored.writes):
                found.append(Start("fork", index, stored))
            if found and found[-1].snapshot is stored:
                break
        return [*found, Start("reset" if self.opened else "open", 0)] if self._resets else found

    def _next(
        self, path: Sequence[Waypoint], tried: Sequence[_RouteAttempt], refused: dict[RouteName, BudgetExceeded], since: int
    ) -> RestoreRoute[StoredSnapshot] | None:
        """Return the cheapest untried route, or the replay once more if fewer than `tries` replays were made."""
        names = [each.route.name for each in tried]
        for route in self.routes(path, since=since):
            again = route.name == "replay" and sum("replay" in name or name == "advance" for name in names) < self.tries
            if route.name not in refused and (again or route.name not in names):
                return route
        return None

    async def _take(self, route: RestoreRoute[StoredSnapshot], path: Sequence[Waypoint], effects: list[SideEffect]) -> _RouteAttempt:
        """Try one route to the end of `path`; its side effects are added to `effects`."""
        self._path = None
        try:
            begun = await self._start(route, path)
            return begun if begun.reason else await self._replay(begun, path, effects)
        except ActionError as error:
            return _RouteAttempt(route, f"an action on the way was refused: {error}")
        except BaseException:
            await self.close()
            raise

    async def _start(self, route: RestoreRoute[StoredSnapshot], path: Sequence[Waypoint]) -> _RouteAttempt:
        """Bring the environment to the start of a route."""
        if route.start.snapshot is not None:
            return await self._return(route, route.start.snapshot)
        return _RouteAttempt(route) if route.start.means == "reuse" else await self._begin(route, path)

    async def _return(self, route: RestoreRoute[StoredSnapshot], stored: StoredSnapshot) -> _RouteAttempt:
        """Restore or fork a snapshot. A snapshot that does not lead back is dropped, so that no slot tries it again."""
        began, means = self._clock(), route.start.means
        try:
            observation = await (self._restore(stored) if means == "restore" else self._fork(stored))
        except EnvironmentFailure as error:
            await self.close()
            self._store.drop(stored)
            return _RouteAttempt(route, str(error) or "the snapshot could not be restored", failure=error)
        self._measure("restore" if means == "restore" else "fork", began, renewed=True)
        if same_state(observation.fingerprint, stored.path[-1].fingerprint):
            return _RouteAttempt(route, key=state_key(observation))
        self._store.drop(stored)
        return _RouteAttempt(route, "another state than the snapshot was taken of")

    async def _restore(self, stored: StoredSnapshot) -> Observation:
        return await (await self._open()).restore(stored.snapshot)

    async def _fork(self, stored: StoredSnapshot) -> Observation:
        """Open a fork. The present environment is closed first, because memory may not suffice for both."""
        assert self._store.forks is not None
        await self.close()
        fork = await self._stack.enter_async_context(self._store.forks.fork(stored.snapshot, simulation=True))
        self._environment, self._writes = fork, 0
        return fork.observation

    async def _begin(self, route: RestoreRoute[StoredSnapshot], path: Sequence[Waypoint]) -> _RouteAttempt:
        """Bring the environment to the task's start."""
        means: Operation = "reset" if self.opened else "open"
        began, before, process = self._clock(), self._processor(), self._process()
        observation = await (await self._open()).reset(self._task)
        self._measure(means, began, before, renewed=process != self._process())
        self._writes = 0
        if not same_state(observation.fingerprint, path[0].fingerprint):
            return _RouteAttempt(route, "another state after reset")
        return _RouteAttempt(route, key=state_key(observation))

    async def _replay(self, begun: _RouteAttempt, path: Sequence[Waypoint], effects: list[SideEffect]) -> _RouteAttempt:
        """Replay the actions of a route from its start to the end of `path`."""
        environment, reached, first = await self._open(), begun, begun.route.start.at
        for index in range(first + (begun.route.start.means not in ("reset", "open")), len(path)):
            self._store.replayed[tuple(path[: index + 1])] += 1
        worth = self._worth_passing(environment, path, first)
        for index in range(first + 1, len(path)):
            if index - 1 == worth:
                await self._snapshot_passed(environment, path, worth)
            action = path[index].action
            assert action is not None
            transition = await self._step(environment, action, path[index - 1].fingerprint)
            effects.extend(transition.effects)
            divergence = Divergence(index, transition)
            if not same_state(divergence.fingerprint, path[index].fingerprint):
                what = "another state" if divergence.fingerprint else "the episode ended"
                return _RouteAttempt(begun.route, f"{what} after {action}", divergence=divergence)
            reached = _RouteAttempt(begun.route, key=state_key(transition.observation))
        self._path = tuple(path)
        return reached

    def _worth_passing(self, environment: Environment, path: Sequence[Waypoint], first: int) -> int:
        """Return the waypoint before the end of a replay from `first` of which a snapshot saves most time; -1 if none saves enough.

        A state is expected to be replayed as often again as it was before: then the lost time at most doubles.
        Enough is as much as a snapshot costs: the estimate is rough, and the search may be about to end.
        """
        if environment.capabilities.fidelity == "replay":
            return -1
        best, most = -1, self._costs.of("snapshot")
        for index in range(first, len(path) - 1):
            here = tuple(path[: index + 1])
            saved = self._costs.saved(self._store.replayed[here] - 1, self._return_seconds(here))
            if saved > most and not self._store.has(here):
                best, most = index, saved
        return best

    async def _snapshot_passed(self, environment: Environment, path: Sequence[Waypoint], index: int) -> None:
        """Take a snapshot of a state on the way."""
        began = self._clock()
        if (snapshot := await self._snapshot(environment, tuple(path[: index + 1]))) is not None:
            self._passed.append(PassedSnapshot(index, snapshot, self._clock() - began))

    async def _step(self, environment: Environment, action: Action, fingerprint: str) -> Transition:
        """Take a step in a state of a fingerprint."""
        began, before = self._clock(), self._processor()
        self._steps += 1
        transition = await step_in(environment, action, fingerprint)
        self._measure("step", began, before)
        if any(effect.is_write for effect in transition.effects):
            self._writes += 1
            if not environment.capabilities.isolated:
                self._store.drop_outdated()
        return transition

    async def _snapshot(self, environment: Environment, path: StatePath) -> Snapshot | None:
        """Take a snapshot. Return None if the environment reports an obstacle or refuses; it then continues."""
        if getattr(environment, "obstacle", ""):
            return None
        began, before = self._clock(), self._processor()
        self._store.taking.add(path)
        try:
            snapshot = await environment.snapshot()
        except EnvironmentFailure:
            snapshot = None
        except BaseException:  # cancelled half-way through
            await self.close()
            raise
        finally:
            self._store.taking.discard(path)
        self._measure("snapshot", began, before)
        if snapshot is not None:
            self._store.add(StoredSnapshot(path, snapshot, environment, self._writes))
        return snapshot

    async def _open(self) -> Environment:
        if self._environment is None:
            self._environment = await self._stack.enter_async_context(self._environments.open(simulation=True))
            self._writes = 0
        return self._environment

    # --- results of routes

    async def _arrived(
        self, path: Sequence[Waypoint], tried: Sequence[_RouteAttempt], effects: Sequence[SideEffect], steps: int
    ) -> Arrival:
        if not tried:
            return Arrival(
                route="replay", match="drifted", reason="no snapshot leads here, and a step that wrote, or a goal before, is not repeated"
            )
        last, noticed = tried[-1], await self._notices(tried)
        divergence = last.divergence if await self._is_confirmed(tried) else None
        return Arrival(
            route=last.route.name,
            match=self._match(path, last) if not last.reason else "diverged" if divergence else "drifted",
            transitions=steps,
            resets=sum(each.route.name == "replay" for each in tried),
            effects=tuple(effects),
            reason=last.reason,
            failed=tuple(each.route.name for each in tried[:-1]),
            snapshots=tuple(self._passed),
            divergence=divergence,
            stochastic=noticed,
        )

    async def _notices(self, tried: Sequence[_RouteAttempt]) -> bool:
        """Return whether replays have just shown that the environment is stochastic, though nobody has said so: they led apart."""
        replays = [each for each in tried if each.route.name == "replay" and each.failure is None]
        ends = {(each.divergence.waypoint, each.divergence.fingerprint) if each.divergence else None for each in replays}
        if self._store.stochastic or len(ends) < 2 or (await self._open()).capabilities.deterministic is not None:
            return False
        self._store.stochastic = True
        return True

    async def _is_stochastic(self) -> bool:
        return self._store.stochastic or (await self._open()).capabilities.deterministic is False

    def _match(self, path: Sequence[Waypoint], reached: _RouteAttempt) -> ArrivalMatch:
        """Compare the state that was reached with the one wanted. If only its fingerprint was known, its full key is stored now."""
        if not reached.key:
            return "exact"  # a terminated state, which is not observed; or the environment was there already
        return compare_states(self._store.keys.setdefault(tuple(path), reached.key), reached.key)

    async def _is_worth_retrying(self, tried: _RouteAttempt) -> bool:
        """Return whether another route should be tried: this one did not arrive, in an environment that should have."""
        return bool(tried.reason) and not (tried.divergence and await self._is_stochastic())

    async def _is_confirmed(self, tried: Sequence[_RouteAttempt]) -> bool:
        """Return whether the failed replays show another outcome: the same each time, or in an environment that is not deterministic."""
        if tried[-1].divergence is None:
            return False
        if await self._is_stochastic():
            return True
        replays = [each.divergence for each in tried if each.divergence or each.route.name == "replay"]
        outcomes = {(each.waypoint, each.fingerprint) if each else None for each in replays}
        return len(replays) >= self.tries and len(outcomes) == 1

    # --- costs

    def _measure(self, operation: Operation, began: float, before: float = 0.0, *, renewed: bool = False) -> None:
        """Add the measurement of an operation that ends now.

        `began`: time of its start. `before`: CPU seconds of the environment at its start. `renewed`: the operation made another
        environment, all of whose CPU time belongs to it.
        """
        used = self._processor()
        self._costs.add(operation, self._clock() - began, used if renewed or used < before else used - before)

    def _process(self) -> object:
        """Return the identity of the present environment's process, if it reports one: a reset may start another one."""
        return getattr(self._environment, "pid", None)

    def _processor(self) -> float:
        """Return the CPU seconds that the present environment has used; 0 if it does not report them."""
        return float(getattr(self._environment, "processor", 0.0))
