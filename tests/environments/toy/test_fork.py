"""Branches of toy environments: `fork`, what is counted, and what is waited for."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.check import check
from exact.environments.toy.factory import Faults, ToyEnvironment, ToyFactory, chain, doors, form, maze, toy_task, trapped_maze
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Outcome

TASK = toy_task("chain")


async def go(environment: ToyEnvironment, *names: str) -> Observation | None:
    seen = None
    for name in names:
        seen = (await environment.step(environment.actions.action("go", name))).observation
    return seen


async def test_a_fork_is_at_the_state_of_its_snapshot_and_independent_of_its_parent() -> None:
    environments = ToyFactory(chain(4))
    async with environments.open(simulation=False) as live:
        await live.reset(TASK)
        await go(live, "on")
        snapshot = await live.snapshot()
        async with environments.fork(snapshot, simulation=True) as one, environments.fork(snapshot, simulation=True) as other:
            assert (await one.snapshot()).fingerprint == snapshot.fingerprint
            await go(one, "off")
            assert "Step 2" in (await go(other, "on") or pytest.fail()).text
        assert "Step 2" in (await go(live, "on") or pytest.fail()).text


@given(st.lists(st.sampled_from(["toggle A", "toggle B", "toggle C"]), max_size=8), st.data())
async def test_a_path_split_among_forks_ends_where_the_whole_one_does(path: list[str], data: st.DataObject) -> None:
    environments, cut = ToyFactory(form(3)), data.draw(st.integers(0, len(path)))
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as whole:
        await one.reset(TASK)
        await whole.reset(TASK)
        await go(one, *path[:cut])
        async with environments.fork(await one.snapshot(), simulation=True) as branch:
            await go(one, "toggle A")
            await go(branch, *path[cut:])
            await go(whole, *path)
            assert (await branch.snapshot()).fingerprint == (await whole.snapshot()).fingerprint


async def test_a_snapshot_outlives_its_environment_until_it_is_dropped() -> None:
    environments = ToyFactory(chain(2))
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await environment.snapshot()
    assert environments.has(snapshot)
    async with environments.fork(snapshot, simulation=False) as promoted:
        await go(promoted, "on", "on")
        assert (await promoted.evaluate(Outcome(actions=()))).success
        own = await environments.open(simulation=True).__aenter__()
        await own.reset(TASK)
        mine = await own.snapshot()
    environments.drop(mine)
    environments.drop(snapshot)
    assert not environments.has(snapshot)
    with pytest.raises(EnvironmentFailure, match="dropped"):
        async with environments.fork(snapshot, simulation=True):
            pass
    with pytest.raises(EnvironmentFailure, match="gone"):
        await own.restore(mine)
    await own.close()


async def test_a_fork_has_no_snapshots_of_its_own_yet_and_its_ids_are_its_own() -> None:
    environments = ToyFactory(chain(3))
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await environment.snapshot()
        async with environments.fork(snapshot, simulation=True) as branch:
            with pytest.raises(EnvironmentFailure, match="gone"):
                await branch.restore(snapshot)
            assert len({snapshot.id, (await environment.snapshot()).id, (await branch.snapshot()).id}) == 3


async def test_an_environment_that_broke_is_forked_from_before() -> None:
    environments = ToyFactory(chain(4), faults=Faults(fail_every=2))
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        await go(environment, "on")
        snapshot = await environment.snapshot()
        with pytest.raises(EnvironmentFailure, match="step 2"):
            await go(environment, "on")
        async with environments.fork(snapshot, simulation=True) as branch:
            assert "Step 2" in (await go(branch, "on") or pytest.fail()).text


async def test_forks_that_are_tries_hold_writes_and_a_promoted_one_does_them() -> None:
    environments = ToyFactory(doors(1, seed=0))
    async with environments.open(simulation=True) as environment:
        assert not environment.capabilities.isolated
        before = await environment.reset(TASK)
        moved = await environment.step(environment.actions.parse('go "left"'))
        assert ([effect.is_blocked for effect in moved.effects], moved.observation) == ([True], before)
        async with environments.fork(await environment.snapshot(), simulation=False) as promoted:
            moved = await promoted.step(promoted.actions.parse('go "left"'))
    assert [effect.is_write for effect in moved.effects] == [True]
    assert environments.counts.writes == ['room 0: go "left"']


async def test_open_environments_and_their_steps_are_counted() -> None:
    environments = ToyFactory(chain(4))
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await environment.snapshot()
        async with environments.fork(snapshot, simulation=True), environments.fork(snapshot, simulation=True):
            assert environments.counts.live == 3
        await go(environment, "on")
        await environment.restore(snapshot)
    async with environments.fork(snapshot, simulation=True):
        assert environments.counts.live == 1
    counts = environments.counts
    done = (counts.opened, counts.closed, counts.forks, counts.snapshots, counts.resets, counts.restores, counts.steps)
    assert (*done, counts.most_live, counts.live) == (4, 4, 3, 1, 1, 1, 1, 3, 0)


async def test_each_operation_is_waited_for_before_its_effect() -> None:
    waited: list[str] = []

    async def wait(operation: str) -> None:
        waited.append(operation)

    environments = ToyFactory(chain(4), wait=wait)
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        await go(environment, "on")
        snapshot = await environment.snapshot()
        await environment.restore(snapshot)
        async with environments.fork(snapshot, simulation=True) as branch:
            await branch.evaluate(Outcome(actions=()))
    assert waited == ["reset", "step", "snapshot", "restore", "fork", "evaluate"]


async def test_a_step_cancelled_while_it_waits_has_no_effect() -> None:
    entered = asyncio.Event()

    async def wait(operation: str) -> None:
        if operation == "step" and not entered.is_set():
            entered.set()
            await asyncio.Event().wait()

    async with ToyFactory(chain(3), wait=wait).open(simulation=True) as environment:
        await environment.reset(TASK)
        step = asyncio.create_task(go(environment, "on"))
        await entered.wait()
        step.cancel()
        await asyncio.wait([step])
        assert "Step 1" in (await go(environment, "on") or pytest.fail()).text


async def test_an_environment_without_snapshots_cannot_be_forked() -> None:
    environments, other = ToyFactory(chain(3), fidelity="replay"), ToyFactory(chain(3))
    async with other.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await environment.snapshot()
    with pytest.raises(EnvironmentFailure, match="not of these environments"):
        async with environments.fork(snapshot, simulation=True):
            pass


@pytest.mark.parametrize("environment", [trapped_maze(seed=1), maze(4, 4), doors(2)], ids=lambda environment: environment.name)
async def test_new_environments_keep_the_contract(environment: object) -> None:
    found = await check(ToyFactory(environment), toy_task("form"), quick=True)  # type: ignore[arg-type]
    assert [finding for finding in found if not finding.passed] == []
