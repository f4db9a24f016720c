"""Environments that know nothing of snapshots, in sandboxes that do."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exact.environments.check import CHECKS, check
from exact.environments.process.worker import Factory, Limits
from exact.environments.sandbox import find_runsc
from exact.environments.sandbox.factory import SandboxedWorker, SandboxedWorlds, sandboxed_worlds
from exact.environments.toy.factory import toy_task
from exact.errors import ActionError, EnvironmentError_
from exact.task import Outcome, Task

ROOT = Path(__file__).parents[3]
PROCESS = Path(__file__).parents[1] / "process"
LIGHTS = ROOT / "examples" / "own_environment" / "lights.py"
COUNTER = Factory(f"{PROCESS / 'foreign.py'}:Counter")
TASK = Task(id="count?seed=1", instruction="Count.", seed=1)


@pytest.fixture(autouse=True)
def runsc() -> None:
    try:
        find_runsc()
    except EnvironmentError_ as error:
        pytest.skip(str(error))


@asynccontextmanager
async def counting(**how: object) -> AsyncIterator[tuple[SandboxedWorlds, SandboxedWorker]]:
    """Worlds of the counter, and one that was reset."""
    async with sandboxed_worlds(COUNTER, **how) as worlds, worlds.open(speculative=True) as world:  # type: ignore[arg-type]
        await world.reset(TASK)
        yield worlds, world


async def add(world: SandboxedWorker, number: int = 0) -> str:
    """What the count is then."""
    seen = (await world.step(world.actions.parse(f"add {number}"))).observation
    assert seen is not None
    return seen.text.split('"')[1]


async def test_branches_of_a_snapshot_go_on_from_it_and_know_nothing_of_each_other() -> None:
    async with counting() as (worlds, world):
        await add(world, 1)
        taken = await world.snapshot()
        assert (await add(world, 10), taken.fidelity) == ("12", "world")
        async with worlds.fork(taken, speculative=True) as left, worlds.fork(taken, speculative=True) as right:
            assert left.observation.fingerprint == taken.fingerprint
            assert (await add(left, 1), await add(right, 2), await add(left), await add(world)) == ("3", "4", "3", "12")
            nested = await right.snapshot()
        async with worlds.fork(nested, speculative=True) as below:
            assert await add(below) == "4"


async def test_a_restore_shows_what_was_seen_and_its_fingerprint() -> None:
    async with counting() as (_, world):
        taken = await world.snapshot()
        await add(world, 5)
        back = await world.restore(taken)
        assert back.text == '[1] StaticText "1"' and back.fingerprint == taken.fingerprint
        assert await add(world) == "1"


async def test_an_environment_that_can_observe_is_asked_after_a_restore() -> None:
    async with sandboxed_worlds(Factory(f"{PROCESS / 'foreign.py'}:Observing")) as worlds, worlds.open(speculative=True) as world:
        await world.reset(TASK)
        assert (await world.restore(await world.snapshot())).text == "observed 1"


@pytest.mark.parametrize(
    ("name", "names"),
    [("lights:Lights", CHECKS), ("toys:without_snapshots", ("resets alike", "repeats", "branches are independent", "errors are typed"))],
)
async def test_a_world_without_snapshots_of_its_own_passes_every_check(name: str, names: Iterable[str]) -> None:
    factory = Factory(name, paths=(PROCESS / "guests", LIGHTS.parent, ROOT))
    async with sandboxed_worlds(factory) as worlds:
        found = await check(worlds, toy_task("form"), quick=True, names=names)
    assert [finding for finding in found if not finding.passed or finding.skipped] == []


async def test_what_a_step_writes_is_gone_with_its_branch_and_after_a_reset() -> None:
    async with sandboxed_worlds(Factory(f"{PROCESS / 'foreign.py'}:Writing")) as worlds, worlds.open(speculative=True) as world:
        await world.reset(TASK)
        taken = await world.snapshot()
        assert await add(world, 7) == "7 lines"
        async with worlds.fork(taken, speculative=True) as other:
            assert await add(other, 0) == "1 lines"
        await world.reset(TASK)
        assert await add(world, 0) == "1 lines"


async def test_no_snapshot_before_the_first_reset_after_the_end_nor_of_an_unknown_state() -> None:
    async with sandboxed_worlds(Factory(f"{LIGHTS}:Lights", {"lamps": 2})) as worlds, worlds.open(speculative=True) as world:
        with pytest.raises(EnvironmentError_, match="reset it first"):
            await world.snapshot()
        await world.reset(TASK)
        with pytest.raises(ActionError):
            await world.step(world.actions.action("press", "7"))
        await world.snapshot()
        assert (await world.step(world.actions.action("press", "0"))).terminated
        with pytest.raises(EnvironmentError_, match="no episode is under way"):
            await world.snapshot()
        assert (await world.evaluate(Outcome(actions=()))).success


async def test_a_guest_killed_in_mid_step_breaks_its_world_only_and_a_reset_mends_it() -> None:
    async with counting() as (worlds, world):
        taken = await world.snapshot()
        async with worlds.fork(taken, speculative=True) as other:
            with pytest.raises(EnvironmentError_, match="the guest was lost: step failed"):
                await world.step(world.actions.action("do", "kill"))
            assert await add(other, 1) == "2"
        await world.reset(TASK)
        assert await add(world, 1) == "2"


async def test_a_runsc_that_is_killed_breaks_its_world_and_a_restore_mends_it() -> None:
    async with counting() as (_, world):
        taken = await world.snapshot()
        assert world.pid is not None
        os.kill(world.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentError_, match="the guest was lost"):
            async with asyncio.timeout(30):
                while True:  # the sandbox is a process of its own and dies a little later: until then it may answer
                    await add(world)
        assert (await world.restore(taken)).text == '[1] StaticText "1"'


async def test_a_hung_step_is_killed_after_its_time_and_the_sandbox_with_it() -> None:
    async with counting(limits=Limits(step=0.3)) as (_, world):
        pid = world.pid
        with pytest.raises(EnvironmentError_, match=r"step did not end within 0\.3 s"):
            await world.step(world.actions.action("do", "hang"))
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def pause(world: SandboxedWorker) -> None:
    """Until it is paused."""
    async with asyncio.timeout(30):
        while not world.paused:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)


async def test_a_world_that_nobody_uses_is_paused_and_goes_on_when_asked() -> None:
    async with counting(idle=0.0) as (_, world):
        await pause(world)
        assert await add(world, 1) == "2"
        await pause(world)
        taken = await world.snapshot()
        assert (await world.restore(taken)).text == '[1] StaticText "2"'


async def test_a_snapshot_that_was_dropped_or_is_of_other_worlds_is_refused() -> None:
    async with counting() as (worlds, world):
        taken = await world.snapshot()
        async with counting() as (others, other):
            assert not others.has(taken) and not worlds.has(await other.snapshot())
        assert worlds.has(taken)
        worlds.drop(taken)
        assert not worlds.has(taken)
        with pytest.raises(EnvironmentError_, match="is gone"):
            await world.restore(taken)
        assert await add(world, 1) == "2"


async def test_images_give_way_to_others_and_the_first_guest_stays() -> None:
    async with counting(limit=1) as (worlds, world):
        first, second = await world.snapshot(), await world.snapshot()
        assert not worlds.has(first) and worlds.has(second)
        with pytest.raises(EnvironmentError_, match="is gone"):
            await world.restore(first)
        await world.reset(TASK)
        assert await add(world) == "1"


async def test_a_factory_that_fails_is_said_and_the_next_try_begins_anew() -> None:
    async with sandboxed_worlds(Factory(f"{PROCESS / 'foreign.py'}:broken")) as worlds:
        for _ in range(2):
            with pytest.raises(EnvironmentError_, match="ValueError: no such shop"):
                async with worlds.open(speculative=True):
                    pass
        assert worlds.bytes == 0


async def test_an_interpreter_that_does_not_run_is_said(tmp_path: Path) -> None:
    for python, why in ((tmp_path / "none", "cannot be started"), (Path("/bin/false"), "does not run")):
        with pytest.raises(EnvironmentError_, match=why):
            async with sandboxed_worlds(Factory("a:b", python=python)):
                pass


async def test_prints_of_the_environment_go_to_the_log_also_after_a_restore(tmp_path: Path) -> None:
    async with counting(log=tmp_path / "guest.log") as (_, world):
        taken = await world.snapshot()
        for _ in range(2):
            await world.step(world.actions.action("do", "noise"))
            await world.restore(taken)
    assert (tmp_path / "guest.log").read_text().count("noise from print") == 2
