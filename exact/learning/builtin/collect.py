"""Collection of examples: training tasks are explored in several environments and processes, and each task's examples become a file.

Pages for practice: an episode begins again in the page that is loaded, which costs a fifth of loading it.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from exact.agents.learned.agent import LearnedAgent
from exact.agents.learned.network import load
from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.pages import serve
from exact.benchmarks.miniwob.suite import BEGIN, HEIGHT, WIDTH, page_setup, verdict
from exact.config import BrowserConfig
from exact.environments.browser import BrowserEnvironment, launch
from exact.environments.browser.episode import BrowserEpisode
from exact.environments.browser.factory import PlainBackend
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.page.setup import PageSetup
from exact.environments.reward import miniwob_pages
from exact.errors import EnvironmentFailure
from exact.learning.builtin import examples
from exact.learning.builtin.explore import ExploredTask, Explorer, ExploreSettings
from exact.learning.builtin.machine import one_thread
from exact.learning.builtin.split import load_split
from exact.observation import Observation
from exact.task import Task

ENVIRONMENTS = 5
"""Environments of one process."""
_OPENING, _STEP = 60.0, 2.5
"""Seconds for the opening of an environment, and for each step, after which a task is given up as a failure of its environment."""


def collect(
    folder: Path,
    weights: Path,
    tasks: Sequence[str],
    settings: ExploreSettings,
    *,
    seed: int,
    processes: int,
    progress: Callable[[str], None],
) -> None:
    """Explore the tasks that have no file in the folder yet. Raises UsageError if one is not a training task."""
    split = load_split()
    for task in tasks:
        split.check_training(task)
    folder.mkdir(parents=True, exist_ok=True)
    left = [task for task in tasks if not summary_of(folder, task).exists()]
    if not left:
        return
    shares = [left[n::processes] for n in range(processes) if left[n::processes]]
    others = {process.pid for process in multiprocessing.active_children()}
    with ProcessPoolExecutor(len(shares), multiprocessing.get_context("spawn")) as pool:
        running = [pool.submit(collect_share, folder, weights, share, settings, seed) for share in shares]
        done = len(tasks) - len(left)
        try:
            for future in running:
                done += future.result()
                progress(f"{done} of {len(tasks)} tasks explored")
        except BaseException:  # the pool would wait for all that is left
            for process in multiprocessing.active_children():
                if process.pid not in others:
                    process.terminate()
            raise


def collect_share(folder: Path, weights: Path, tasks: Sequence[str], settings: ExploreSettings, seed: int) -> int:
    """Explore tasks in one browser. Return how many. SIGTERM closes the browser."""
    with one_thread():
        asyncio.run(_collect(folder, weights, tasks, settings, seed))
    return len(tasks)


async def _collect(folder: Path, weights: Path, tasks: Sequence[str], settings: ExploreSettings, seed: int) -> None:
    explorer = Explorer(LearnedAgent(load(weights)), load_split(), settings, seed)
    left = list(reversed(tasks))
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with practice(BrowserConfig(screenshots=False)) as environments, asyncio.TaskGroup() as group:
        for _ in range(ENVIRONMENTS):
            group.create_task(_work(explorer, environments, left, folder, settings.all_steps + settings.steps))


async def _work(explorer: Explorer, environments: PracticeFactory, left: list[str], folder: Path, steps: int) -> None:
    """Explore one task after the other, each in a fresh environment. `steps`: most steps of a task."""
    while left:
        task = left.pop()
        for again in (True, False):
            async with environments.open(simulation=True) as environment:
                environment.begins_again = again
                explored = await _explored(explorer, environment, task, _OPENING + _STEP * steps, by_path=not again)
            if explored is not None and not explored.contradicted:
                break
        _keep(folder, task, explored, again=again)


async def _explored(
    explorer: Explorer, environment: PracticeEnvironment, task: str, longest: float, *, by_path: bool
) -> ExploredTask | None:
    """Return the explored task; None if the environment failed."""
    try:
        async with asyncio.timeout(longest):
            return await explorer.explore(environment, MiniWob().task(task), by_path=by_path)
    except (EnvironmentFailure, TimeoutError):
        return None


def _keep(folder: Path, task: str, explored: ExploredTask | None, *, again: bool) -> None:
    """Write a task's examples, if there are any, and then its summary."""
    found = examples.examples_of(explored) if explored is not None else None
    if found is not None:
        examples.write(found, examples_of(folder, task))
    summary = {
        "task": task,
        "failed": explored is None,
        "contradicted": explored is not None and explored.contradicted,
        "began_again": again,
        "returns": explored.returns if explored else [],
        "steps": explored.steps if explored else 0,
        "states": len(found.outcome) if found is not None else 0,
    }
    summary_of(folder, task).write_text(json.dumps(summary))


def examples_of(folder: Path, task: str) -> Path:
    """Return the file of a task's examples."""
    return folder / f"{_name(task)}.npz"


def summary_of(folder: Path, task: str) -> Path:
    """Return the file that holds the summary of a task's exploration."""
    return folder / f"{_name(task)}.json"


def _name(task: str) -> str:
    return task.replace("/", "_").replace("?seed=", "_")


_START = "core.startEpisodeReal();"
_AGAIN = "document.activeElement?.blur(); (window.beginAgain ??= core.startEpisodeReal).call(core);"
"""Begins an episode even if `BEGIN` has replaced the function that begins one. Nothing of the episode before has the focus."""


class PracticeEnvironment(BrowserEnvironment):
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
        tabs = self.episode.tabs
        if len(tabs.window.tabs) != 1 or tabs.dialogs.is_asked or not tabs.present.url.startswith(task.start):
            return None
        self._terminated = True
        async with self._call("begin again"):
            observed = await self.episode.begin_again(task)
        found = observed.observation
        if observed.terminated or (found.fingerprint, found.instruction) != (start.fingerprint, start.instruction):
            return None
        if found.elements != start.elements:
            return None
        return self._begin(observed)


class PracticeFactory:
    """Opens practice environments in one browser."""

    def __init__(self, browser: Browser, setup: PageSetup, config: BrowserConfig) -> None:
        self._backend, self._setup, self._config = PlainBackend(browser, isolated=True), setup, config

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[PracticeEnvironment]:
        """Open a fresh environment, which is closed on leaving."""
        return self._opened(simulation)

    @asynccontextmanager
    async def _opened(self, simulation: bool) -> AsyncIterator[PracticeEnvironment]:
        made = PracticeEnvironment(BrowserEpisode(self._backend, self._setup, self._config, simulation=simulation), verdict)
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
