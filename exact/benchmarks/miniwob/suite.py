"""MiniWoB++ as a suite: small pages, each with one problem made from a seed, scored by the page itself.

The page that scores is the page that is observed, so most of this file hides the score: the page writes its reward into a display, logs
it to the console, and covers itself with START, whose click begins another problem.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.benchmarks.ids import join, split
from exact.benchmarks.miniwob import names
from exact.benchmarks.miniwob.pages import Rewrite, serve, unchanged
from exact.benchmarks.miniwob.rewards import REWARDS
from exact.config import BrowserConfig
from exact.environments.adapters.miniwob import miniwob_pages
from exact.environments.base import EnvironmentFactory
from exact.errors import unknown
from exact.scratch import scratch
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import Page

    from exact.environments.browser import PageSetup
    from exact.environments.browser.fork.factory import ForkingFactory
    from exact.environments.sandbox.service import Service

HOST = "miniwob.test"
"""Host of the pages for the browser; the port behind it is an implementation detail."""

_PORT = 8000
"""Port of the pages' server on the sandbox's own loopback, which nothing else uses."""

WIDTH, HEIGHT = 332, 214
"""Viewport in CSS pixels, as in BrowserGym: the task's 160 x 210 on the left, room for the display beside it."""

HIDDEN = ("#reward-display", "#sync-task-cover", "#click-canvas", "#query:not(:has(div, .ui-icon))")
"""Hidden parts: the display of rewards, the START cover, the trace of clicks, and the goal, which is the instruction; a goal with a
picture stays."""

SILENCE = """
for (const name of Object.keys(console)) if (typeof console[name] === 'function') console[name] = () => {};
"""
"""Script that silences the console, to which the page logs its rewards."""

BARE_COVER = """
for (const kind of ['pointerdown', 'pointerup', 'mousedown', 'mouseup', 'click', 'dblclick', 'keydown'])
  window.addEventListener(kind, event => {
    if (event.target instanceof Element && event.target.closest('#sync-task-cover')) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }, true);
"""
"""Script that disables the cover, which begins a new problem and resets the reward: no event reaches it."""

BEGIN = """
async seed => {
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = 1000000;
  core.startEpisodeReal();
  clearTimeout(core.EP_TIMER);
  core.clearTimer();
  core.startEpisode = core.startEpisodeReal = core.updateDisplay = () => {};
  while (!WOB_TASK_READY) await new Promise(requestAnimationFrame);
}
"""
"""Script that begins one problem from a seed, and no second one. Its clock is stopped: an agent's thinking time must not end an
episode."""

INSTRUCTION = "(goal => typeof goal === 'string' ? goal : goal.utterance)(core.getUtterance())"
TERMINATED = "typeof WOB_DONE_GLOBAL !== 'undefined' && WOB_DONE_GLOBAL"
VERDICT = "typeof WOB_DONE_GLOBAL === 'undefined' ? null : [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, String(WOB_REWARD_REASON ?? '')]"


class MiniWob:
    """Suite `miniwob`. `pages` is the folder of the pages; by default that of the installed wheel."""

    name = "miniwob"

    def __init__(self, *, pages: Path | None = None, rewrite: Rewrite = unchanged) -> None:
        self._pages, self._rewrite = pages, rewrite

    def ids(self) -> Sequence[str]:
        """Return all 130 pages, and the three airlines."""
        return _ids((*names.TASKS, *names.FLIGHTS))

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the lists `browsergym`, the 125 of BrowserGym, and `registered`, the 128 that the wheel registers."""
        return {"browsergym": _ids(names.BROWSERGYM), "registered": _ids(names.REGISTERED)}

    def rewards(self) -> Mapping[str, Callable[[float], float]]:
        """Return BrowserGym's reading, which `score` is, and the full reward alone."""
        return REWARDS

    def task(self, id: str) -> Task:
        name, seed = split(id)
        if name not in self.ids():
            raise unknown("task", name, self.ids())
        page = name.removeprefix("miniwob/")
        start = f"http://{HOST}/{page.replace('.', '/')}/wrapper.html" if page in names.FLIGHTS else f"http://{HOST}/{name}.html"
        return Task(id=join(name, seed), instruction="", start=start, seed=seed)

    def check(self, task: Task) -> None:
        """Raise UsageError where the pages are not installed."""
        if self._pages is None:
            miniwob_pages()

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments.

        The viewport is the benchmark's, whatever `config` says. No page writes outside, and a page replays faster than a whole
        environment restores: environments fork only where `config.sandbox` requires it. Raises UsageError where the pages are not
        installed.
        """
        if config.sandbox == "required":
            async with self.forking_factory(config) as environments:
                yield environments
            return
        from exact.environments.browser import BrowserFactory, launch

        config = msgspec.structs.replace(config, width=WIDTH, height=HEIGHT)
        async with serve(self._pages or miniwob_pages(), self._rewrite) as address:
            setup = page_setup(address)
            async with launch(config, setup.hosts) as browser:
                yield BrowserFactory(browser, setup, config, isolated=True, evaluator=verdict)

    @asynccontextmanager
    async def forking_factory(self, config: BrowserConfig) -> AsyncIterator[ForkingFactory]:
        """Open environments that fork: the pages are served inside the sandbox. Raises EnvironmentFailure where gVisor does not run."""
        from exact.environments.browser.fork.factory import forking

        config = msgspec.structs.replace(config, width=WIDTH, height=HEIGHT)
        setup, limit = page_setup(f"127.0.0.1:{_PORT}"), config.snapshots << 20
        with _rewritten(self._pages or miniwob_pages(), self._rewrite) as folder:
            async with forking(config, setup, services=[_service(str(folder))], evaluator=verdict, limit=limit) as environments:
                yield environments


def page_setup(address: str) -> PageSetup:
    """Return what the pages need around them, where a server at `address` (`host:port`) has them."""
    from exact.environments.browser import PageSetup

    return PageSetup(
        hosts={HOST: address},
        init_scripts=(SILENCE, BARE_COVER),
        hidden=HIDDEN,
        begin=BEGIN,
        instruction=INSTRUCTION,
        terminated=TERMINATED,
        one_page=True,
    )


async def verdict(page: Page, outcome: Outcome) -> Score:
    """Return the page's own score. Success is any positive raw reward (before the page's discount for time), as in BrowserGym."""
    found = await page.evaluate(VERDICT)
    if found is None:
        return Score(value=0.0, success=False, reason="the task's page was left")
    done, raw, reason = found
    if not done:
        return Score(value=0.0, success=False, reason="episode not finished")
    return Score(value=float(raw > 0), success=raw > 0, raw=float(raw), reason=reason)


def _ids(tasks: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"miniwob/{task}" for task in tasks)


def _service(folder: str) -> Service:
    from exact.environments.sandbox import Service, find_interpreter, static

    return Service(
        command=(str(find_interpreter()), "-I", "-S", static.__file__, str(_PORT), folder),
        ready_url=f"http://127.0.0.1:{_PORT}/",
        reads=(static.__file__, folder),
        stateless=True,
    )


@contextmanager
def _rewritten(pages: Path, rewrite: Rewrite) -> Iterator[Path]:
    """Yield a folder of the files as they are served: a sandbox cannot call a Rewrite."""
    if rewrite is unchanged:
        yield pages
        return
    with scratch("miniwob") as folder:
        for file in pages.rglob("*"):
            if file.is_file():
                path = file.relative_to(pages)
                copy = folder / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(rewrite(path.as_posix(), file.read_bytes()))
        yield folder
