"""Attempts in this process: concurrent in one event loop, with shared pools of environments and shared rate limiters of models.

Environments shared by concurrent attempts: one pool for each kind, opened at its first use and reopened after a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from exact.agents.agent import Agent
from exact.config import Config
from exact.environments.base import EnvironmentFactory
from exact.environments.pool.capacity import PoolLimits
from exact.environments.pool.pool import Pool
from exact.errors import EnvironmentFailure, JournalError
from exact.evaluation.engine import Hung
from exact.evaluation.folder import BenchFolder, Replay
from exact.evaluation.replay import finished_state, replay
from exact.models.base import ChatModel
from exact.runs.journal.events import AnyEvent
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import ResultLine, RunFolder
from exact.runs.runner import Runner
from exact.task import Task

if TYPE_CHECKING:
    from exact.models.open import RateLimiters


OpenEnvironments = Callable[[Task, Config], AbstractAsyncContextManager[EnvironmentFactory]]
"""Opens the environments of a task for an agent's configuration."""
BuildAgent = Callable[[Config, Callable[[str], ChatModel]], Agent]
"""Builds an agent from its configuration and the model of each role."""

HANG, GRACE = 900.0, 20.0
"""Seconds without an event after which an attempt is killed, more than a site's reset may take; and seconds that a killed attempt has to
release its resources."""


class LocalEngine:
    """An async context manager. An attempt is killed by cancelling it; the environments in which it hung are closed."""

    def __init__(
        self,
        folder: BenchFolder,
        *,
        open_environments: OpenEnvironments,
        key: Callable[[Task], str],
        limits: PoolLimits,
        build: dict[str, BuildAgent] | None = None,
        hang: float | None = HANG,
        grace: float = GRACE,
        share: float = 1.0,
    ) -> None:
        """Initialize an engine on the agents of a benchmark.

        `key` is equal for tasks that share environments. `limits` bounds each pool. `build` builds, by name, the agents that their
        configuration does not describe. `hang`: seconds; None for no limit. `share`, in (0, 1]: this process's part of the providers' rate
        limits.
        """
        self._folder, self._open, self._key, self._limits, self._build = folder, open_environments, key, limits, build or {}
        self._hang, self._grace, self._part = hang, grace, share
        self._beats: dict[tuple[str, str], float] = {}
        self._sessions: dict[str, Callable[[Task], Awaitable[ResultLine]]] = {}
        self._environments: dict[str, PooledFactory] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> LocalEngine:
        from exact.models.open import RateLimiters

        kinds: dict[bytes, PooledFactory] = {}
        files = (self._folder.agent(agent)[1].models.shared_limits for agent in self._folder.plan.agents)
        limiters = RateLimiters(self._part, shared=next(filter(None, files), ""))
        for agent in self._folder.plan.agents:
            self._environments[agent] = await self._pooled(agent, kinds)
            self._sessions[agent] = await self._stack.enter_async_context(self._runner(agent, limiters).session())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def persists(self, agent: str, task: Task) -> bool:
        """Implement Engine."""
        try:
            async with asyncio.timeout(self._hang):
                return await self._environments[agent].persists(task)
        except TimeoutError:
            raise Hung(self._hang or 0.0) from None

    async def attempt(self, agent: str, task: Task) -> ResultLine:
        """Implement Engine."""
        await asyncio.to_thread(set_aside, *self._folder.agent(agent), task)
        self._beats[agent, task.id] = asyncio.get_running_loop().time()
        attempt = asyncio.ensure_future(self._sessions[agent](task))
        try:
            while not (await asyncio.wait({attempt}, timeout=self._remaining(agent, task)))[0]:
                if self._remaining(agent, task) == 0:
                    raise Hung(self._hang or 0.0)
            return attempt.result()
        finally:
            self._beats.pop((agent, task.id), None)
            if not attempt.done():
                await self._kill(attempt)

    async def replay(self, agent: str, task: Task) -> Replay:
        """Implement Engine."""
        run, config = self._folder.agent(agent)
        state = finished_state(run, config, task)
        if state is None:
            raise JournalError(f"{task.id} has no ended attempt by {agent}: run it first")
        try:
            async with asyncio.timeout(self._hang), self._environments[agent].at(task, f"replay {agent} {task.id}") as environments:
                return await replay(environments, task, state, run.blobs)
        except TimeoutError:
            raise Hung(self._hang or 0.0) from None

    def _remaining(self, agent: str, task: Task) -> float | None:
        """Return the seconds until a silent attempt counts as hung; None for no limit."""
        if self._hang is None:
            return None
        return max(0.0, self._beats[agent, task.id] + self._hang - asyncio.get_running_loop().time())

    async def _kill(self, attempt: asyncio.Future[ResultLine]) -> None:
        """Cancel an attempt and wait for it to release its resources, for at most the grace period."""
        attempt.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({attempt}, timeout=self._grace)
        if attempt.done() and not attempt.cancelled():
            attempt.exception()

    async def _pooled(self, agent: str, kinds: dict[bytes, PooledFactory]) -> PooledFactory:
        """Return the pools of an agent. Agents with equal browser, sandbox and evaluator models share them."""
        _, config = self._folder.agent(agent)
        kind = msgspec.json.encode([config.browser, config.sandbox, config.models.judges])
        if kind not in kinds:
            pooled = PooledFactory(self._key, lambda task: self._open(task, config), self._limits)
            kinds[kind] = await self._stack.enter_async_context(pooled)
        return kinds[kind]

    def _runner(self, agent: str, limiters: RateLimiters) -> Runner:
        run, config = self._folder.agent(agent)

        def watch(task: Task, state: AttemptState, event: AnyEvent) -> None:
            self._beats[agent, task.id] = asyncio.get_running_loop().time()

        return Runner(
            folder=run, config=config, open_environments=partial(self._share, agent), build_agent=self._build.get(agent), watch=watch,
            limiters=limiters, log=self._folder.path, environments_tries=1,  # the schedule decides on reruns, and records each
        )  # fmt: skip

    @asynccontextmanager
    async def _share(self, agent: str, task: Task) -> AsyncIterator[EnvironmentFactory]:
        async with self._environments[agent].at(task, f"{agent} {task.id}") as environments:
            yield environments


def set_aside(run: RunFolder, config: Config, task: Task) -> None:
    """Rename the journal of an oracle, which cannot be resumed: the scores that it saw were kept in the ended process only."""
    journal = run.task_folder(task) / "journal.jsonl"
    if config.value.kind == "oracle" and journal.exists():
        journal.replace(journal.with_name(f"journal.{len(list(journal.parent.glob('journal.*.jsonl'))) + 1}.jsonl"))


def environments_wanted(config: Config) -> int:
    """Return how many environments one attempt may hold at once.

    These are the live one, one for each worker and the prefetched ones, each twice while its successor is made, and the standing ones.
    """
    return 2 * (1 + config.search.workers + config.search.prefetch) + config.search.standing


KEPT = 4
"""Number of kinds that stay open while unused. A task may bring its own site, which takes memory as long as it runs."""


@dataclass(eq=False)
class _Opened:
    """A pool, and the number of attempts that use it."""

    key: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    pool: Pool | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    retired: bool = False
    """Whether an environment of it failed. New attempts do not use it, and it closes when the last one leaves."""


class PooledFactory:
    """An async context manager whose `at(task, tree)` gives one attempt its share of a pool.

    Raises EnvironmentFailure if environments cannot be opened.
    """

    def __init__(
        self, key: Callable[[Task], str], open: Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]], limits: PoolLimits
    ) -> None:
        """`key` is equal for tasks that share environments. `open` opens the environments of a task. `limits` bounds each pool."""
        self._key, self._open, self._limits = key, open, limits
        self._kinds: dict[str, _Opened] = {}
        self._retired: set[_Opened] = set()
        self._persists: dict[str, bool] = {}

    async def __aenter__(self) -> PooledFactory:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for opened in [*self._kinds.values(), *self._retired]:
            await self._close(opened)
        self._kinds.clear()
        self._retired.clear()

    @asynccontextmanager
    async def at(self, task: Task, tree: str) -> AsyncIterator[EnvironmentFactory]:
        """Yield the environments for one attempt. After an EnvironmentFailure, later attempts get a new pool; running ones keep theirs."""
        key = self._key(task)
        opened = self._kinds.pop(key, None) or _Opened(key)
        self._kinds[key] = opened
        opened.users += 1
        try:
            await self._tidy()
            yield (await self._pool(opened, task)).share(tree)
        except EnvironmentFailure:
            self._retire(opened)
            raise
        finally:
            opened.users -= 1
            if opened.retired and not opened.users:
                self._retired.discard(opened)
                await self._close(opened)

    async def persists(self, task: Task) -> bool:
        """Return whether side effects persist in the environments of a task.

        Each kind is asked once. The next attempt uses the environment that was opened for it. Raises EnvironmentFailure.
        """
        key = self._key(task)
        if key not in self._persists:
            async with self.at(task, "") as environments, environments.open(simulation=False) as environment:
                self._persists[key] = not environment.capabilities.isolated
        return self._persists[key]

    async def _pool(self, opened: _Opened, task: Task) -> Pool:
        async with opened.opening:
            if opened.pool is None:
                environments = await opened.stack.enter_async_context(self._open(task))
                opened.pool = Pool(environments, self._limits)
            return opened.pool

    async def _tidy(self) -> None:
        """Close the unused kinds but the most recently used ones."""
        idle = [each for each in self._kinds.values() if not each.users]
        for each in idle[: max(0, len(self._kinds) - KEPT)]:
            del self._kinds[each.key]
            await self._close(each)

    def _retire(self, opened: _Opened) -> None:
        opened.retired = True
        self._retired.add(opened)
        if self._kinds.get(opened.key) is opened:
            del self._kinds[opened.key]

    async def _close(self, opened: _Opened) -> None:
        """Close a pool without waiting for attempts that hang in it: their environments are closed too."""
        if opened.pool is not None:
            await opened.pool.drain(wait=not opened.users)
        await opened.stack.aclose()
