"""Many trees share a pool of environments: toy ones, and one of a real browser."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.backtracking import BacktrackingEnvironment
from exact.environments.base import Environment, EnvironmentFactory, ForkableFactory, Snapshot
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.check import check
from exact.environments.pool.capacity import PoolLimits, ResourceUsage, _descendants, measure_usage
from exact.environments.pool.pool import Pool
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import Faults, ToyFactory, chain, form, toy_task
from exact.errors import EnvironmentFailure
from exact.parts import name_of
from exact.task import Task

TASK = toy_task("chain")
Order = list[str]


async def idle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def lease(environments: EnvironmentFactory, name: str, order: Order, until: asyncio.Event, *, simulation: bool = True) -> None:
    async with environments.open(simulation=simulation) as environment:
        order.append(name)
        await environment.reset(TASK)
        await until.wait()


@asynccontextmanager
async def own_browser(simulation: bool) -> AsyncIterator[Environment]:
    """Open a browser for each environment, so that one can die alone."""
    config = BrowserConfig(screenshots=False)
    async with (
        launch(config) as browser,
        BrowserFactory(browser, PageSetup(), config, isolated=True).open(simulation=simulation) as environment,
    ):
        yield environment


class OwnBrowsers:
    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[Environment]:
        return own_browser(simulation)


async def test_no_more_environments_are_open_than_are_admitted_and_all_are_served() -> None:
    inner, order, until = ToyFactory(chain(3)), Order(), asyncio.Event()
    async with Pool(inner, PoolLimits(environments=3)) as pool:
        leases = [asyncio.create_task(lease(pool.share(f"tree {i % 4}"), str(i), order, until)) for i in range(20)]
        await idle()
        assert (len(order), pool.waiting) == (3, 17)
        until.set()
        await asyncio.gather(*leases)
        assert (pool.counts.leases, pool.counts.most, pool.counts.reused) == (20, 3, 17)
    assert (inner.counts.most_live, inner.counts.live, inner.counts.opened) == (3, 0, 3)


async def test_trees_take_turns_and_within_a_tree_who_came_first_is_served_first() -> None:
    order, gates = Order(), [asyncio.Event() for _ in range(8)]
    names = ["a1", "a2", "a3", "a4", "b1", "b2", "c1", "a5"]
    async with Pool(ToyFactory(chain(3)), PoolLimits(environments=1)) as pool, asyncio.TaskGroup() as group:
        for name, gate in zip(names, gates, strict=True):
            group.create_task(lease(pool.share(name[0]), name, order, gate))
            await idle()
        assert (order, pool.waiting) == (["a1"], 7)
        for _ in gates:
            gates[names.index(order[-1])].set()
            await idle()
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2", "a4", "a5"]


async def test_a_waiter_that_gives_up_is_passed_over_and_a_cancelled_lease_comes_back() -> None:
    order, never, until = Order(), asyncio.Event(), asyncio.Event()
    async with Pool(ToyFactory(chain(3)), PoolLimits(environments=1)) as pool:
        first, second, third = (
            asyncio.create_task(lease(pool, name, order, gate)) for name, gate in zip("abc", (never, never, until), strict=True)
        )
        await idle()
        second.cancel()
        await idle()
        assert (order, pool.waiting) == (["a"], 1)
        first.cancel()
        await idle()
        assert order == ["a", "c"]
        until.set()
        await third
        assert (pool.waiting, pool.open_environments) == (0, 1)


async def test_an_environment_that_was_granted_to_a_waiter_in_the_moment_it_gave_up_goes_to_the_next() -> None:
    order, gate, never, until = Order(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    until.set()
    async with Pool(ToyFactory(chain(3)), PoolLimits(environments=1)) as pool:
        tasks = [asyncio.create_task(lease(pool, name, order, each)) for name, each in zip("abc", (gate, never, until), strict=True)]
        await idle()
        gate.set()
        while pool.waiting == 2:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0)
        tasks[1].cancel()
        await tasks[2]
        assert order == ["a", "c"] and tasks[1].cancelled()


async def test_an_environment_that_dies_while_leased_is_replaced_by_a_reset_and_never_leased_again() -> None:
    inner = ToyFactory(chain(3), faults=Faults(fail_every=1))
    async with Pool(inner, PoolLimits(environments=1)) as pool:
        async with pool.open(simulation=True) as environment:
            seen = await environment.reset(TASK)
            with pytest.raises(EnvironmentFailure):
                await environment.step(environment.actions.action("go", "on"))
            assert await environment.reset(TASK) == seen
            assert (inner.counts.opened, inner.counts.live) == (2, 1)
            with pytest.raises(EnvironmentFailure):
                await environment.step(environment.actions.action("go", "on"))
        async with pool.open(simulation=True) as other:
            await other.reset(TASK)
        assert (inner.counts.opened, pool.counts.broken, pool.open_environments) == (3, 2, 1)


async def test_a_step_that_was_cancelled_half_way_spoils_the_environment() -> None:
    wait = asyncio.Event()
    inner = ToyFactory(chain(3), latency=wait.wait)
    async with Pool(inner, PoolLimits(environments=1)) as pool:
        async with pool.open(simulation=True) as environment:
            await environment.reset(TASK)
            step = asyncio.create_task(environment.step(environment.actions.action("go", "on")))
            await idle()
            step.cancel()
            await idle()
        assert (inner.counts.live, pool.counts.broken) == (0, 1)


async def test_environments_are_let_go_after_their_uses() -> None:
    inner = ToyFactory(chain(3))
    async with Pool(inner, PoolLimits(environments=1, uses=2)) as pool:
        for _ in range(5):
            async with pool.open(simulation=True):
                pass
        assert (inner.counts.opened, pool.counts.recycled) == (3, 2)


async def test_spares_are_open_before_they_are_needed() -> None:
    inner = ToyFactory(chain(3))
    async with Pool(inner, PoolLimits(environments=3, spares=2)) as pool:
        await idle()
        assert (inner.counts.live, pool.counts.leases) == (2, 0)
        async with pool.open(simulation=True):
            await idle()
            assert (inner.counts.live, pool.counts.reused) == (3, 1)
    assert inner.counts.live == 0


async def test_a_live_environment_is_not_one_that_was_used_for_trying_things_out() -> None:
    inner = ToyFactory(chain(3))
    async with Pool(inner, PoolLimits(environments=1)) as pool:
        for simulation in (True, False, False):
            async with pool.open(simulation=simulation):
                pass
        assert (inner.counts.opened, pool.counts.reused, inner.counts.most_live) == (2, 1, 1)


class Weighed(ToyFactory):
    bytes = 7


async def test_forks_are_leased_like_other_environments_and_let_go_after_it() -> None:
    inner = Weighed(form(3))
    async with Pool(inner, PoolLimits(environments=2)) as pool:
        environments = pool.share("tree")
        assert isinstance(environments, ForkableFactory) and environments.bytes == 7, "what a journal says that snapshots take"
        async with environments.open(simulation=True) as environment:
            await environment.reset(toy_task("form"))
            snapshot = await environment.snapshot()
            assert environments.has(snapshot)
            async with environments.fork(snapshot, simulation=True) as branch:
                assert (await branch.snapshot()).fingerprint == snapshot.fingerprint
                third = asyncio.create_task(lease(environments, "third", Order(), asyncio.Event()))
                await idle()
                assert pool.waiting == 1
                third.cancel()
            assert inner.counts.live == 1
        environments.drop(snapshot)
        assert not environments.has(snapshot)


@pytest.mark.parametrize(
    ("limits", "each", "most"),
    [
        (PoolLimits(memory=100), ResourceUsage(memory=30), 3),
        (PoolLimits(processes=10), ResourceUsage(processes=4), 2),
        (PoolLimits(memory=10), ResourceUsage(memory=30), 1),
    ],
)
async def test_no_environment_is_opened_for_which_there_is_no_space(limits: PoolLimits, each: ResourceUsage, most: int) -> None:
    inner, order, until = ToyFactory(chain(3)), Order(), asyncio.Event()

    def gauge() -> ResourceUsage:
        return ResourceUsage(inner.counts.live * each.memory, inner.counts.live * each.processes)

    async with Pool(inner, limits, gauge=gauge, pause=0.0) as pool:
        tasks = []
        for i in range(4):
            tasks.append(asyncio.create_task(lease(pool, str(i), order, until)))
            await idle()
        assert (len(order), pool.waiting) == (most, 4 - most)
        until.set()
        await asyncio.gather(*tasks)
    assert (inner.counts.most_live, len(order)) == (most, 4)


async def test_no_lease_begins_while_the_processors_are_busy() -> None:
    now, spent, order, until = [0.0], [0.0], Order(), asyncio.Event()

    def clock() -> float:
        now[0] += 1.0
        spent[0] += busy[0]
        return now[0]

    busy = [1.5]
    async with Pool(
        ToyFactory(chain(3)), PoolLimits(processors=1.0), gauge=lambda: ResourceUsage(processor=spent[0]), clock=clock, pause=0.0
    ) as pool:
        tasks = [asyncio.create_task(lease(pool, str(i), order, until)) for i in range(3)]
        await idle()
        waited = pool.waiting
        busy[0] = 0.5
        async with asyncio.timeout(10):
            while pool.waiting:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0)
        assert waited > 0
        until.set()
        await asyncio.gather(*tasks)


async def test_a_pool_that_closes_waits_for_its_leases_and_tells_who_waits() -> None:
    inner, order, until = ToyFactory(chain(3)), Order(), asyncio.Event()
    pool = await Pool(inner, PoolLimits(environments=1)).__aenter__()
    leased = asyncio.create_task(lease(pool, "leased", order, until))
    waits = asyncio.create_task(lease(pool, "waits", order, until))
    await idle()
    drained = asyncio.create_task(pool.drain())
    await idle()
    with pytest.raises(EnvironmentFailure, match="the pool is closing"):
        await waits
    with pytest.raises(EnvironmentFailure, match="the pool is closing"):
        await lease(pool, "late", order, until)
    assert not drained.done() and not leased.done()
    until.set()
    await asyncio.gather(leased, drained)
    assert (inner.counts.live, order) == (0, ["leased"])


@pytest.mark.parametrize(("outcome", "opened"), [("refused", 1), ("cancelled", 2)])
async def test_an_environment_whose_snapshot_was_cancelled_is_not_leased_again(
    monkeypatch: pytest.MonkeyPatch, outcome: str, opened: int
) -> None:
    async def snapshot(environment: ToyEnvironment) -> Snapshot:
        if outcome == "refused":
            raise EnvironmentFailure("not now")
        raise asyncio.CancelledError

    monkeypatch.setattr(ToyEnvironment, "snapshot", snapshot)
    async with Pool(inner := ToyFactory(chain(3)), PoolLimits(environments=1)) as pool:
        for _ in range(2):
            async with pool.open(simulation=True) as environment:
                with pytest.raises((EnvironmentFailure, asyncio.CancelledError)):
                    await environment.snapshot()
                assert environment._entry.broken is (outcome == "cancelled")
    assert inner.counts.opened == opened


async def test_an_environment_that_does_not_open_leaves_its_slot_to_the_next() -> None:
    class Failing(ToyFactory):
        failing = True

        def open(self, *, simulation: bool):  # type: ignore[no-untyped-def]
            if self.failing:
                raise EnvironmentFailure("no browser")
            return super().open(simulation=simulation)

    inner, until = Failing(chain(3)), asyncio.Event()
    until.set()
    async with Pool(inner, PoolLimits(environments=1, spares=1)) as pool:
        await idle()
        with pytest.raises(EnvironmentFailure, match="no browser"):
            await lease(pool, "a", Order(), until)
        inner.failing = False
        await lease(pool, "b", order := Order(), until)
        assert order == ["b"] and pool.open_environments == 1


async def test_a_lease_that_is_over_holds_nothing() -> None:
    async with Pool(ToyFactory(chain(3))) as pool:
        async with pool.open(simulation=True) as environment:
            await environment.reset(TASK)
        with pytest.raises(EnvironmentFailure, match="the lease of this environment is over"):
            await environment.reset(TASK)


async def test_a_pool_keeps_the_contract_of_the_environments_in_it() -> None:
    async with Pool(ToyFactory(form(3)), PoolLimits(environments=2)) as pool:
        found = await check(pool, toy_task("form"), quick=True)
    assert [finding for finding in found if not finding.passed] == []


def test_the_usage_of_descendants_is_reported() -> None:
    before = measure_usage()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        after = measure_usage()
        assert after.processes == before.processes + 1
        child.communicate(b"\n")


@pytest.mark.asyncio(loop_scope="session")
async def test_browsers_that_die_idle_or_leased_are_replaced(executable: str, httpserver: HTTPServer, task_at: Callable[..., Task]) -> None:
    httpserver.expect_request("/").respond_with_data("<p>Here", content_type="text/html")
    mine = set(_descendants(Path("/proc"), os.getpid()))

    def browsers() -> list[int]:
        ours = set(_descendants(Path("/proc"), os.getpid())) - mine
        return [id for id in ours if "remote-debugging" in Path(f"/proc/{id}/cmdline").read_text()]

    def kill() -> None:
        for id in browsers():
            os.kill(id, signal.SIGKILL)

    async with Pool(OwnBrowsers(), PoolLimits(environments=1, spares=1)) as pool:
        async with pool.open(simulation=True) as environment:
            seen = await environment.reset(task_at())
            assert browsers()
            kill()
            with pytest.raises(EnvironmentFailure):
                await environment.step(environment.actions.parse("wait"))
            assert await environment.reset(task_at()) == seen
        kill()
        async with pool.open(simulation=True) as environment:
            assert await environment.reset(task_at()) == seen
        assert (pool.counts.broken, pool.open_environments) == (2, 1)
    assert not browsers()


async def test_an_error_names_the_class_of_the_leased_environment() -> None:
    async with Pool(ToyFactory(chain()), PoolLimits(environments=1)) as pool, pool.open(simulation=False) as leased:
        assert name_of(leased) == name_of(BacktrackingEnvironment(leased)) == "ToyEnvironment"
