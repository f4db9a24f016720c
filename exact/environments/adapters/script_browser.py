"""WebArena's `ScriptBrowserEnv`, which is synchronous, from any event loop and in any number.

async with script_browsers() as open, open() as browser:
    state = await browser.reset(config)
    state = await browser.action("click [12]")
    await browser.end("42")
    score = await browser.score()

Each runs in a separate process. Every command returns its result, or raises an error whose cause has the traceback of the other
process. Search uses the same environment through `script_browser_factory`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from exact.environments.adapters.gym import GUESTS, browsergym_python, has_module
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.launch.find import find_browser
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, Worker, WorkerFactory
from exact.environments.sandbox.sandboxes import LIMIT
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.task import Outcome, Score, Task
from exact.version import set_up

_SITES = ("REDDIT", "SHOPPING", "SHOPPING_ADMIN", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE", "OPENAI_API_KEY")
"""Our environment variables that WebArena's tasks and judges read."""


class ScriptBrowserState(msgspec.Struct, frozen=True, kw_only=True):
    """State from which an agent's prompt is made."""

    observation: str
    """WebArena's accessibility tree, one element per line."""
    url: str
    """Address of the page."""
    objective: str
    """The task's instruction."""
    error: str = ""
    """Reason why the last action was not carried out. Empty if it was."""

    @property
    def prompt(self) -> str:
        """State as text. The error comes last, if there is one."""
        last = f"\nLAST ERROR: {self.error}" if self.error else ""
        return f"OBSERVATION:\n{self.observation}\nURL: {self.url}\nOBJECTIVE: {self.objective}{last}"


class ScriptBrowser:
    """One ScriptBrowserEnv. One command at a time."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._observation: Observation | None = None
        self._actions: list[str] = []
        self._answer: str | None = None
        self._error = ""

    @property
    def state(self) -> ScriptBrowserState:
        """Present state. Raises EnvironmentFailure before the first reset."""
        if self._observation is None:
            raise EnvironmentFailure("there is no observation: reset first")
        return ScriptBrowserState(
            observation=self._observation.text, url=self._observation.url, objective=self._observation.instruction, error=self._error
        )

    async def reset(self, config: Mapping[str, Any] | Path) -> ScriptBrowserState:
        """Begin a task: a configuration in WebArena's form, or a file with one.

        Raises EnvironmentFailure, and UsageError if the file cannot be read.
        """
        task = task_of(config)
        self._observation, self._actions, self._answer, self._error = None, [], None, ""
        self._observation = await self._worker.reset(task)
        return self.state

    async def action(self, text: str) -> ScriptBrowserState:
        """Carry out an action in WebArena's form, such as `click [4]` or `type [5] [pears] [1]`. A refusal is reported in `error`."""
        try:
            transition = await self._worker.step(self._worker.actions.action("do", text))
        except ActionError as error:
            self._error = str(error)
            return self.state
        self._error = ""
        self._actions.append(text)
        self._observation = transition.observation or self._observation
        return self.state

    async def end(self, answer: str = "") -> None:
        """End the task with an answer."""
        await self._worker.step(self._worker.actions.action("stop", answer))
        self._actions.append(f"stop [{answer}]")
        self._answer = answer

    async def score(self) -> Score:
        """Return the score of WebArena's evaluator for the present page."""
        return await self._worker.evaluate(Outcome(actions=tuple(self._actions), answer=self._answer))

    async def save_trace(self, path: Path) -> None:
        """Save Playwright's trace since the reset. Raises EnvironmentFailure if none was recorded."""
        reply = await self._worker.command("save_trace")
        await asyncio.to_thread(path.write_bytes, reply["trace"])


OpenScriptBrowser = Callable[[], AbstractAsyncContextManager[ScriptBrowser]]
"""Opens one ScriptBrowser."""


@asynccontextmanager
async def script_browsers(
    *, python: Path | None = None, trace: bool = False, options: Mapping[str, Any] | None = None, timeouts: GuestTimeouts | None = None,
    log: Path | None = None,
) -> AsyncIterator[OpenScriptBrowser]:  # fmt: skip
    """Return a function that opens them, for the time of the block.

    `trace`: whether Playwright records a trace. For the others see `script_browser_factory`.
    """
    environments = WorkerFactory(_spec(python, trace=trace, isolated=False, options=options), timeouts=timeouts, log=log)

    @asynccontextmanager
    async def open() -> AsyncIterator[ScriptBrowser]:
        async with environments.open(simulation=False) as worker:
            yield ScriptBrowser(worker)

    yield open


@asynccontextmanager
async def script_browser_factory(
    *, python: Path | None = None, sandbox: bool = False, reads: Sequence[Path] = (), isolated: bool = False,
    config: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None, timeouts: GuestTimeouts | None = None,
    limit: int = LIMIT, log: Path | None = None,
) -> AsyncIterator[EnvironmentFactory]:  # fmt: skip
    """Open a factory of ScriptBrowserEnv for search, for the time of the block. `task_of` makes its tasks.

    `python`: that of a virtual environment that has libwebarena and Playwright; by default BrowserGym's. `sandbox`: whether each runs in
    gVisor, in which it sees `reads` and no network. `isolated`: whether a reset undoes every side effect, as with pages from files.
    `config`: for tasks that have none. `options`: those of ScriptBrowserEnv. Raises UsageError if libwebarena is missing.
    """
    spec = _spec(python, trace=False, isolated=isolated or sandbox, options=options, config=config)
    if not sandbox:
        yield WorkerFactory(spec, timeouts=timeouts, log=log)
        return
    from exact.environments.sandbox.factory import sandboxed_factory

    async with sandboxed_factory(spec, reads=reads, timeouts=timeouts, limit=limit, log=log) as environments:
        yield environments


def task_of(config: Mapping[str, Any] | Path) -> Task:
    """Return the task of a configuration in WebArena's form. Raises UsageError if it is invalid."""
    try:
        fields = dict(config) if isinstance(config, Mapping) else json.loads(config.read_text("utf-8"))
        name = f"webarena/{fields.get('task_id', 'task')}"
        return Task(id=name, instruction=str(fields["intent"]), private={"config": json.dumps(fields)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"not a task in WebArena's form: {type(error).__name__}: {error}: it needs intent, start_url and eval") from error


def _spec(
    python: Path | None, *, trace: bool, isolated: bool, options: Mapping[str, Any] | None, config: Mapping[str, Any] | None = None
) -> EnvironmentSpec:
    python = python or browsergym_python()
    if not has_module(python, "webarena"):
        raise UsageError(
            f"libwebarena is not in {python.parents[1]}: {set_up('--browsergym', f'run {python} -m pip install --no-deps libwebarena')}"
        )
    arguments = {"browser": str(find_browser()), "trace": trace, "isolated": isolated, "options": dict(options or {})}
    if config:
        arguments["config"] = task_of(config).private["config"]
    env = {name: os.environ[name] for name in _SITES if name in os.environ}
    return EnvironmentSpec(f"{GUESTS / 'script_browser_guest.py'}:ScriptBrowserGuest", arguments, python=python, paths=(GUESTS,), env=env)
