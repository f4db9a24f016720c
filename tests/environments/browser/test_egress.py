"""Sites outside the sandbox: a real browser in a real sandbox, a server on the host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio

from exact.config import BrowserConfig
from exact.environments.base import Effect, Transition
from exact.environments.browser import PageSetup
from exact.environments.browser.branch import ForkingEnvironment
from exact.environments.browser.egress import Outside
from exact.environments.browser.forking import ForkingWorlds, forking
from exact.environments.sandbox import find_runsc
from exact.errors import EnvironmentError_
from exact.observation import Observation
from exact.task import Task

from .outside import Site, serving
from .pages import find

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("sandbox")]

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, settle_seconds=2.0)
TASK = Task(id="shop/buy", instruction="Buy.", start="http://shop.test/")
AWAY = "http://evil.test/text"


@pytest.fixture(scope="module")
def site(executable: str) -> Iterator[Site]:
    """Skipped where there is no browser or no usable runsc."""
    try:
        find_runsc()
    except EnvironmentError_ as error:
        pytest.skip(str(error))
    with serving() as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def worlds(site: Site) -> AsyncIterator[ForkingWorlds]:
    hosts = dict.fromkeys(("shop.test", "evil.test"), f"127.0.0.1:{site.port}")
    async with forking(CONFIG, PageSetup(), outside=Outside(hosts=hosts)) as opened:
        yield opened


@pytest.fixture
def fresh(site: Site) -> Site:
    """Nothing was asked of it yet."""
    site.pages.clear()
    site.asked.clear()
    site.cookies.clear()
    site.received, site.sockets = b"", 0
    site.go.clear()
    return site


async def do(environment: ForkingEnvironment, text: str) -> Transition:
    return await environment.step(environment.actions.parse(text))


async def click(environment: ForkingEnvironment, name: str) -> Transition:
    return await do(environment, f"click [{find(environment.observation, name).id}]")


def blocked(effects: tuple[Effect, ...]) -> list[tuple[str, str]]:
    return [(effect.method, effect.url) for effect in effects if effect.kind == "blocked"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)


async def shown(environment: ForkingEnvironment, text: str) -> Observation:
    """Wait until the page has that text."""
    async with asyncio.timeout(20):
        while text not in environment.observation.text:
            await do(environment, "wait")
    return environment.observation


async def test_a_page_of_a_site_outside_is_forked_with_its_scripts_and_half_typed_form(worlds: ForkingWorlds, fresh: Site) -> None:
    fresh.pages["/"] = "<input aria-label=note><button onclick='this.textContent = ++n'>0</button><script>n = 41</script>"
    async with worlds.open(speculative=True) as world:
        observation = await world.reset(TASK)
        assert (world.capabilities.fidelity, world.capabilities.sealed) == ("client", False)
        await do(world, f'fill [{find(observation, "note").id}] "half a senten"')
        snapshot = await world.snapshot()
        await click(world, "0")
        async with worlds.fork(snapshot, speculative=True) as branch:
            assert snapshot.fidelity == "client" and branch.observation.fingerprint == snapshot.fingerprint
            assert 'value="half a senten" focused' in branch.observation.text
            assert find((await click(branch, "0")).observation, "42")
        assert fresh.asked == ["GET /"]
