"""The user's own tasks, from a YAML or JSON file: `exact run --tasks shop.yaml`.

    - id: sign
      goal: Sign the guest book as Ann.
      url: http://127.0.0.1:8000/
      evaluate: checks.py:signed        # a function; or WebArena's `eval` as a mapping; without it the agent judges itself

A function gets the page (Playwright's, async) and the Outcome, and returns a Score, a number in [0, 1], or whether it is solved; it may be
async, and is called in a separate thread if it is not. An AssertionError in it means that the attempt is not solved, with its message
as the reason; so does an element that the page does not show within Playwright's time. Any other error is an EvaluatorError, and no score.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exact.benchmarks.webarena.evaluate import EvaluatorContext, evaluate, evaluators, roles
from exact.benchmarks.webarena.format import TaskFile, at, parse
from exact.benchmarks.webarena.helpers import ON_PAGES
from exact.benchmarks.webarena.judges import Judges, opener
from exact.benchmarks.webarena.own_sites import check_resets, own_state
from exact.benchmarks.webarena.resets import Resets
from exact.benchmarks.webarena.variables import Addresses
from exact.config import ModelsConfig
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.page.settle import bounded_loads, whole
from exact.environments.browser.page.setup import geolocation_of
from exact.environments.own import ENVIRONMENT, OwnEnvironment
from exact.environments.process.process import run_in_thread
from exact.environments.sandbox.service import Service, located
from exact.environments.sites.site import Outside, Site
from exact.errors import EvaluatorError, ExactError, UsageError
from exact.models.base import ChatModel
from exact.origins import is_web
from exact.plugins import load_file
from exact.task import Outcome, Scalar, Score, Task
from exact.untrusted import read_yaml

if TYPE_CHECKING:
    from playwright.async_api import Page

EVALUATE = "evaluate"
"""Key of a task's metadata: `/path/to/checks.py:function`, or WebArena's `eval` in JSON."""

MOST_BYTES = 16 << 20
"""Bytes of the largest file of tasks."""

_ALIVE = 10.0
"""Seconds within which a responsive page runs an empty script."""


class OwnTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entry of the file."""

    id: str
    goal: str
    url: str = ""
    environment: str | dict[str, Any] = ""
    """The user's own environment in place of `url`: see exact/environments/own.py."""
    seed: int = 0
    origins: tuple[str, ...] = ()
    """Origins that may be navigated to, besides that of `url`."""
    images: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()
    """Services of the site, if it comes with the task: see docs/own_application.md."""
    tabs: tuple[str, ...] = ()
    geolocation: str = ""
    """Geolocation: `latitude longitude`, in degrees."""
    evaluate: str | dict[str, Any] = ""


def read_list(path: Path) -> tuple[Task, ...]:
    """Return the tasks of a file that is a list of them. Raises UsageError that names file, task and field."""
    try:
        data = read_yaml(path, MOST_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}: name a file of tasks") from error
    if isinstance(data, dict) and "task_id" in data:  # one task in a file, in WebArena's form
        data = [data]
    if not isinstance(data, list) or not data:
        raise UsageError(f"{path} holds no list of tasks: write `- id: ...`, `goal: ...` and `url: ...`, or `site:` and `tasks:`")
    return distinct(path, [_task(path, number, item) for number, item in enumerate(data, 1)])


def distinct(path: Path, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks of a file. Raises UsageError if two have one id."""
    twice = [id for id, count in Counter(task.id for task in tasks).items() if count > 1]
    if twice:
        raise UsageError(f"{path}: two tasks are named {min(twice)}: each needs an id of its own")
    return tuple(tasks)


def by_rules(task: Task) -> bool:
    """Return whether WebArena's rules evaluate a task: some of them ask a model."""
    return str(task.private.get(EVALUATE) or "").startswith("{")


def evaluator(task: Task, models: ModelsConfig | None = None, chat: Callable[[str], ChatModel] | None = None) -> Evaluator | None:
    """Return the evaluator of a task; None if only the agent judges.

    `chat` opens models of `models` for fuzzy matches. Raises UsageError.
    """
    said = str(task.private.get(EVALUATE) or "")
    if not said:
        return None
    if by_rules(task):
        return _by_rules(task, json.loads(said), models, chat)
    return _by_function(_function(said), said)


def _task(path: Path, number: int, item: object) -> Task:
    if isinstance(item, dict) and "task_id" in item:
        return _webarena_task(path, item)
    name = item.get("id", f"number {number}") if isinstance(item, dict) else f"number {number}"
    try:
        own = msgspec.convert(item, OwnTask)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: task {name}: {error}") from error
    if own.environment:
        return in_environment(path, own)
    if not is_web(own.url):
        raise UsageError(f"{path}: task {name}: url {own.url!r} is no web address: write http://host/path")
    for number, tab in enumerate(own.tabs):
        if not is_web(tab) or len(tab.split()) != 1:
            raise UsageError(f"{path}: task {name}: tabs[{number}] {tab!r} is no web address: write http://host/path")
    metadata: dict[str, Scalar] = {}
    if own.services:
        metadata["services"] = msgspec.json.encode([located(each, path.parent) for each in own.services]).decode()
    if own.tabs:
        metadata["tabs"] = "\n".join(own.tabs)
    if own.geolocation:
        metadata["geolocation"] = own.geolocation
    judged: dict[str, Scalar] = {EVALUATE: kept(path, name, own.evaluate)} if own.evaluate else {}
    made = Task(
        id=f"own/{own.id}?seed={own.seed}", instruction=own.goal, start=own.url, seed=own.seed, origins=own.origins, images=own.images,
        metadata=metadata, private=judged,
    )  # fmt: skip
    with at(str(path)):
        geolocation_of(made)
    return made


def in_environment(path: Path, own: OwnTask) -> Task:
    """Return a task in the user's own environment, which evaluates it. Raises UsageError that names file, task and field."""
    extra = [name for name in ("url", "origins", "services", "tabs", "geolocation", "evaluate") if getattr(own, name)]
    try:
        if extra:
            raise UsageError(f"{extra[0]} is for browsers, and its environment is {own.environment!r}: leave one of them out")
        place = OwnEnvironment.read(own.environment, path.parent)
    except UsageError as error:
        raise UsageError(f"{path}: task {own.id}: {error}") from error
    private: dict[str, Scalar] = {ENVIRONMENT: msgspec.json.encode(place).decode()}
    return Task(id=f"own/{own.id}?seed={own.seed}", instruction=own.goal, seed=own.seed, images=own.images, private=private)


def _webarena_task(path: Path, item: dict[str, Any]) -> Task:
    """Return the task of an entry in WebArena's form, at the user's own sites. Raises UsageError that names file, task and field."""
    file, addresses = parse(item, str(path)), Addresses("", os.environ)
    resets, browser = Resets(addresses, os.environ), dict[str, Any]()
    with at(f"{path}: task {file.task_id}"):
        first, *others = map(addresses.fill, file.starts)
        images = [addresses.fill(image) for image in file.images]
        check_resets(file, resets, published=())
        if state := own_state(file, (path.parent, Path()), published=()):
            browser = {"login": {"state": str(state.resolve())}}
        hooks = [hook for site in file.sites if file.require_reset and (hook := resets.hook(site))]
        if len(hooks) > 1:
            raise UsageError("`require_reset`: it names several sites, and one can be reset: give each its own task, or write `false`")
    place = f"{file.geolocation.latitude} {file.geolocation.longitude}" if file.geolocation else ""
    own = {"id": str(file.task_id), "goal": file.goal, "url": first, "tabs": others, "geolocation": place, "images": images}
    made = _task(path, 0, {**own, "evaluate": item["eval"]})
    metadata = dict(made.metadata)
    if browser:
        metadata["browser"] = json.dumps(browser)
    if hooks:
        metadata["outside"] = msgspec.json.encode(Outside(site=Site(reset=hooks[0]))).decode()
    return msgspec.structs.replace(made, metadata=metadata)


def kept(path: Path, name: str, said: str | dict[str, Any]) -> str:
    """Return an evaluator in the form that is stored with the task. It is loaded now, so that a fault shows before anything is spent."""
    try:
        if isinstance(said, dict):
            file = _as_file(said)
            evaluators(file, _setting(None, None))
            return _json(said)
        place, colon, function = said.rpartition(":")
        if not colon:
            raise UsageError(f"evaluate {said!r} names no function: write checks.py:function")
        absolute = f"{(path.parent / place).resolve()}:{function}"
        _function(absolute)
    except UsageError as error:
        raise UsageError(f"{path}: task {name}: {error}") from error
    return absolute


def _json(said: dict[str, Any]) -> str:
    """Return JSON in which dates, which YAML makes of some texts, are texts again."""
    try:
        return msgspec.json.encode(said).decode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"evaluate cannot be kept as JSON: {error}") from error


def _as_file(said: dict[str, Any]) -> TaskFile:
    plain = {"task_id": "own", "sites": [], "require_login": False, "storage_state": None, "start_url": "own", "geolocation": None}
    return parse({**plain, "require_reset": False, "intent": "own", "eval": said}, "evaluate")


def _setting(models: ModelsConfig | None, chat: Callable[[str], ChatModel] | None) -> EvaluatorContext:
    def nobody(role: str) -> ChatModel:
        raise UsageError(f"there is no model for {role}")

    return EvaluatorContext("webarena", Addresses("", os.environ), Judges(opener(models, chat or nobody)), ON_PAGES)


def _by_rules(task: Task, said: dict[str, Any], models: ModelsConfig | None, chat: Callable[[str], ChatModel] | None) -> Evaluator:
    file, setting = msgspec.structs.replace(_as_file(said), intent=task.instruction), _setting(models, chat)
    checks = evaluators(file, setting, task.id)
    setting.judges.need(roles(file))

    async def verdict(page: Page, outcome: Outcome) -> Score:
        return await evaluate(checks, page, outcome)

    return verdict


def _by_function(function: Callable[[Page, Outcome], Any], name: str) -> Evaluator:
    async def verdict(page: Page, outcome: Outcome) -> Score:
        from playwright.async_api import TimeoutError as Waited

        def called() -> object:
            with _failing(name):
                return function(page, outcome)

        try:
            with bounded_loads(page):
                await whole(page)
                found = called() if inspect.iscoroutinefunction(function) else await asyncio.wrap_future(run_in_thread(called))
                with _failing(name):
                    found = await found if inspect.isawaitable(found) else found
            return _score(found, name)
        except AssertionError as error:
            return Score(value=0.0, success=False, reason=str(error) or "an assertion does not hold")
        except Waited as error:
            if not await _answers(page):
                raise
            if _method(error) == "wait_for_load_state":
                why = "the page goes on loading: wait for an element, or for `domcontentloaded`, instead"
                raise EvaluatorError(f"the evaluator {name} failed: {_first_line(error)}: {why}") from error
            if _method(error) in ("goto", "reload", "go_back", "go_forward"):
                raise
            return Score(value=0.0, success=False, reason=_first_line(error))

    return verdict


def _method(error: Exception) -> str:
    """Return the method whose timeout an error reports: Playwright's message begins with it, as in `Page.goto: ...`."""
    return str(error).partition(":")[0].rpartition(".")[2]


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


async def _answers(page: Page) -> bool:
    """Return whether a page is responsive.

    A page that is busy forever is broken, and an element that is missing on it is not a failure of the page.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_ALIVE):
            await page.evaluate("0")
            return True
    return False


@contextmanager
def _failing(name: str) -> Iterator[None]:
    """Turn an error in an evaluator that does not concern the attempt into an EvaluatorError."""
    from playwright.async_api import Error

    try:
        yield
    except (AssertionError, ExactError, Error):
        raise
    except Exception as error:
        raise EvaluatorError(f"the evaluator {name} failed: {type(error).__name__}: {error}") from error


def _score(found: object, name: str) -> Score:
    if isinstance(found, Score) and 0 <= found.value <= 1:
        return found
    if isinstance(found, bool | int | float) and 0 <= found <= 1:
        return Score(value=float(found), success=float(found) == 1.0)
    raise EvaluatorError(f"the evaluator {name} gave {found!r}: give a Score or a number in [0, 1], True or False")


@functools.lru_cache
def _function(said: str) -> Callable[[Page, Outcome], Any]:
    """Return the function of `file.py:name`. Raises UsageError."""
    place, _, name = said.rpartition(":")
    path = Path(place)
    module = load_file("evaluate", path)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"evaluate: {path} has no function {name!r}")
    found: Callable[[Page, Outcome], Any] = function
    return found
