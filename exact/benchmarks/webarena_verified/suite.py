"""WebArena-Verified's tasks as a suite, on sites that the user hosts.

The goal of a task as agents get it: the evaluators read the answer as JSON.

Files of an attempt as webarena-verified names them, to be scored again or handed in.

The score of an attempt by the published evaluators, which run in a process by the interpreter of a separate virtual environment.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import msgspec

from exact.benchmarks.ids import join, split
from exact.benchmarks.webarena.format import at
from exact.benchmarks.webarena.resets import Resets
from exact.benchmarks.webarena.sessions import FORMS, Sessions
from exact.benchmarks.webarena.suite import auth_folder
from exact.benchmarks.webarena.variables import Addresses
from exact.benchmarks.webarena_verified.install import DataSet, VerifiedTask, interpreter
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.network.har import HarRecorder, har
from exact.environments.browser.page.setup import Beginning
from exact.environments.sites.known import browser_secrets
from exact.errors import EnvironmentFailure, EvaluatorError, InfrastructureError, UsageError, unknown
from exact.machine import Child
from exact.prompts.fence import one_line
from exact.secrecy.scrubber import NOTHING, Scrubber
from exact.task import Outcome, Scalar, Score, Task
from exact.version import __version__, set_up

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page


_TASKS = 812


class WebArenaVerified:
    """Suite with the tasks `webarena_verified/0` to `webarena_verified/811`."""

    name = "webarena_verified"

    def __init__(self, data: DataSet | None = None) -> None:
        """Configure the suite. `data`: by default the package's."""
        self._data = data or DataSet()
        self.addresses = Addresses("WA_", os.environ)
        self.sessions = Sessions(self.addresses, os.environ, folder=auth_folder())
        self.resets = Resets(self.addresses, os.environ)
        self._recorders: WeakKeyDictionary[BrowserContext, HarRecorder] = WeakKeyDictionary()

    def ids(self) -> Sequence[str]:
        """Return the ids, without reading the data set."""
        return tuple(f"{self.name}/{number}" for number in range(_TASKS))

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the list `@hard`, and those by site, type and template: `@shopping`, `@mutate`, `@template-12`. Raises UsageError."""
        found: dict[str, list[str]] = {"hard": [f"{self.name}/{number}" for number in self._data.hard]}
        for number, task in self._data.tasks.items():
            for key in (*task.sites, task.kind, f"template-{task.intent_template_id}"):
                found.setdefault(key, []).append(f"{self.name}/{number}")
        return found

    def task(self, id: str) -> Task:
        """Return the task of an id. Raises UsageError that names the nearest id, or a missing address variable."""
        name, seed = split(id)
        number = name.partition("/")[2]
        if number not in self._data.tasks:
            raise unknown("task", name, self.ids())
        task = self._data.tasks[number]
        with at(f"{self._data.path}: task {number}"):
            first, *others = map(self.addresses.fill, task.start_urls)
            origins = tuple(map(self.addresses.of, task.sites))
        metadata: dict[str, Scalar] = {"sites": " ".join(task.sites), "template": str(task.intent_template_id)}
        if others:
            metadata["tabs"] = "\n".join(others)
        return Task(id=join(name, seed), instruction=instruction(task.intent), start=first, seed=seed, metadata=metadata, origins=origins)

    def check(self, task: Task) -> None:
        """Raise UsageError if the evaluators are not installed."""
        interpreter()

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments on the sites as they are: changes stay until their owner's hook resets them. Raises EnvironmentFailure."""
        async with AsyncExitStack() as stack:
            setup, verdict = PageSetup(prepare=self._prepare, way_out=self.addresses.way_out), self._verdict(config)
            if config.sandbox == "required":
                from exact.environments.browser.fork.factory import forking
                from exact.environments.sites.site import Outside

                limit = config.snapshots << 20
                forks = forking(config, setup, outside=Outside(), evaluator=verdict, limit=limit)
                yield await stack.enter_async_context(forks)
                return
            browser = await stack.enter_async_context(launch(config))
            yield BrowserFactory(browser, setup, config, isolated=False, evaluator=verdict)

    async def _prepare(self, beginning: Beginning) -> None:
        """Check that the evaluators are there; reset the sites of the live environment; log in; then record the live environment."""
        interpreter()
        task = self._task(beginning.task)
        if not beginning.simulation:
            await self.resets.before(task.sites, changes=task.kind == "mutate")
        if known := [site for site in task.sites if site in FORMS]:
            await self.sessions.enter(beginning.context, beginning.page, f"{'.'.join(known)}_state.json", known)
        if not beginning.simulation:
            self._recorders[beginning.context] = await HarRecorder.of(beginning.context, task.kept)

    def _verdict(self, config: BrowserConfig) -> Evaluator:
        folder, scrubber = config.traces, Scrubber(browser_secrets(config.login, os.environ))

        async def verdict(page: Page, outcome: Outcome) -> Score:
            if outcome.task is None or (recorder := self._recorders.get(page.context)) is None:
                raise EnvironmentFailure(f"{self.name}: no traffic of this environment was recorded: it is not the live one")
            task = self._task(outcome.task)
            environments = {site: self.addresses.of(site) for site in task.sites}
            entries = await recorder.entries()
            attempt = RecordedAttempt(task_id=task.task_id, answer=outcome.answer, entries=entries, environments=environments)
            if folder:
                save(folder, attempt, scrubber)
            return await evaluate(interpreter(), attempt)

        return verdict

    def _task(self, task: Task) -> VerifiedTask:
        number = split(task.id)[0].partition("/")[2]
        if number not in self._data.tasks:
            raise UsageError(f"{task.id} is no task of {self.name}: `exact list tasks {self.name}` prints the ids")
        return self._data.tasks[number]


_FORM = """

The final answer is one JSON object with these keys:
- "task_type": "RETRIEVE" where the goal asks for data, "MUTATE" where it asks for a change, "NAVIGATE" where it asks for a page.
- "status": "SUCCESS", or why the goal cannot be reached: "NOT_FOUND_ERROR" (what it names does not exist), "ACTION_NOT_ALLOWED_ERROR" (the
  site does not offer it), "PERMISSION_DENIED_ERROR" (this user may not do it), "DATA_VALIDATION_ERROR" (an input is missing or invalid) or
  "UNKNOWN_ERROR".
- "retrieved_data": for RETRIEVE a list of all that was asked for, as texts, numbers, booleans or objects of one form; otherwise null.
- "error_details": null, or the reason in one sentence where the status is not SUCCESS."""


def instruction(intent: str) -> str:
    """Return the goal with the form of the answer."""
    return intent + _FORM


def save(folder: str, attempt: RecordedAttempt, scrubber: Scrubber = NOTHING) -> Path:
    """Write `agent_response.json` and `network.har`, readable by this user only, and return their folder: `webarena_verified-1/310`.

    `scrubber` removes secrets by their values; credentials are left out by their names before. The first folder `webarena_verified-*`
    without an attempt at that task is taken. Raises UsageError if it cannot be written.
    """
    try:
        place = _new(Path(folder).expanduser(), str(attempt.task_id))
        _write(place / "agent_response.json", scrubber.text(attempt.answer or ""))
        _write(place / "network.har", json.dumps(scrubber.value(har(attempt.entries, __version__)), ensure_ascii=False))
    except OSError as error:
        raise UsageError(f"no HAR can be written to {folder} ({error.strerror}): name another folder at browser.traces") from error
    return place


def _new(folder: Path, name: str) -> Path:
    for number in count(1):
        place = folder / f"webarena_verified-{number}" / name
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            continue
        return place
    raise AssertionError("the numbers do not end")


def _write(path: Path, text: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    path.write_text(text, "utf-8")


_PROGRAM = Path(__file__).with_name("evaluator_guest.py")
_SECONDS = 300.0
"""Seconds that the evaluators have for one attempt. Most of it is the start of their process."""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
"""Environment variables that the evaluators get: no keys and passwords."""
NO_ANSWER = "no final answer was given"


class RecordedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an attempt that the evaluators get."""

    task_id: int
    answer: str | None
    entries: Sequence[dict[str, Any]]
    """Entries of a HAR of the live episode."""
    environments: Mapping[str, str]
    """Addresses of the task's sites."""


class EvaluatorResult(msgspec.Struct, frozen=True):
    """The evaluators' result for an attempt."""

    status: Literal["success", "failure", "error"]
    reasons: tuple[str, ...]


async def evaluate(python: Path, attempt: RecordedAttempt) -> Score:
    """Return the score of an attempt, 1 or 0.

    Raises InfrastructureError if the evaluators fail at this task or do not end, EvaluatorError if their package does not work.
    """
    return score(attempt, await _run(python, attempt))


def score(attempt: RecordedAttempt, result: EvaluatorResult) -> Score:
    """Return the score that a result means. Raises InfrastructureError if the evaluators failed: other tasks can continue."""
    reason = one_line("; ".join(result.reasons), 400)
    if result.status == "error":
        raise InfrastructureError(f"the evaluators of webarena-verified failed at task {attempt.task_id}: {reason}").final()
    if result.status == "success":
        return Score(value=1.0, success=True)
    unanswered = attempt.answer is None
    return Score(value=0.0, success=False, reason=NO_ANSWER if unanswered else reason, unanswered=unanswered)


async def _run(python: Path, attempt: RecordedAttempt) -> EvaluatorResult:
    environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        process = await Child.start(python, "-W", "ignore", "-I", str(_PROGRAM), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ)
    except OSError as error:
        raise EvaluatorError(f"the evaluators of webarena-verified do not start: {python}: {error.strerror}: install them again") from error
    try:
        async with asyncio.timeout(_SECONDS):
            out, said = await process.communicate(msgspec.json.encode(attempt) + b"\n")
    except TimeoutError as error:
        raise EnvironmentFailure(f"the evaluators of webarena-verified did not end within {_SECONDS:g} s: is the machine busy?") from error
    finally:
        await process.end()
    try:
        return msgspec.json.decode(out, type=EvaluatorResult)
    except msgspec.MsgspecError as error:
        last = next((line.strip() for line in reversed(said.decode("utf-8", "replace").splitlines()) if line.strip()), "they said nothing")
        raise EvaluatorError(
            f"the evaluators of webarena-verified gave no result (status {process.returncode}): {one_line(last)}: "
            + set_up("--webarena-verified again", "install webarena-verified there again")
        ) from error
