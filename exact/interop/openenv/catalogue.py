"""The tasks that a server offers, and the environments in which they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec

from exact.benchmarks.ids import join, split
from exact.benchmarks.open import environment_kind, open_environments
from exact.config import Config
from exact.environments.base import EnvironmentFactory
from exact.errors import ExactError, UsageError, unknown
from exact.interop.openenv.held_context import HeldContext
from exact.task import Task

Open = Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]]


class Catalogue:
    """Tasks by name, and their environments, which are opened when they are first wanted and shared by all sessions."""

    def __init__(self, names: Sequence[str], task: Callable[[str, int | None], Task], open: Open, kind: Callable[[Task], str]) -> None:
        """Configure the catalogue.

        names: of the tasks, without seeds; the first is the default. task: makes the task of a name and a seed, or of its default seed.
        open: opens the environments of a task. kind: is equal for tasks that share environments.
        """
        self.names, self._task, self._open, self._kind = list(names), task, open, kind
        self._held: dict[str, HeldContext[EnvironmentFactory]] = {}

    def task(self, name: object, seed: object) -> Task:
        """Return the task that a client names. Raises UsageError.

        name: a name, which may lack the suite's (`click-test`, `miniwob.click-test`), an id with its seed, as `state` reports it, or a
        number, as some suites name their tasks; None or empty: the default. seed: None: that of the id, else the task's own.
        """
        if not isinstance(name, str | int | None) or isinstance(name, bool):
            raise UsageError(f"the task name {str(name)[:80]!r} is no text: name one of the tasks, such as {self.names[0]!r}")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 10**15):
            raise UsageError(f"invalid seed {str(seed)[:80]!r}: give a whole number from 0 on, of at most 15 digits")
        text = "" if name is None else str(name)
        if text not in self.names and "?" in text:
            text, written = split(text)
            if seed not in (None, written):
                raise UsageError(f"the task name gives the seed {written}, and `seed` is {seed}: give one of them")
            seed = written
        return self._task(self._known(text), seed)

    def _known(self, name: str) -> str:
        if not name:
            return self.names[0]
        suite = self.names[0].partition("/")[0]
        for each in (name, f"{suite}/{name}", name.replace(".", "/", 1)):
            if each in self.names:
                return each
        raise unknown("task", name, self.names, way_out="or restart `exact serve` with a suite, which offers all its tasks")

    async def environments(self, task: Task) -> EnvironmentFactory:
        """Return the environments of a task. Raises UsageError, EnvironmentFailure."""
        kind = self._kind(task)
        if kind not in self._held:
            self._held[kind] = HeldContext(self._open(task))
        held = self._held[kind]
        try:
            return await held.value()
        except ExactError:
            if self._held.get(kind) is held:  # the next session tries again
                del self._held[kind]
            raise

    async def close(self) -> None:
        """Close all environments."""
        held, self._held = list(self._held.values()), {}
        await asyncio.gather(*(each.close() for each in held), return_exceptions=True)


def catalogue(environment: str, config: Config, notify: Callable[[str], None] = lambda text: None) -> Catalogue:
    """Return the tasks that a name stands for. Raises UsageError.

    environment: A task id, a pattern or a suite of a benchmark (`miniwob/click-test`, `miniwob/click-*`, `miniwob`), a file of tasks on
    one's own site (`tasks.yaml`, `tasks.yaml#name`), a toy (`toy/maze`), or `module:factory`.
    """
    path, _, name = environment.partition("#")
    if path.endswith((".yaml", ".yml")):
        return _own_site(Path(path), name, config, notify)
    if ":" in environment.partition("?")[0]:
        return _own_factory(environment)
    if environment.partition("/")[0] == "toy":
        return _toy(environment)
    return _suite(environment, config, notify)


def _suite(environment: str, config: Config, notify: Callable[[str], None]) -> Catalogue:
    from exact.benchmarks import registry

    pattern = environment.partition("?")[0]
    suite = registry.suite(pattern)
    ids = suite.ids()
    if not ids:
        raise UsageError(f"{pattern} has no tasks here: docs/benchmarks.md says what it needs")
    names = list(ids) if "/" not in pattern else [task.id.partition("?")[0] for task in registry.expand((pattern,))]
    start = registry.task(environment).seed if "/" in pattern and "*" not in pattern and "@" not in pattern else 0

    def task(name: str, seed: int | None) -> Task:
        return registry.task(join(name, start if seed is None else seed)) if "seed" in registry.task(name).id else registry.task(name)

    def opened(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return open_environments(task, config, notify=notify)

    return Catalogue(names, task, opened, environment_kind)


def _own_site(path: Path, name: str, config: Config, notify: Callable[[str], None]) -> Catalogue:
    from exact.benchmarks.own.files import read

    tasks = {task.id: task for task in read(path, name or "*")}

    def opened(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return open_environments(task, config, benchmark=False, notify=notify)

    def kind(task: Task) -> str:
        return environment_kind(task, benchmark=False)

    return Catalogue(list(tasks), lambda name, seed: msgspec.structs.replace(tasks[name], seed=seed or 0), opened, kind)


def _toy(environment: str) -> Catalogue:
    from exact.environments.toy.factory import ToyFactory
    from exact.environments.toy.known import WORLDS, toy_graph, toy_task

    name = environment.partition("/")[2]
    names = [name] if name else list(WORLDS)
    if name not in ("", *WORLDS):
        raise unknown("toy", name, WORLDS)

    def opened(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return nullcontext(ToyFactory(toy_graph(task.id.partition("/")[2].partition("?")[0], task.seed)))

    return Catalogue(
        [f"toy/{each}" for each in names], lambda name, seed: toy_task(name.partition("/")[2], seed or 0), opened, lambda task: task.id
    )


def _own_factory(environment: str) -> Catalogue:
    from exact.environments.own import own_environments

    name = environment.rpartition(":")[2]

    def opened(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return own_environments("ENV", environment)

    return Catalogue([name], lambda name, seed: Task(id=join(name, seed or 0), instruction="", seed=seed or 0), opened, lambda task: name)
