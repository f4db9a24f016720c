"""A speculative environment that is brought to states, by the cheapest faithful route that is known.

Every state on the way is compared by fingerprint; an environment that drifted is reported, never acted in. What one route does not reach,
the next one may. A healthy environment that went elsewhere after an action, every time it was tried, has *diverged*: the action has another
outcome.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from exact.action import Action
from exact.environments.base import Environment, EnvironmentFactory, SideEffect, Snapshot, Transition
from exact.environments.restore.costs import Costs, Operation
from exact.environments.restore.routes import Route, RouteName, Start, routes
from exact.environments.restore.snapshots import Kept, Path, Shelf
from exact.environments.restore.verify import mark, verdict
from exact.environments.restore.waypoint import Arrival, Divergence, Verdict, Waypoint
from exact.errors import ActionError, BudgetExceeded, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

Hold = Callable[[int], None]
"""Holds steps back in a budget before they are taken. Raises BudgetExceeded."""


class Standing(NamedTuple):
    """An open environment and the path to the state it is in."""

    stack: AsyncExitStack
    environment: Environment
    path: Path


class _Try(NamedTuple):
    """What one route came to. Without a reason it arrived."""

    route: Route[Kept]
    reason: str = ""
    mark: str = ""
    """Of the state it came to."""
    divergence: Divergence | None = None
    broke: EnvironmentFailure | None = None
    """What failed, where that says nothing of the state."""


class Place:
    """A speculative environment and where it stands. Opened when first needed, opened anew when it broke. One call at a time."""

    tries = 2
    """Walks before a drift, or in a deterministic environment a divergence, is believed."""

    def __init__(
        self,
        environments: EnvironmentFactory,
        task: Task,
        *,
        shelf: Shelf | None = None,
        costs: Costs | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`shelf` and `costs`: what all places of an attempt share. `clock`: seconds."""
        self._environments, self._task, self._clock = environments, task, clock
        self._shelf, self._costs = Shelf(environments) if shelf is None else shelf, Costs() if costs is None else costs
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self._path: Path | None = None
        self._steps = self._writes = 0

    @property
    def opened(self) -> bool:
        """Whether it has an environment now."""
        return self._environment is not None

    def stands_at(self, path: Sequence[Waypoint]) -> bool:
        """Whether the environment is at the end of `path` now, so that arriving costs nothing."""
        return self._path == tuple(path)

    def rank(self, wanted: Mapping[Path, int]) -> float:
        """The number of the state at which the environment stands; infinite where it stands at none of them."""
        return math.inf if self._path is None else wanted.get(self._path, math.inf)

    def count(self) -> int:
        """Steps taken since they were counted last, those that broke the environment included."""
        steps, self._steps = self._steps, 0
        return steps

    def routes(self, path: Sequence[Waypoint], *, since: int = 0) -> list[Route[Kept]]:
        """The ways to the end of `path`, the cheapest first. `since`: steps up to that waypoint are not repeated."""
        return routes(self._starts(tuple(path)), len(path) - 1, self._costs, since=since, wrote=self._shelf.wrote(path))

    async def arrive(self, path: Sequence[Waypoint], *, hold: Hold = lambda steps: None, since: int = 0) -> Arrival:
        """Stand at the end of `path`, which begins with the task's start.

        since: steps up to that waypoint are not repeated, for they wrote to something that no reset undoes.
        A route whose steps `hold` refuses is not taken; where no other was, that BudgetExceeded is raised.
        Raises EnvironmentFailure where an environment broke on the way, and no other route led there.
        """
        if self.stands_at(path):
            return Arrival(route="reuse", verdict="exact")
        before, effects, came = self._steps, list[SideEffect](), list[_Try]()
        refused: dict[RouteName, BudgetExceeded] = {}
        while (route := self._next(path, came, refused, since)) is not None:
            try:
                hold(route.steps)
            except BudgetExceeded as exceeded:
                refused[route.name] = exceeded
                continue
            came.append(await self._take(route, path, effects))
            if not await self._doubts(came[-1]):
                break
        if not came and refused:
            raise min(refused.values(), key=lambda exceeded: exceeded.wanted)
        if came and came[-1].broke is not None:
            raise came[-1].broke
        return await self._arrived(path, came, effects, self._steps - before)

    async def act(self, action: Action) -> Transition:
        """Take one step from where the environment stands. Raises ActionError (the environment stays), EnvironmentFailure (it is gone)."""
        environment = await self._open()
        path, self._path = self._path, None
        try:
            transition = await self._step(environment, action)
        except ActionError:
            self._path = path
            raise
        except BaseException:  # broken, or cancelled in the middle of a step: nobody knows what state it is in
            await self.close()
            raise
        if path is not None:
            observation = transition.observation
            self._path = (*path, Waypoint(action, observation.fingerprint if observation and not transition.terminated else ""))
            self._shelf.marks.setdefault(self._path, mark(observation))
            if any(effect.is_write for effect in transition.effects):
                self._shelf.written.add(self._path)
        return transition

    async def keep(self, returns: float) -> Snapshot | None:
        """Take a snapshot of where the environment stands, if it can and that pays; None where not.

        returns: how often the state is expected to be come back to.
        """
        environment, path = self._environment, self._path
        if environment is None or path is None or environment.capabilities.fidelity == "replay" or self._shelf.has(path):
            return None
        return await self._keep(environment, path) if self._costs.pays(returns, self._way_back(path)) else None

    async def keep_written(self) -> Snapshot | None:
        """Take a snapshot where a write led to where the environment stands, and a snapshot takes all of it along; None where not.

        What is written again may come out differently (a date, a number), and then no replay leads back.
        """
        environment, path = self._environment, self._path
        if environment is None or path is None or environment.capabilities.fidelity != "full" or self._shelf.has(path):
            return None
        return await self._keep(environment, path) if path in self._shelf.written else None

    def exchange(self, other: Standing) -> Standing:
        """Give the environment away, with where it stands, for another. Only while it stands somewhere."""
        assert self._environment is not None and self._path is not None, "an environment that stands nowhere is not given away"
        mine = Standing(self._stack, self._environment, self._path)
        self._stack, self._environment, self._path = other
        return mine

    async def close(self) -> None:
        """Let the environment go. The next use opens another."""
        self._environment, self._path = None, None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    # --- routes

    def _way_back(self, path: Path) -> float:
        """Seconds to come to a state again, once this environment has left it."""
        return min(route.seconds for route in self.routes(path) if route.name != "reuse")

    def _starts(self, path: Path) -> list[Start[Kept]]:
        """Every state on the way at which an environment can be had."""
        found = list[Start[Kept]]()
        if self._path is not None and self._path == path[: len(self._path)]:
            found.append(Start("reuse", len(self._path) - 1))
        for index, kept in self._shelf.along(path):
            if kept.taker is self._environment and (kept.snapshot.fidelity == "full" or kept.writes == self._writes):
                found.append(Start("restore", index, kept))
            if self._shelf.forks is not None and (kept.snapshot.fidelity == "full" or not kept.writes):
                found.append(Start("fork", index, kept))
            if found and found[-1].kept is kept:
                break
        found.append(Start("reset" if self.opened else "open", 0))
        return found

    def _next(
        self, path: Sequence[Waypoint], came: Sequence[_Try], refused: dict[RouteName, BudgetExceeded], since: int
    ) -> Route[Kept] | None:
        """The cheapest route that was not tried yet; the replay once more, where fewer walks were made than are believed."""
        tried = [each.route.name for each in came]
        for route in self.routes(path, since=since):
            again = route.name == "replay" and sum("replay" in name or name == "advance" for name in tried) < self.tries
            if route.name not in refused and (again or route.name not in tried):
                return route
        return None

    async def _take(self, route: Route[Kept], path: Sequence[Waypoint], effects: list[SideEffect]) -> _Try:
        """Go one route; why it did not lead to the end of `path`, if it did not."""
        self._path = None
        try:
            begun = await self._start(route, path)
            return begun if begun.reason else await self._walk(begun, path, effects)
        except ActionError as error:
            return _Try(route, f"an action on the way was refused: {error}")
        except BaseException:
            await self.close()
            raise

    async def _start(self, route: Route[Kept], path: Sequence[Waypoint]) -> _Try:
        """Stand where a route starts; with a reason if the environment does not."""
        if route.start.kept is not None:
            return await self._return(route, route.start.kept)
        return _Try(route) if route.start.means == "reuse" else await self._begin(route, path)

    async def _return(self, route: Route[Kept], kept: Kept) -> _Try:
        """Go back to a snapshot. One that does not lead back is not tried again by anybody."""
        began, means = self._clock(), route.start.means
        try:
            observation = await (self._restore(kept) if means == "restore" else self._fork(kept))
        except EnvironmentFailure as error:
            await self.close()
            self._shelf.drop(kept)
            return _Try(route, str(error) or "the snapshot could not be returned to", broke=error)
        self._note("restore" if means == "restore" else "fork", began, anew=True)
        if observation.fingerprint == kept.path[-1].fingerprint:
            return _Try(route, mark=mark(observation))
        self._shelf.drop(kept)
        return _Try(route, "another state than the snapshot was taken of")

    async def _restore(self, kept: Kept) -> Observation:
        return await (await self._open()).restore(kept.snapshot)

    async def _fork(self, kept: Kept) -> Observation:
        """In a new environment; the present one goes first, for there may not be room for both."""
        assert self._shelf.forks is not None
        await self.close()
        branch = await self._stack.enter_async_context(self._shelf.forks.fork(kept.snapshot, simulation=True))
        self._environment, self._writes = branch, 0
        return branch.observation

    async def _begin(self, route: Route[Kept], path: Sequence[Waypoint]) -> _Try:
        """Stand at the task's start."""
        means: Operation = "reset" if self.opened else "open"
        began, before = self._clock(), self._processor()
        observation = await (await self._open()).reset(self._task)
        self._note(means, began, before)
        self._writes = 0
        if observation.fingerprint != path[0].fingerprint:
            return _Try(route, "another state after reset")
        return _Try(route, mark=mark(observation))

    async def _walk(self, begun: _Try, path: Sequence[Waypoint], effects: list[SideEffect]) -> _Try:
        """Replay the rest of a route."""
        environment, came = await self._open(), begun
        for index in range(begun.route.start.at + 1, len(path)):
            action = path[index].action
            assert action is not None
            transition = await self._step(environment, action)
            effects.extend(transition.effects)
            divergence = Divergence(index, transition)
            if divergence.fingerprint != path[index].fingerprint:
                what = "another state" if transition.observation else "the episode ended"
                return _Try(begun.route, f"{what} after {action}", divergence=divergence)
            came = _Try(begun.route, mark=mark(transition.observation))
        self._path = tuple(path)
        return came

    async def _step(self, environment: Environment, action: Action) -> Transition:
        began, before = self._clock(), self._processor()
        self._steps += 1
        transition = await environment.step(action)
        self._note("step", began, before)
        if any(effect.is_write for effect in transition.effects):
            self._writes += 1
            if not environment.capabilities.isolated:
                self._shelf.outdate()
        return transition

    async def _keep(self, environment: Environment, path: Path) -> Snapshot | None:
        """A snapshot; None where something stands in the way or it was refused, and then the environment goes on."""
        if getattr(environment, "obstacle", ""):
            return None
        began, before = self._clock(), self._processor()
        self._shelf.taking.add(path)
        try:
            snapshot = await environment.snapshot()
        except EnvironmentFailure:
            snapshot = None
        except BaseException:  # cancelled half-way through
            await self.close()
            raise
        finally:
            self._shelf.taking.discard(path)
        self._note("snapshot", began, before)
        if snapshot is not None:
            self._shelf.put(Kept(path, snapshot, environment, self._writes))
        return snapshot

    async def _open(self) -> Environment:
        if self._environment is None:
            self._environment = await self._stack.enter_async_context(self._environments.open(simulation=True))
            self._writes = 0
        return self._environment

    # --- what routes came to

    async def _arrived(self, path: Sequence[Waypoint], came: Sequence[_Try], effects: Sequence[SideEffect], steps: int) -> Arrival:
        if not came:
            return Arrival(route="replay", verdict="drifted", reason="no snapshot leads here, and a step that wrote is not repeated")
        last = came[-1]
        divergence = last.divergence if await self._believes(came) else None
        return Arrival(
            route=last.route.name,
            verdict=self._verdict(path, last) if not last.reason else "diverged" if divergence else "drifted",
            transitions=steps,
            resets=sum(each.route.name == "replay" for each in came),
            effects=tuple(effects),
            reason=last.reason,
            failed=tuple(each.route.name for each in came[:-1]),
            divergence=divergence,
        )

    def _verdict(self, path: Sequence[Waypoint], came: _Try) -> Verdict:
        """Of an arrival. Where nobody knows more of the state than its fingerprint, it is now known as it is."""
        if not came.mark:
            return "exact"  # an end, which is not observed; or where the environment stood
        return verdict(self._shelf.marks.setdefault(tuple(path), came.mark), came.mark)

    async def _doubts(self, came: _Try) -> bool:
        """Whether another try is worth it: this one did not arrive, in an environment that should have."""
        return bool(came.reason) and not (came.divergence and not (await self._open()).capabilities.deterministic)

    async def _believes(self, came: Sequence[_Try]) -> bool:
        """Whether walks that did not arrive show another outcome: the same each time, or an environment known to vary."""
        if came[-1].divergence is None:
            return False
        if not (await self._open()).capabilities.deterministic:
            return True
        walks = [each.divergence for each in came if each.divergence or each.route.name == "replay"]
        ways = {(each.waypoint, each.fingerprint) if each else None for each in walks}
        return len(walks) >= self.tries and len(ways) == 1

    # --- what it costs

    def _note(self, operation: Operation, began: float, before: float = 0.0, *, anew: bool = False) -> None:
        """Measure an operation that ends now. `anew`: it made another environment, whose processor time is all its own."""
        used = self._processor()
        self._costs.note(operation, self._clock() - began, used if anew or used < before else used - before)

    def _processor(self) -> float:
        """Processor seconds that the present environment has taken; 0 where it does not tell."""
        return float(getattr(self._environment, "processor", 0.0))
