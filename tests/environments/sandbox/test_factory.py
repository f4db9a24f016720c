"""Environments that know nothing of snapshots, in sandboxes that do."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exact.environments.check import CHECKS, check
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts
from exact.environments.sandbox.factory import SandboxedFactory, SandboxedWorker, sandboxed_factory
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.toy.factory import toy_task
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Outcome, Task

ROOT = Path(__file__).parents[3]
PROCESS = Path(__file__).parents[1] / "process"
LIGHTS = ROOT / "examples" / "own_environment" / "lights.py"
COUNTER = EnvironmentSpec(f"{PROCESS / 'foreign.py'}:Counter")
TASK = Task(id="count?seed=1", instruction="Count.", seed=1)


@pytest.fixture(autouse=True)
def runsc() -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@asynccontextmanager
async def counting(**how: object) -> AsyncIterator[tuple[SandboxedFactory, SandboxedWorker]]:
    """Environments of the counter, and one that was reset."""
    async with sandboxed_factory(COUNTER, **how) as environments, environments.open(simulation=True) as environment:  # type: ignore[arg-type]
        await environment.reset(TASK)
        yield environments, environment


async def add(environment: SandboxedWorker, number: int = 0) -> str:
    """Add one, and return the count."""
    seen = (await environment.step(environment.actions.parse(f"add {number}"))).observation
    assert seen is not None
    return seen.text.split('"')[1]


async def test_forks_of_a_snapshot_continue_from_it_and_know_nothing_of_each_other() -> None:
    async with counting() as (environments, environment):
        await add(environment, 1)
        taken = await environment.snapshot()
        assert (await add(environment, 10), taken.fidelity) == ("12", "full")
        async with environments.fork(taken, simulation=True) as left, environments.fork(taken, simulation=True) as right:
            assert left.observation.fingerprint == taken.fingerprint
            assert (await add(left, 1), await add(right, 2), await add(left), await add(environment)) == ("3", "4", "3", "12")
            nested = await right.snapshot()
        async with environments.fork(nested, simulation=True) as below:
            assert await add(below) == "4"


async def test_a_restore_shows_what_was_seen_and_its_fingerprint() -> None:
    async with counting() as (_, environment):
        taken = await environment.snapshot()
        await add(environment, 5)
        back = await environment.restore(taken)
        assert back.text == '[1] StaticText "1"' and back.fingerprint == taken.fingerprint
        assert await add(environment) == "1"


async def test_an_environment_that_can_observe_is_asked_after_a_restore() -> None:
    async with (
        sandboxed_factory(EnvironmentSpec(f"{PROCESS / 'foreign.py'}:Observing")) as environments,
        environments.open(simulation=True) as environment,
    ):
        await environment.reset(TASK)
        assert (await environment.restore(await environment.snapshot())).text == "observed 1"


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("lights:Lights", CHECKS),
        ("toys:without_snapshots", ("resets alike", "repeats", "environments are independent", "errors are typed")),
    ],
)
async def test_an_environment_without_snapshots_of_its_own_passes_every_check(name: str, names: Iterable[str]) -> None:
    factory = EnvironmentSpec(name, paths=(PROCESS / "guests", LIGHTS.parent, ROOT))
    async with sandboxed_factory(factory) as environments:
        found = await check(environments, toy_task("form"), quick=True, names=names)
    assert [finding for finding in found if not finding.passed or finding.skipped] == []


async def test_writes_of_a_step_end_with_its_fork_and_with_a_reset() -> None:
    async with (
        sandboxed_factory(EnvironmentSpec(f"{PROCESS / 'foreign.py'}:Writing")) as environments,
        environments.open(simulation=True) as environment,
    ):
        await environment.reset(TASK)
        taken = await environment.snapshot()
        assert await add(environment, 7) == "7 lines"
        async with environments.fork(taken, simulation=True) as other:
            assert await add(other, 0) == "1 lines"
        await environment.reset(TASK)
        assert await add(environment, 0) == "1 lines"


async def test_no_snapshot_before_the_first_reset_after_the_end_nor_of_an_unknown_state() -> None:
    async with (
        sandboxed_factory(EnvironmentSpec(f"{LIGHTS}:Lights", {"lamps": 2})) as environments,
        environments.open(simulation=True) as environment,
    ):
        with pytest.raises(EnvironmentFailure, match="reset it first"):
            await environment.snapshot()
        await environment.reset(TASK)
        with pytest.raises(ActionError):
            await environment.step(environment.actions.action("press", "7"))
        await environment.snapshot()
        assert (await environment.step(environment.actions.action("press", "0"))).terminated
        with pytest.raises(EnvironmentFailure, match="no episode is in progress"):
            await environment.snapshot()
        assert (await environment.evaluate(Outcome(actions=()))).success


async def test_a_guest_killed_in_mid_step_breaks_its_environment_only_and_a_reset_repairs_it() -> None:
    async with counting() as (environments, environment):
        taken = await environment.snapshot()
        async with environments.fork(taken, simulation=True) as other:
            with pytest.raises(EnvironmentFailure, match="the guest was lost: step failed"):
                await environment.step(environment.actions.action("do", "kill"))
            assert await add(other, 1) == "2"
        await environment.reset(TASK)
        assert await add(environment, 1) == "2"


async def test_a_killed_runsc_breaks_its_environment_and_a_restore_repairs_it() -> None:
    async with counting() as (_, environment):
        taken = await environment.snapshot()
        assert environment.pid is not None
        os.kill(environment.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentFailure, match="the guest was lost"):
            async with asyncio.timeout(30):
                while True:  # the sandbox is a process of its own and dies a little later: until then it may answer
                    await add(environment)
        assert (await environment.restore(taken)).text == '[1] StaticText "1"'


async def test_a_hung_step_is_killed_after_its_time_and_the_sandbox_with_it() -> None:
    async with counting(timeouts=GuestTimeouts(step=0.3)) as (_, environment):
        pid = environment.pid
        with pytest.raises(EnvironmentFailure, match=r"step did not end within 0\.3 s"):
            await environment.step(environment.actions.action("do", "hang"))
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def pause(environment: SandboxedWorker) -> None:
    """Wait until the sandbox is paused."""
    async with asyncio.timeout(30):
        while not environment.paused:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)


async def test_an_environment_that_is_idle_is_paused_and_continues_when_asked() -> None:
    async with counting(idle=0.0) as (_, environment):
        await pause(environment)
        assert await add(environment, 1) == "2"
        await pause(environment)
        taken = await environment.snapshot()
        assert (await environment.restore(taken)).text == '[1] StaticText "2"'


async def test_a_snapshot_that_was_dropped_or_is_of_other_environments_is_refused() -> None:
    async with counting() as (environments, environment):
        taken = await environment.snapshot()
        async with counting() as (others, other):
            assert not others.has(taken) and not environments.has(await other.snapshot())
        assert environments.has(taken)
        environments.drop(taken)
        assert not environments.has(taken)
        with pytest.raises(EnvironmentFailure, match="is gone"):
            await environment.restore(taken)
        assert await add(environment, 1) == "2"


async def test_images_give_way_to_others_and_the_first_guest_stays() -> None:
    async with counting(limit=1) as (environments, environment):
        first, second = await environment.snapshot(), await environment.snapshot()
        assert not environments.has(first) and environments.has(second)
        with pytest.raises(EnvironmentFailure, match="is gone"):
            await environment.restore(first)
        await environment.reset(TASK)
        assert await add(environment) == "1"


async def test_a_factory_that_fails_is_said_and_the_next_try_begins_anew() -> None:
    async with sandboxed_factory(EnvironmentSpec(f"{PROCESS / 'foreign.py'}:broken")) as environments:
        for _ in range(2):
            with pytest.raises(EnvironmentFailure, match="ValueError: no such shop"):
                async with environments.open(simulation=True):
                    pass
        assert environments.bytes == 0


async def test_an_interpreter_that_does_not_run_is_said(tmp_path: Path) -> None:
    for python, why in ((tmp_path / "none", "cannot be started"), (Path("/bin/false"), "does not run")):
        with pytest.raises(EnvironmentFailure, match=why):
            async with sandboxed_factory(EnvironmentSpec("a:b", python=python)):
                pass


async def test_prints_of_the_environment_go_to_the_log_also_after_a_restore(tmp_path: Path) -> None:
    async with counting(log=tmp_path / "guest.log") as (_, environment):
        taken = await environment.snapshot()
        for _ in range(2):
            await environment.step(environment.actions.action("do", "noise"))
            await environment.restore(taken)
    assert (tmp_path / "guest.log").read_text().count("noise from print") == 2
