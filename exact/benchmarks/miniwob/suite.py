"""MiniWoB++ as a suite: small pages, each with one problem made from a seed, scored by the page itself.

The page that scores is the page that is observed, so most of this file hides the score: the page writes its reward into a display, logs
it to the console, and covers itself with START, whose click begins another problem.

Two readings of the raw reward of a MiniWoB++ episode, which lies in [-1, 1] and does not decay with time here.

The tasks: the pages of the wheel `miniwob` 1.1, in alphabetical order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.benchmarks.ids import join, split
from exact.benchmarks.miniwob.pages import Rewrite, serve, unchanged
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.reward import miniwob_pages
from exact.errors import unknown
from exact.machine import scratch
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
        return _ids((*TASKS, *FLIGHTS))

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the lists `browsergym`, the 125 of BrowserGym, and `registered`, the 128 that the wheel registers."""
        return {"browsergym": _ids(BROWSERGYM), "registered": _ids(REGISTERED)}

    def rewards(self) -> Mapping[str, Callable[[float], float]]:
        """Return BrowserGym's reading, which `score` is, and the full reward alone."""
        return REWARDS

    def task(self, id: str) -> Task:
        name, seed = split(id)
        if name not in self.ids():
            raise unknown("task", name, self.ids())
        page = name.removeprefix("miniwob/")
        start = f"http://{HOST}/{page.replace('.', '/')}/wrapper.html" if page in FLIGHTS else f"http://{HOST}/{name}.html"
        return Task(id=join(name, seed), instruction="", start=start, seed=seed)

    def check(self, task: Task) -> None:
        """Raise UsageError if the pages are not installed."""
        if self._pages is None:
            miniwob_pages()

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments.

        The viewport is the benchmark's, whatever `config` says. No page writes outside, and a page replays faster than a whole environment
        restores: environments fork only if `config.sandbox` requires it. Raises UsageError if the pages are not installed.
        """
        if config.sandbox == "required":
            async with self.forking_factory(config) as environments:
                yield environments
            return
        from exact.environments.browser import launch

        config = msgspec.structs.replace(config, width=WIDTH, height=HEIGHT)
        async with serve(self._pages or miniwob_pages(), self._rewrite) as address:
            setup = page_setup(address)
            async with launch(config, setup.hosts) as browser:
                from exact.environments.browser import BrowserFactory

                yield BrowserFactory(browser, setup, config, isolated=True, evaluator=verdict)

    @asynccontextmanager
    async def forking_factory(self, config: BrowserConfig) -> AsyncIterator[ForkingFactory]:
        """Open environments that fork: the pages are served inside the sandbox. Raises EnvironmentFailure if gVisor does not run."""
        from exact.environments.browser.fork.factory import forking

        config = msgspec.structs.replace(config, width=WIDTH, height=HEIGHT)
        setup, limit = page_setup(f"127.0.0.1:{_PORT}"), config.snapshots << 20
        with _rewritten(self._pages or miniwob_pages(), self._rewrite) as folder:
            async with forking(config, setup, services=[_service(str(folder))], evaluator=verdict, limit=limit) as environments:
                yield environments


def page_setup(address: str) -> PageSetup:
    """Return the set-up of the pages, which a server at `address` (`host:port`) serves."""
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
    from exact.environments.sandbox import static
    from exact.environments.sandbox.bundle import find_interpreter
    from exact.environments.sandbox.service import Service

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


def browsergym(raw: float) -> float:
    """Return 1 for any positive reward, as BrowserGym 0.14 does: a part of a solution counts as a whole one. `score` is this reading."""
    return float(raw > 0)


def binary(raw: float) -> float:
    """Return 1 for the full reward alone: a part of a solution counts as none."""
    return float(raw >= 1)


REWARDS: Mapping[str, Callable[[float], float]] = {"browsergym (raw > 0)": browsergym, "binary (raw = 1)": binary}
"""Readings by their names in tables."""


_TASKS = """
ascending-numbers bisect-angle book-flight book-flight-nodelay button-delay buy-ticket chase-circle choose-date choose-date-easy
choose-date-medium choose-date-nodelay choose-list circle-center click-button click-button-sequence click-checkboxes
click-checkboxes-large click-checkboxes-soft click-checkboxes-transfer click-collapsible click-collapsible-2
click-collapsible-2-nodelay click-collapsible-nodelay click-color click-dialog click-dialog-2 click-link click-menu click-menu-2
click-option click-pie click-pie-nodelay click-scroll-list click-shades click-shape click-tab click-tab-2 click-tab-2-easy
click-tab-2-hard click-tab-2-medium click-test click-test-2 click-test-transfer click-widget copy-paste copy-paste-2 count-shape
count-sides daily-calendar drag-box drag-circle drag-cube drag-items drag-items-grid drag-shapes drag-shapes-2 drag-single-shape
drag-sort-numbers draw-circle draw-line email-inbox email-inbox-delete email-inbox-forward email-inbox-forward-nl
email-inbox-forward-nl-turk email-inbox-important email-inbox-nl-turk email-inbox-noscroll email-inbox-reply
email-inbox-star-reply enter-date enter-password enter-text enter-text-2 enter-text-dynamic enter-time find-greatest
find-midpoint find-word focus-text focus-text-2 form-sequence form-sequence-2 form-sequence-3 generate-number grid-coordinate
guess-number highlight-text highlight-text-2 hot-cold hover-shape identify-shape login-user login-user-popup moving-items
multi-layouts multi-orderings navigate-tree number-checkboxes odd-or-even order-food phone-book read-table read-table-2
resize-textarea right-angle scroll-text scroll-text-2 search-engine sign-agreement simon-says simple-algebra simple-arithmetic
social-media social-media-all social-media-some stock-market terminal text-editor text-transform tic-tac-toe unicode-test
use-autocomplete use-autocomplete-nodelay use-colorwheel use-colorwheel-2 use-slider use-slider-2 use-spinner visual-addition
"""

TASKS = tuple(_TASKS.split())
"""All 130 pages, each with one problem."""

NOT_IN_BROWSERGYM = ("button-delay", "chase-circle", "hover-shape", "moving-items", "simon-says")
"""Pages that need an action at a certain moment, which BrowserGym 0.14.3 does not register."""

BROWSERGYM = tuple(name for name in TASKS if name not in NOT_IN_BROWSERGYM)
"""The 125 tasks of BrowserGym 0.14.3, on which results are published."""

FLIGHTS = ("flight.AA", "flight.Alaska", "flight.Alaska-auto")
"""Copies of three airlines' search forms, each in a frame (FlightWoB), with further pages below `flight/`."""

REGISTERED = (*BROWSERGYM, *FLIGHTS)
"""The 128 tasks that the wheel registers as environments."""
