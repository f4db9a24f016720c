"""BrowserGym's own tasks, in its own virtual environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from exact.benchmarks import registry
from exact.benchmarks.base import environments_for
from exact.config import BrowserConfig
from exact.environments.adapters.gym import browsergym_factory
from exact.environments.sandbox.factory import SandboxedFactory
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.task import Outcome

TASK = registry.task("browsergym/miniwob.click-test-2?seed=1")


async def test_a_task_is_observed_acted_on_and_scored_by_browsergym(browsergym: Path) -> None:
    async with (
        environments_for(registry.suite(TASK.id), TASK, BrowserConfig()) as environments,
        environments.open(simulation=True) as environment,
    ):
        seen = await environment.reset(TASK)
        assert seen.instruction == "Click button ONE." and (seen.screenshot or b"").startswith(b"\x89PNG")
        assert "reward" not in seen.text.lower()
        with pytest.raises(ActionError, match=r"there is no element \[zz\]"):
            await environment.step(environment.actions.parse("click [zz]"))
        button = next(each.id for each in seen.elements if each.name == "ONE")
        assert (await environment.step(environment.actions.parse(f"click [{button}]"))).terminated
        assert (await environment.evaluate(Outcome(actions=()))).success
        again = await environment.reset(TASK)
        assert again.fingerprint == seen.fingerprint


async def test_one_fork_wins_and_its_sibling_loses_from_one_snapshot_in_gvisor(browsergym: Path) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    async with (
        browsergym_factory("miniwob.click-test-2", screenshots=False, sandbox=True) as environments,
        environments.open(simulation=True) as environment,
    ):
        assert isinstance(environments, SandboxedFactory)
        seen = await environment.reset(TASK)
        snapshot = await environment.snapshot()
        scores = []
        for name in ("ONE", "TWO"):
            async with environments.fork(snapshot, simulation=True) as branch:
                assert branch.observation.fingerprint == seen.fingerprint
                button = next(each.id for each in seen.elements if each.name == name)
                await branch.step(branch.actions.parse(f"click [{button}]"))
                scores.append((await branch.evaluate(Outcome(actions=()))).success)
        assert scores == [True, False]


@pytest.mark.parametrize(
    ("id", "lack"),
    [
        ("webarena.310", "WA_SHOPPING, .*not set; it needs seven sites"),
        ("visualwebarena.5", "VWA_CLASSIFIEDS, .*not set"),
        ("workarena.servicenow.order-ipad-pro", "SNOW_INSTANCE_URL.*not set; it needs an instance of ServiceNow"),
    ],
)
async def test_other_benchmarks_load_by_the_same_route_and_say_what_they_lack(id: str, lack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WA_SHOPPING", "VWA_CLASSIFIEDS", "SNOW_INSTANCE_URL"):
        monkeypatch.delenv(name, raising=False)
    task = registry.task(f"browsergym/{id}")
    with pytest.raises(UsageError, match=lack):
        async with environments_for(registry.suite(task.id), task, BrowserConfig()):
            pass


def test_a_name_that_is_none_is_reported_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'browsergym/miniwob\.click-test'"):
        registry.task("browsergym/miniwob.clik-test")
    with pytest.raises(UsageError, match="did you mean 'webarena'"):
        registry.task("browsergym/webarna.3")
