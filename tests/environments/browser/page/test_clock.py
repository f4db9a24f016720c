"""With its clock held, a page that moves by itself shows the same states each time."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.environments.browser import BrowserEnvironment, PageSetup
from exact.environments.restore.waypoint import compare_states, state_key
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Task
from tests.conftest import Visit
from tests.environments.browser.pages import do, look

pytestmark = pytest.mark.asyncio(loop_scope="session")
HELD = BrowserConfig(screenshots=False, width=600, height=400, clock=100)
TICKING = """<p id=n>0</p><p id=d></p><svg width=400 height=40><circle id=c r=9 cy=20 fill=red onclick="0"/></svg>
<script>let n = 0; setInterval(() => document.getElementById('n').textContent = ++n, 30);
requestAnimationFrame(() => { const begin = performance.now(); const y = () => {
  c.setAttribute('cx', 20 + (performance.now() - begin) / 10 % 300 | 0);
  d.textContent = new Date().toISOString(); requestAnimationFrame(y) }; y() })</script>"""
SLIDING = """<style>@keyframes slide { to { transform: translateX(500px) } }
rect { animation: slide 1s linear infinite }</style><svg width=600 height=40><rect width=10 height=10 fill=red onclick="0"/></svg>
<svg width=600 height=40><circle r=5 cx=5 cy=5 fill=blue onclick="0"/></svg>
<script>document.querySelector('circle').animate([{transform: 'none'}, {transform: 'translateX(400px)'}],
{duration: 700, iterations: Infinity})</script>"""


async def states(environment: BrowserEnvironment, seen: Observation, steps: int = 3) -> list[str]:
    return [seen.text, *[(await look(environment, "wait")).text for _ in range(steps)]]


@pytest.mark.parametrize("page", [TICKING, SLIDING], ids=["timers", "animations"])
async def test_an_animated_page_is_the_same_each_time_and_moves(visit: Visit, task_at: Callable[..., Task], page: str) -> None:
    async with visit(page, config=HELD) as (environment, seen):
        first = await states(environment, seen)
        assert len(set(first)) == 4 and ("Date" not in page or "2026-01-01T09:00:00" in first[0])
        assert await states(environment, await environment.reset(task_at())) == first


async def test_a_step_is_as_long_as_was_asked(visit: Visit) -> None:
    async with visit(TICKING, config=HELD) as (environment, _):
        times = [await environment.page.evaluate("Date.now()")]
        for _ in range(2):
            await do(environment, "wait")
            times.append(await environment.page.evaluate("Date.now()"))
        assert [b - a for a, b in pairwise(times)] == [100, 100]


async def test_a_page_whose_beginning_waits_for_its_clock_begins(visit: Visit) -> None:
    setup = PageSetup(begin="async () => { for (let i = 3; i--; ) await new Promise(requestAnimationFrame); document.title = 'begun' }")
    async with visit("<p>Here", setup=setup, config=HELD) as (_, seen):
        assert seen.title == "begun"


async def test_the_clock_of_the_next_page_continues(visit: Visit) -> None:
    async with visit("<p>Here", config=HELD) as (environment, _):
        await do(environment, "wait")
        before = await environment.page.evaluate("Date.now()")
        await do(environment, 'goto "/?again"')
        assert await environment.page.evaluate("Date.now()") == before + 100


async def test_forks_of_an_environment_with_a_stopped_clock_move_alike(executable: str) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    suite = MiniWob()
    async with suite.forking_factory(HELD) as environments, environments.open(simulation=True) as environment:
        await environment.reset(suite.task("miniwob/moving-items?seed=1"))
        await do(environment, "wait")
        before = environment.observation
        async with environments.fork(await environment.snapshot(), simulation=True) as branch:
            arrived = branch.observation
            times = [await each.page.evaluate("Date.now()") for each in (environment, branch)]
            ahead = [[(await look(each, "wait")).text for _ in range(2)] for each in (environment, branch)]
        assert compare_states(state_key(before), state_key(arrived)) == "exact" and times[0] == times[1]
        assert ahead[0] == ahead[1] and ahead[0][0] != ahead[0][1]
