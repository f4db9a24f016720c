"""Pages for practice: an episode begins again in the page that is loaded, which costs a fifth of loading it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from exact.benchmarks.miniwob.pages import serve
from exact.benchmarks.miniwob.suite import BEGIN, HEIGHT, INSTRUCTION, WIDTH, page_setup, verdict
from exact.config import BrowserConfig
from exact.environments.browser import launch
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.snapshot.environment import PageEnvironment
from exact.environments.reward import miniwob_pages
from exact.observation import Observation
from exact.task import Task

_START = "core.startEpisodeReal();"
_AGAIN = "document.activeElement?.blur(); (window.beginAgain ??= core.startEpisodeReal).call(core);"
"""Begins an episode even if `BEGIN` has replaced the function that begins one. Nothing of the episode before has the focus."""


class PracticeEnvironment(PageEnvironment):
    """An environment whose `reset` to the same task begins the episode again in the loaded page.

    The start is compared with that of the loaded page: if it looks different, the page is loaded. `loaded` and `begun` count both ways.
    """

    begins_again = True
    """Whether the loaded page is used again. False for pages that keep state of an episode that an observation does not show."""
    loaded = begun = 0
    _start: tuple[str, Observation] | None = None
    """Id of the task whose page is loaded, and its first observation."""

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the start of a task."""
        if (
            self.begins_again
            and self._start is not None
            and self._start[0] == task.id
            and (again := await self._again(task, self._start[1])) is not None
        ):
            self.begun += 1
            return again
        self._start = None
        found = await super().reset(task)
        self.loaded += 1
        self._start = (task.id, found)
        return found

    async def _again(self, task: Task, start: Observation) -> Observation | None:
        """Return the start of the task in the loaded page. None if it looks different, or the page was left."""
        tabs = self.tabs
        if len(tabs.window.tabs) != 1 or tabs.dialogs.is_asked or not tabs.present.page.url.startswith(task.start):
            return None
        self._terminated = True
        async with self._call("begin again"):
            self.observer.ids, self.observer.drawn = Ids(), None
            self.episode.begin_parts(task)
            await self.episode.run_begin(task)
            self.observer.instruction = str(await tabs.present.evaluate(INSTRUCTION, in_page=True) or "")
            observed = await self.interaction.observe()
        found = observed.observation
        if observed.terminated or (found.fingerprint, found.instruction) != (start.fingerprint, start.instruction):
            return None
        if found.elements != start.elements:
            return None
        return self._begin(observed)


class PracticeFactory:
    """Opens practice environments in one browser."""

    def __init__(self, browser: Browser, setup: PageSetup, config: BrowserConfig) -> None:
        self._browser, self._setup, self._config = browser, setup, config

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[PracticeEnvironment]:
        """Open a fresh environment, which is closed on leaving."""
        return self._opened(simulation)

    @asynccontextmanager
    async def _opened(self, simulation: bool) -> AsyncIterator[PracticeEnvironment]:
        made = PracticeEnvironment(
            self._browser, self._setup, self._config, isolated=True, simulation=simulation, evaluator=verdict
        )  # fmt: skip
        try:
            yield made
        finally:
            await made.close()


@asynccontextmanager
async def practice(config: BrowserConfig) -> AsyncIterator[PracticeFactory]:
    """Open practice environments of MiniWoB++. Raises UsageError if the pages are not installed."""
    config = msgspec.structs.replace(config, width=WIDTH, height=HEIGHT)
    async with serve(miniwob_pages()) as address:
        setup = msgspec.structs.replace(page_setup(address), begin=BEGIN.replace(_START, _AGAIN))
        async with launch(config, setup.hosts) as browser:
            yield PracticeFactory(browser, setup, config)
