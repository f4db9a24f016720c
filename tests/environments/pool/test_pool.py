"""Many trees share a pool of worlds: toy ones, and one of a real browser."""

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
from exact.environments.base import Environment, Forks, Snapshot, Worlds
from exact.environments.browser import BrowserWorlds, PageSetup, launch
from exact.environments.check import check
from exact.environments.pool.pool import Pool
from exact.environments.pool.slot import PoolLimits
from exact.environments.pool.usage import Usage, _descendants, usage
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import Faults, ToyWorlds, chain, form, toy_task
from exact.errors import EnvironmentError_
from exact.task import Task

TASK = toy_task("chain")
Order = list[str]


async def idle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def lease(worlds: Worlds, name: str, order: Order, until: asyncio.Event, *, speculative: bool = True) -> None:
    async with worlds.open(speculative=speculative) as world:
        order.append(name)
        await world.reset(TASK)
        await until.wait()


@asynccontextmanager
async def own_browser(speculative: bool) -> AsyncIterator[Environment]:
    """A browser for each world, so that one can die alone."""
    config = BrowserConfig(screenshots=False)
    async with launch(config) as browser, BrowserWorlds(browser, PageSetup(), config, sealed=True).open(speculative=speculative) as world:
        yield world


class OwnBrowsers:
    def open(self, *, speculative: bool) -> AbstractAsyncContextManager[Environment]:
        return own_browser(speculative)


async def test_no_more_worlds_are_open_than_are_admitted_and_all_are_served() -> None:
    inner, order, until = ToyWorlds(chain(3)), Order(), asyncio.Event()
    async with Pool(inner, PoolLimits(worlds=3)) as pool:
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
    async with Pool(ToyWorlds(chain(3)), PoolLimits(worlds=1)) as pool, asyncio.TaskGroup() as group:
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
    async with Pool(ToyWorlds(chain(3)), PoolLimits(worlds=1)) as pool:
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
        assert (pool.waiting, pool.open_worlds) == (0, 1)


async def test_a_world_that_was_granted_to_a_waiter_in_the_moment_it_gave_up_goes_to_the_next() -> None:
    order, gate, never, until = Order(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    until.set()
    async with Pool(ToyWorlds(chain(3)), PoolLimits(worlds=1)) as pool:
        tasks = [asyncio.create_task(lease(pool, name, order, each)) for name, each in zip("abc", (gate, never, until), strict=True)]
        await idle()
        gate.set()
        while pool.waiting == 2:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0)
        tasks[1].cancel()
        await tasks[2]
        assert order == ["a", "c"] and tasks[1].cancelled()


async def test_a_world_that_dies_while_leased_is_replaced_by_a_reset_and_never_leased_again() -> None:
    inner = ToyWorlds(chain(3), faults=Faults(fail_every=1))
    async with Pool(inner, PoolLimits(worlds=1)) as pool:
        async with pool.open(speculative=True) as world:
            seen = await world.reset(TASK)
            with pytest.raises(EnvironmentError_):
                await world.step(world.actions.action("go", "on"))
            assert await world.reset(TASK) == seen
            assert (inner.counts.opened, inner.counts.live) == (2, 1)
            with pytest.raises(EnvironmentError_):
                await world.step(world.actions.action("go", "on"))
        async with pool.open(speculative=True) as other:
            await other.reset(TASK)
        assert (inner.counts.opened, pool.counts.broken, pool.open_worlds) == (3, 2, 1)


async def test_a_step_that_was_cancelled_half_way_spoils_the_world() -> None:
    wait = asyncio.Event()
    inner = ToyWorlds(chain(3), latency=wait.wait)
    async with Pool(inner, PoolLimits(worlds=1)) as pool:
        async with pool.open(speculative=True) as world:
            await world.reset(TASK)
            step = asyncio.create_task(world.step(world.actions.action("go", "on")))
            await idle()
            step.cancel()
            await idle()
        assert (inner.counts.live, pool.counts.broken) == (0, 1)


async def test_worlds_are_let_go_after_their_uses() -> None:
    inner = ToyWorlds(chain(3))
    async with Pool(inner, PoolLimits(worlds=1, uses=2)) as pool:
        for _ in range(5):
            async with pool.open(speculative=True):
                pass
        assert (inner.counts.opened, pool.counts.recycled) == (3, 2)


async def test_spares_are_open_before_they_are_needed() -> None:
    inner = ToyWorlds(chain(3))
    async with Pool(inner, PoolLimits(worlds=3, spares=2)) as pool:
        await idle()
        assert (inner.counts.live, pool.counts.leases) == (2, 0)
        async with pool.open(speculative=True):
            await idle()
            assert (inner.counts.live, pool.counts.reused) == (3, 1)
    assert inner.counts.live == 0


async def test_a_live_world_is_not_one_that_was_used_for_trying_things_out() -> None:
    inner = ToyWorlds(chain(3))
    async with Pool(inner, PoolLimits(worlds=1)) as pool:
        for speculative in (True, False, False):
            async with pool.open(speculative=speculative):
                pass
        assert (inner.counts.opened, pool.counts.reused, inner.counts.most_live) == (2, 1, 1)


class Weighed(ToyWorlds):
    bytes = 7


async def test_branches_are_leased_like_other_worlds_and_let_go_after_it() -> None:
    inner = Weighed(form(3))
    async with Pool(inner, PoolLimits(worlds=2)) as pool:
        worlds = pool.share("tree")
        assert isinstance(worlds, Forks) and worlds.bytes == 7, "what a journal says that snapshots take"
        async with worlds.open(speculative=True) as world:
            await world.reset(toy_task("form"))
            snapshot = await world.snapshot()
            assert worlds.has(snapshot)
            async with worlds.fork(snapshot, speculative=True) as branch:
                assert (await branch.snapshot()).fingerprint == snapshot.fingerprint
                third = asyncio.create_task(lease(worlds, "third", Order(), asyncio.Event()))
                await idle()
                assert pool.waiting == 1
                third.cancel()
            assert inner.counts.live == 1
        worlds.drop(snapshot)
        assert not worlds.has(snapshot)


@pytest.mark.parametrize(
    ("limits", "each", "most"),
    [
        (PoolLimits(memory=100), Usage(memory=30), 3),
        (PoolLimits(processes=10), Usage(processes=4), 2),
        (PoolLimits(memory=10), Usage(memory=30), 1),
    ],
)
async def test_no_world_is_opened_for_which_there_is_no_room(limits: PoolLimits, each: Usage, most: int) -> None:
    inner, order, until = ToyWorlds(chain(3)), Order(), asyncio.Event()

    def gauge() -> Usage:
        return Usage(inner.counts.live * each.memory, inner.counts.live * each.processes)

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
        ToyWorlds(chain(3)), PoolLimits(processors=1.0), gauge=lambda: Usage(processor=spent[0]), clock=clock, pause=0.0
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
    inner, order, until = ToyWorlds(chain(3)), Order(), asyncio.Event()
    pool = await Pool(inner, PoolLimits(worlds=1)).__aenter__()
    leased = asyncio.create_task(lease(pool, "leased", order, until))
    waits = asyncio.create_task(lease(pool, "waits", order, until))
    await idle()
    drained = asyncio.create_task(pool.drain())
    await idle()
    with pytest.raises(EnvironmentError_, match="the pool is closing"):
        await waits
    with pytest.raises(EnvironmentError_, match="the pool is closing"):
        await lease(pool, "late", order, until)
    assert not drained.done() and not leased.done()
    until.set()
    await asyncio.gather(leased, drained)
    assert (inner.counts.live, order) == (0, ["leased"])


@pytest.mark.parametrize(("outcome", "opened"), [("refused", 1), ("cancelled", 2)])
async def test_a_world_whose_snapshot_was_cancelled_is_not_leased_again(monkeypatch: pytest.MonkeyPatch, outcome: str, opened: int) -> None:
    async def snapshot(world: ToyEnvironment) -> Snapshot:
        if outcome == "refused":
            raise EnvironmentError_("not now")
        raise asyncio.CancelledError

    monkeypatch.setattr(ToyEnvironment, "snapshot", snapshot)
    async with Pool(inner := ToyWorlds(chain(3)), PoolLimits(worlds=1)) as pool:
        for _ in range(2):
            async with pool.open(speculative=True) as world:
                with pytest.raises((EnvironmentError_, asyncio.CancelledError)):
                    await world.snapshot()
                assert world._slot.broken is (outcome == "cancelled")
    assert inner.counts.opened == opened


async def test_a_world_that_does_not_open_leaves_its_place_to_the_next() -> None:
    class Failing(ToyWorlds):
        failing = True

        def open(self, *, speculative: bool):  # type: ignore[no-untyped-def]
            if self.failing:
                raise EnvironmentError_("no browser")
            return super().open(speculative=speculative)

    inner, until = Failing(chain(3)), asyncio.Event()
    until.set()
    async with Pool(inner, PoolLimits(worlds=1, spares=1)) as pool:
        await idle()
        with pytest.raises(EnvironmentError_, match="no browser"):
            await lease(pool, "a", Order(), until)
        inner.failing = False
        await lease(pool, "b", order := Order(), until)
        assert order == ["b"] and pool.open_worlds == 1


async def test_a_lease_that_is_over_holds_nothing() -> None:
    async with Pool(ToyWorlds(chain(3))) as pool:
        async with pool.open(speculative=True) as world:
            await world.reset(TASK)
        with pytest.raises(EnvironmentError_, match="the lease of this world is over"):
            await world.reset(TASK)


async def test_a_pool_keeps_the_contract_of_the_worlds_in_it() -> None:
    async with Pool(ToyWorlds(form(3)), PoolLimits(worlds=2)) as pool:
        found = await check(pool, toy_task("form"), quick=True)
    assert [finding for finding in found if not finding.passed] == []


def test_what_descendants_use_is_told() -> None:
    before = usage()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        after = usage()
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

    async with Pool(OwnBrowsers(), PoolLimits(worlds=1, spares=1)) as pool:
        async with pool.open(speculative=True) as world:
            seen = await world.reset(task_at())
            assert browsers()
            kill()
            with pytest.raises(EnvironmentError_):
                await world.step(world.actions.parse("wait"))
            assert await world.reset(task_at()) == seen
        kill()
        async with pool.open(speculative=True) as world:
            assert await world.reset(task_at()) == seen
        assert (pool.counts.broken, pool.open_worlds) == (2, 1)
    assert not browsers()
