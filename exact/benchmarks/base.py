"""The contract of a benchmark: a named list of tasks, and the environments to attempt them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from exact.config import BrowserConfig, ModelsConfig
from exact.environments.base import EnvironmentFactory
from exact.task import Task

if TYPE_CHECKING:
    from exact.environments.browser.environment import Evaluator
    from exact.environments.browser.page.setup import PageSetup


class Suite(Protocol):
    """A benchmark."""

    @property
    def name(self) -> str:
        """First part of its task ids: `miniwob`."""
        ...

    def ids(self) -> Sequence[str]:
        """Every task id without seed, in a fixed order."""
        ...

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Named lists of ids that results are published on: `suite/@list` names one in a pattern."""
        ...

    def task(self, id: str) -> Task:
        """The task of an id (`?seed=n`, 0 if absent). Raises UsageError that names the nearest id."""
        ...

    def environments(self, config: BrowserConfig) -> AbstractAsyncContextManager[EnvironmentFactory]:
        """Servers and a browser, shared by the environments opened from it; all gone on leaving. Raises EnvironmentFailure."""
        ...


@runtime_checkable
class Judging(Protocol):
    """A suite some of whose verdicts are asked of a model: `models.parts.evaluator` of a configuration, never the agent's own."""

    def judged_by(self, models: ModelsConfig) -> Suite:
        """The suite with these models."""
        ...


@runtime_checkable
class Served(Protocol):
    """A suite that says what its pages need and who judges, for tasks that declare services (see sandbox/service.py)."""

    def page(self, task: Task) -> tuple[PageSetup, Evaluator | None]:
        """The set-up of a task's pages, and its evaluator if it has one."""
        ...


@runtime_checkable
class Mixed(Protocol):
    """A suite whose tasks are not all attempted in the same environments."""

    def kind(self, task: Task) -> str:
        """What tasks share that are attempted in the same environments."""
        ...

    def environments_of(self, task: Task, config: BrowserConfig) -> AbstractAsyncContextManager[EnvironmentFactory]:
        """As Suite.environments, for tasks of this one's kind. Raises UsageError that says what is missing for them."""
        ...


@runtime_checkable
class Rewarded(Protocol):
    """A suite whose own figure (`Score.raw`) may be read in several ways. An attempt that came to none counts 0 in each."""

    def rewards(self) -> Mapping[str, Callable[[float], float]]:
        """Readings in [0, 1] by what tables call them."""
        ...


def environments_for(suite: Suite, task: Task, config: BrowserConfig) -> AbstractAsyncContextManager[EnvironmentFactory]:
    """The environments in which a task of a suite is attempted."""
    return suite.environments_of(task, config) if isinstance(suite, Mixed) else suite.environments(config)
