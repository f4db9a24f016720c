"""libwebarena's own ScriptBrowserEnv, on local task files."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import signal
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from exact.environments.adapters.script_browser import ScriptBrowser, script_browser_factory, script_browsers, task_of
from exact.environments.check import check
from exact.environments.process.channel import RemoteError
from exact.environments.sandbox.factory import SandboxedFactory
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure, UsageError

pytestmark = pytest.mark.asyncio(loop_scope="session")

HERE = Path(__file__).parents[3] / "examples" / "sync_environments"


def example() -> Any:
    """Import the module examples/sync_environments/run.py."""
    spec = importlib.util.spec_from_file_location("sync_environments", HERE / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def local_tasks() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = example().tasks()
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser(libwebarena: Path) -> AsyncIterator[ScriptBrowser]:
    """Open one browser for all tests: a reset is enough between them."""
    async with script_browsers(trace=True) as open, open() as opened:
        yield opened


def button(browser: ScriptBrowser, name: str) -> str:
    found = re.search(rf"\[(\d+)\] button '{name}'", browser.state.observation)
    assert found, browser.state.observation
    return found[1]


async def test_a_task_is_done_by_commands_and_scored_on_the_guests_page(browser: ScriptBrowser, tmp_path: Path) -> None:
    task, _ = local_tasks()
    state = await browser.reset(task)
    assert "button 'Order'" in state.observation and state.url == task["start_url"]
    assert state.prompt.endswith(f"URL: {state.url}\nOBJECTIVE: Order one quince box.")
    refused = await browser.action("click [99999]")
    assert refused.observation == state.observation and "LAST ERROR: do" in refused.prompt
    note = re.search(r"\[(\d+)\] textbox", refused.observation)
    state = await browser.action(f"type [{note[1] if note else 0}] [ring twice] [0]")
    assert not state.error and "LAST ERROR" not in state.prompt
    assert not (await browser.score()).success
    await browser.action(f"click [{button(browser, 'Add quinces')}]")
    await browser.action(f"click [{button(browser, 'Order')}]")
    await browser.end()
    assert (await browser.score()).success
    await browser.save_trace(tmp_path / "trace.zip")
    assert zipfile.ZipFile(tmp_path / "trace.zip").namelist()


async def test_the_last_tab_may_be_closed(browser: ScriptBrowser) -> None:
    task, _ = local_tasks()
    await browser.reset(task)
    assert (await browser.action("close_tab")).url == "about:blank"
    assert "button 'Order'" in (await browser.action(f"goto [{task['start_url']}]")).observation


async def test_an_answer_is_judged_by_its_text(browser: ScriptBrowser) -> None:
    _, task = local_tasks()
    for answer, success in (("3.20", True), ("4.10", False)):
        await browser.reset(task)
        await browser.end(answer)
        assert (await browser.score()).success is success


async def test_guest_exceptions_carry_their_traceback_and_each_command_answers_once(browser: ScriptBrowser) -> None:
    task, _ = local_tasks()
    await browser.reset({**task, "eval": {**task["eval"], "eval_types": ["magic"]}})
    with pytest.raises(EnvironmentFailure, match="eval_type magic is not supported") as raised:
        await browser.score()
    assert isinstance(raised.value.__cause__, RemoteError) and "evaluator_router" in raised.value.__cause__.traceback
    assert "Corner shop" in (await browser.action("scroll [down]")).observation


async def test_a_browser_killed_in_mid_command_fails_alone_and_recovers_by_a_reset(browser: ScriptBrowser) -> None:
    task, _ = local_tasks()
    async with script_browsers() as open, open() as other:
        await asyncio.gather(browser.reset(task), other.reset(task))
        under_way = asyncio.ensure_future(browser.action(f"click [{button(browser, 'Order')}]"))
        await asyncio.sleep(0)
        assert browser._worker.pid is not None
        os.kill(browser._worker.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentFailure, match="the guest was lost"):
            await under_way
        assert "Pears" in (await other.action(f"click [{button(other, 'Add pears')}]")).observation
        with pytest.raises(EnvironmentFailure, match="no trace is recorded"):
            await other.save_trace(Path("trace.zip"))
        assert "Corner shop" in (await browser.reset(task)).observation


async def test_it_keeps_the_contract_of_environments(libwebarena: Path) -> None:
    async with script_browser_factory(isolated=True) as environments:
        found = await check(environments, task_of(local_tasks()[0]), quick=True, names=("resets alike", "errors are typed"))
    assert [each for each in found if not each.passed or each.skipped] == []


async def test_forks_of_a_snapshot_in_gvisor_fill_baskets_of_their_own(libwebarena: Path) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    async with script_browser_factory(sandbox=True, reads=(HERE,)) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environments, SandboxedFactory)
        seen = await environment.reset(task_of(local_tasks()[0]))
        snapshot = await environment.snapshot()
        for name in ("Pears", "Quinces"):
            async with environments.fork(snapshot, simulation=True) as branch:
                assert branch.observation.fingerprint == seen.fingerprint
                add = next(each.id for each in seen.elements if each.name == f"Add {name.lower()}")
                after = (await branch.step(branch.actions.parse(f"click [{add}]"))).observation
                assert after is not None and f"'{name}'" in after.text.partition("Basket")[2]


async def test_the_example_solves_its_tasks_side_by_side(libwebarena: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await example().main(2)
    assert "2 of 2 solved; the largest heartbeat delay was" in capsys.readouterr().out


async def test_a_file_that_holds_no_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text('{"start_url": "x"}')
    with pytest.raises(UsageError, match="not a task in WebArena's form: KeyError: 'intent'"):
        task_of(tmp_path / "task.json")
