"""Environments in processes of their own."""

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from exact.action import Action
from exact.environments.base import Transition
from exact.environments.process.channel import RemoteError
from exact.environments.process.process import log_stderr_to
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, Worker, WorkerFactory
from exact.environments.toy.factory import ToyFactory, chain, toy_task
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.task import Outcome, Task

FOREIGN = Path(__file__).with_name("foreign.py")
TASK = Task(id="count?seed=1", instruction="Count.", seed=1)


@asynccontextmanager
async def counter(name: str = "Counter", *, log: Path | None = None, step: float = 60.0, **factory: object) -> AsyncIterator[Worker]:
    """Open a worker of an environment in `foreign.py`, and reset it."""
    made = EnvironmentSpec(f"{FOREIGN}:{name}", **factory)  # type: ignore[arg-type]
    async with WorkerFactory(made, timeouts=GuestTimeouts(step=step), log=log).open(simulation=True) as environment:
        await environment.reset(TASK)
        yield environment


async def do(environment: Worker, what: str) -> Transition:
    return await environment.step(environment.actions.action("do", what))


async def count(environment: Worker) -> str:
    seen = (await environment.step(environment.actions.parse("add 0"))).observation
    assert seen is not None
    return seen.text.split('"')[1]


@pytest.mark.parametrize("name", ["Counter", "Awaiting"])
async def test_a_sync_or_async_environment_in_a_file_gives_what_exact_expects(name: str) -> None:
    async with counter(name, arguments={"first": 4}) as environment:
        done = await environment.step(environment.actions.parse("add 2"))
        score = await environment.evaluate(Outcome(actions=("add 2",)))
    assert done.observation is not None and done.info == {"simulation": "True"}
    assert done.observation.text == '[1] StaticText "7"' and done.observation.elements[0].box is not None
    assert len(done.observation.fingerprint) == 32 and score.success and score.reason == "add 2"


async def test_a_guest_written_for_an_earlier_version_works() -> None:
    async with counter("Old") as environment:
        capabilities = environment.capabilities
        snapshot = await environment.snapshot()
        done = await environment.step(environment.actions.parse("add 2"))
    assert (capabilities.fidelity, capabilities.isolated, snapshot.fidelity) == ("full", True, "full")
    assert done.info == {"simulation": "True"}


async def test_a_factory_may_be_a_coroutine_function() -> None:
    async with counter("later") as environment:
        assert await count(environment) == "8"


async def test_toy_environments_are_the_same_inside_a_worker_and_outside() -> None:
    inside = WorkerFactory(EnvironmentSpec("exact.environments.toy.factory:ToyFactory", {"environment": {}}))
    with pytest.raises(EnvironmentFailure):  # a ToyGraph is no plain data
        async with inside.open(simulation=True) as environment:
            await environment.reset(toy_task("chain"))
    toys = WorkerFactory(EnvironmentSpec("toys:environments", paths=(Path(__file__).parent / "guests",)))
    seen = []
    for environments in (toys, ToyFactory(chain(3))):
        async with environments.open(simulation=True) as environment:
            first = await environment.reset(toy_task("chain"))
            taken = await environment.snapshot()
            ends = [await environment.step(environment.actions.parse('go "on"')) for _ in range(3)]
            score = await environment.evaluate(Outcome(actions=()))
            back = await environment.restore(taken)
            seen.append((first, taken.fingerprint, ends, score, back, environment.capabilities, list(environment.actions.verbs.values())))
    assert seen[0] == seen[1] and seen[0][0] == seen[0][4]


async def test_an_action_error_stays_one_and_leaves_the_guest_as_it_is() -> None:
    async with counter() as environment:
        pid = environment.pid
        with pytest.raises(ActionError, match=r"(?s)^only upwards:\nadd a number that is not negative$"):
            await environment.step(environment.actions.parse("add -1"))
        assert await count(environment) == "1" and environment.pid == pid


async def test_any_other_exception_crosses_with_type_message_and_remote_traceback() -> None:
    async with counter() as environment:
        with pytest.raises(EnvironmentFailure, match="step failed in the guest: KeyError: 'what is missing'") as caught:
            await do(environment, "fail")
        remote = caught.value.__cause__
        assert isinstance(remote, RemoteError) and remote.type == "KeyError" and "foreign.py" in remote.traceback


async def test_after_a_step_that_failed_the_state_is_unknown_until_a_reset_of_the_same_guest() -> None:
    async with counter() as environment:
        pid = environment.pid
        with pytest.raises(EnvironmentFailure, match="KeyError"):
            await do(environment, "fail")
        with pytest.raises(EnvironmentFailure, match="the state is unknown because a step failed"):
            await count(environment)
        await environment.reset(TASK)
        assert await count(environment) == "1" and environment.pid == pid


async def test_before_the_first_reset_nothing_can_be_done_and_unknown_actions_are_refused() -> None:
    async with WorkerFactory(EnvironmentSpec(f"{FOREIGN}:Counter")).open(simulation=True) as environment:
        with pytest.raises(EnvironmentFailure, match="reset it first"):
            await count(environment)
        await environment.reset(TASK)
        with pytest.raises(ActionError, match="unknown action fly: valid: add, do"):
            await environment.step(Action("fly", (), "fly"))
        assert await count(environment) == "1"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nonsense", "the result of step does not fit: Expected `str`"),
        ("thing", "TypeError: object cannot be sent to the host"),
        ("exit", "SystemExit: 3"),
    ],
)
async def test_violations_of_the_contract_are_reported_and_the_guest_continues(what: str, message: str) -> None:
    async with counter() as environment:
        pid = environment.pid
        with pytest.raises(EnvironmentFailure, match=message):
            await do(environment, what)
        await environment.reset(TASK)
        assert await count(environment) == "1" and environment.pid == pid


async def test_a_sync_method_that_gives_something_to_await_is_reported_how_to_be_written() -> None:
    with pytest.raises(EnvironmentFailure, match="write `async def step`"):
        async with counter("Confused") as environment:
            await count(environment)


async def test_prints_of_the_environment_go_to_the_log_and_not_into_the_protocol(tmp_path: Path) -> None:
    async with counter(log=tmp_path / "guest.log") as environment:
        pid = environment.pid
        await do(environment, "noise")
        assert await count(environment) == "1"
    lines = (tmp_path / "guest.log").read_text().splitlines()
    assert {f"[{pid}] noise from {what}" for what in ("print", "the descriptor", "a child")} <= set(lines)


async def test_without_a_file_stderr_goes_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "exact.guest"):
        async with counter() as environment:
            await do(environment, "noise")
    assert any("noise from print" in line for line in caplog.messages)


async def test_a_screenshot_of_20_megabytes_crosses_as_it_is() -> None:
    async with counter() as environment:
        seen = (await do(environment, "picture")).observation
    assert seen is not None and seen.screenshot == bytes(range(256)) * (20 * 4096)


async def test_half_a_surrogate_pair_crosses_as_a_question_mark() -> None:
    async with counter() as environment:
        seen = (await do(environment, "surrogate")).observation
    assert seen is not None and seen.text == "half ? of a pair"


@pytest.mark.parametrize(
    ("what", "message"),
    [("crash", r"ended with status 3: last words"), ("kill", "killed by SIGKILL"), ("hang", r"did not end within 0\.3 s")],
)
async def test_a_guest_that_dies_or_hangs_is_replaced_at_the_next_reset(what: str, message: str) -> None:
    async with counter(step=0.3 if what == "hang" else 60.0) as environment:
        pid = environment.pid
        with pytest.raises(EnvironmentFailure, match=message):
            await do(environment, what)
        with pytest.raises(EnvironmentFailure, match="there is no guest"):
            await do(environment, "noise")
        await environment.reset(TASK)
        assert await count(environment) == "1" and environment.pid != pid


async def test_a_snapshot_of_a_guest_that_died_is_not_taken_for_one_of_the_next() -> None:
    async with counter() as environment:
        taken = await environment.snapshot()
        await environment.step(environment.actions.parse("add 5"))
        assert (await environment.restore(taken)).text == '[1] StaticText "1"'
        with pytest.raises(EnvironmentFailure):
            await do(environment, "kill")
        await environment.reset(TASK)
        with pytest.raises(EnvironmentFailure, match="gone with the guest that took it"):
            await environment.restore(taken)


async def test_after_a_cancelled_step_the_state_is_unknown_until_a_restore_or_reset(tmp_path: Path) -> None:
    async with counter(env={"GATE": str(tmp_path / "gate")}) as environment:
        pid, taken = environment.pid, await environment.snapshot()
        step = asyncio.ensure_future(do(environment, "wait_for_file"))
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        with pytest.raises(EnvironmentFailure, match="the state is unknown because a step was cancelled"):
            await count(environment)
        (tmp_path / "gate").touch()
        assert (await environment.restore(taken)).text == '[1] StaticText "1"'
        assert await count(environment) == "1" and environment.pid == pid


async def test_closing_while_a_cancelled_call_hangs_does_not_wait_for_it() -> None:
    environments = WorkerFactory(EnvironmentSpec(f"{FOREIGN}:Counter"), timeouts=GuestTimeouts(close=3600.0))
    async with environments.open(simulation=True) as environment:
        step = asyncio.ensure_future(do(environment, "hang"))
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
    await environment.close()
    assert environment.pid is None
    with pytest.raises(EnvironmentFailure, match="closed"):
        await environment.reset(TASK)


async def test_a_guest_leads_a_group_of_its_own_so_that_an_interrupt_does_not_reach_it() -> None:
    async with counter() as environment:
        assert environment.pid is not None and os.getpgid(environment.pid) == environment.pid


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "ValueError: no such shop"),
        ("crashes", "ended with status 4"),
        ("absent", "AttributeError"),
    ],
)
async def test_a_factory_that_fails_is_said(name: str, message: str) -> None:
    with pytest.raises(EnvironmentFailure, match=message):
        async with counter(name):
            pass


async def test_an_interpreter_that_is_not_there_is_said() -> None:
    with pytest.raises(EnvironmentFailure, match="cannot be started: No such file"):
        async with counter(python=Path("/nowhere/python")):
            pass


async def test_arguments_that_cannot_cross_are_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="cannot be sent"):
        async with counter(arguments={"first": float("nan")}):
            pass


async def test_keys_of_ours_do_not_reach_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with counter(env={"GIVEN": "1"}) as environment:
        variables = environ(environment.pid)
    assert b"secret" not in variables and b"GIVEN=1" in variables


def environ(pid: int | None) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def interpreters() -> dict[Path, bool]:
    """Other Pythons of this machine that run, and whether they are new enough."""
    named = [shutil.which(name) for name in ("python3", *(f"python3.{minor}" for minor in range(7, 15)))]
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = dict.fromkeys([*(Path(path).resolve() for path in named if path), *sorted(kept.glob("3.*/bin/python"))])
    asked = {path: subprocess.run([path, "-c", "import sys; print(sys.version_info[:2] >= (3, 9))"], capture_output=True) for path in found}
    return {path: answer.stdout.strip() == b"True" for path, answer in asked.items() if answer.returncode == 0}


async def test_other_interpreters_serve_environments_or_are_too_old() -> None:
    found = interpreters()
    if not found:
        pytest.skip("there is no Python but this one")
    for python, fit in found.items():
        with nullcontext() if fit else pytest.raises(EnvironmentFailure, match=r"too old for a guest|future feature annotations"):
            async with counter(python=python) as environment:
                assert await count(environment) == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="told by /proc")
async def test_the_processor_time_of_a_guest_is_reported() -> None:
    async with counter() as environment:
        before = environment.processor
        await do(environment, "work")
        assert environment.processor >= before + 0.05
    assert environment.processor == 0.0


@pytest.fixture
def foreign_python(tmp_path: Path) -> Path:
    """Return the interpreter of a virtual environment without exact."""
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    assert subprocess.run([python, "-E", "-c", "import exact"], capture_output=True, cwd=tmp_path).returncode == 1
    return python


async def test_a_virtual_environment_without_exact_serves_environments(foreign_python: Path, tmp_path: Path) -> None:
    async with counter(python=foreign_python) as environment:
        assert await count(environment) == "1"
        assert (await do(environment, "modules")).info == {"prefix": str(tmp_path / "venv"), "exact": "False"}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def left(pids: set[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
async def test_200_workers_opened_and_closed_leave_no_descriptor_and_no_process() -> None:
    """Each of the 200 starts a Python: half a minute."""
    pids: set[int] = set()
    before = 0
    for cycle in range(50):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(once()) for _ in range(4)]
        pids.update(task.result() for task in tasks)
        before = before or descriptors()
        assert cycle == 0 or descriptors() <= before
    assert len(pids) == 200 and not left(pids)


async def once() -> int:
    async with counter(python=Path(sys.executable)) as environment:
        assert environment.pid is not None
        return environment.pid


async def test_guest_output_goes_to_the_log_of_its_run_and_a_full_disk_does_not_stop_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with log_stderr_to(tmp_path / "guest.log"):
        async with counter() as environment:
            await do(environment, "noise")
    assert "] noise from print" in (tmp_path / "guest.log").read_text()
    with log_stderr_to(Path("/dev/full")):
        async with counter() as environment:
            await do(environment, "noise")
    assert "/dev/full is no longer written: No space left on device" in caplog.text
