"""A site outside with PostgreSQL, and browsers in sandboxes: whole environments, whether it forks or branches take turns."""

from __future__ import annotations

import asyncio

import pytest

from exact.config import BrowserConfig
from exact.environments.browser import BrowserEnvironment, PageSetup
from exact.environments.browser.fork.browser import ForkedBrowser
from exact.environments.browser.fork.factory import forking
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sites.site import Hook, Outside
from exact.errors import EnvironmentFailure
from exact.task import Task
from tests.environments.leaps import Leaps
from tests.environments.sites.conftest import databases

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, settle_seconds=15.0)
TASK = Task(id="shop/add", instruction="Add a row.", start="http://shop.test/")


@pytest.fixture(scope="module", autouse=True)
def runsc(executable: str) -> None:
    """Skipped where there is no browser or no usable runsc."""
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


async def add(environment: BrowserEnvironment, row: str) -> str:
    """Add a row, and return the number of rows on the server."""
    box, button = (next(each.id for each in environment.observation.elements if each.role == role) for role in ("textbox", "button"))
    await environment.step(environment.actions.parse(f'fill [{box}] "{row}"'))
    await environment.step(environment.actions.parse(f"click [{button}]"))
    return environment.observation.elements[0].name


async def test_rows_of_one_fork_are_absent_in_its_sibling_and_the_half_typed_form_is_back(outside: Outside, cluster: str) -> None:
    async with forking(CONFIG, PageSetup(), outside=outside) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        assert (environment.capabilities.fidelity, environment.capabilities.isolated) == ("full", True)
        assert await add(environment, "one") == "Rows: one"
        box = next(each.id for each in environment.observation.elements if each.role == "textbox")
        await environment.step(environment.actions.parse(f'fill [{box}] "half a senten"'))
        snapshot = await environment.snapshot()
        assert snapshot.fidelity == "full"
        assert await add(environment, "left") == "Rows: one, left"
        async with environments.fork(snapshot, simulation=True) as sibling:
            assert "Rows: one" in sibling.observation.text and "left" not in sibling.observation.text
            assert 'value="half a senten" focused' in sibling.observation.text
            assert await add(sibling, "right") == "Rows: one, right"
            assert await add(environment, "again") == "Rows: one, left, again"
            assert await add(sibling, "too") == "Rows: one, right, too"
        back = await environment.restore(snapshot)
        assert back.fingerprint == snapshot.fingerprint and "left" not in back.text
        assert "Rows: none" in (await environment.reset(TASK)).text
    assert databases(cluster) == set()


async def test_forks_that_act_at_once_do_not_see_each_other(outside: Outside) -> None:
    async with forking(CONFIG, PageSetup(), outside=outside) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await environment.snapshot()

        async def branch(name: str, ready: asyncio.Barrier) -> str:
            async with environments.fork(snapshot, simulation=True) as environment:
                await ready.wait()
                await add(environment, name)
                return await add(environment, name.upper())

        ready = asyncio.Barrier(2)
        assert await asyncio.gather(branch("a", ready), branch("b", ready)) == ["Rows: a, A", "Rows: b, B"]


async def test_hooks_and_fresh_browsers_have_limits_of_their_own(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    leaps, call = Leaps(monkeypatch), Hook.call

    async def slow(hook: Hook, role: str, **values: str) -> str:
        said = await call(hook, role, **values)
        await leaps.by(3600)
        return said

    async with forking(CONFIG, PageSetup(), outside=outside) as environments, environments.open(simulation=True) as environment:
        monkeypatch.setattr(Hook, "call", slow)
        await environment.reset(TASK)
        assert await add(environment, "one") == "Rows: one"
        snapshot = await environment.snapshot()
        assert (await environment.restore(snapshot)).fingerprint == snapshot.fingerprint
        fresh = environments.store.fresh

        async def slowly() -> ForkedBrowser:
            browser = await fresh()
            await leaps.by(3600)
            return browser

        monkeypatch.setattr(environments.store, "fresh", slowly)
        assert "Rows: none" in (await environment.reset(TASK)).text
