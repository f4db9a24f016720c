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
        """Return every task id, without a seed, in a fixed order."""
        ...

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the named lists of ids on which results are published. `suite/@list` names one in a pattern."""
        ...

    def task(self, id: str) -> Task:
        """Return the task of an id (`?seed=n`; 0 if absent). Raises UsageError that names the nearest id."""
        ...

    def environments(self, config: BrowserConfig) -> AbstractAsyncContextManager[EnvironmentFactory]:
        """Open the servers and the browser that all environments of the suite share; all are closed on leaving.

        Raises EnvironmentFailure if they do not start.
        """
        ...


@runtime_checkable
class ModelEvaluatedSuite(Protocol):
    """A suite in which some evaluators ask a model: `models.parts.evaluator` of a configuration, never the agent's own."""

    def with_models(self, models: ModelsConfig) -> Suite:
        """Return the suite with these models for its evaluators."""
        ...


@runtime_checkable
class ServedSuite(Protocol):
    """A suite that gives the page set-up and the evaluator of tasks that declare services (see sandbox/service.py)."""

    def page(self, task: Task) -> tuple[PageSetup, Evaluator | None]:
        """Return the set-up of a task's pages, and the task's evaluator if there is one."""
        ...


@runtime_checkable
class MixedSuite(Protocol):
    """A suite whose tasks need different kinds of environments."""

    def kind(self, task: Task) -> str:
        """Return a key that is equal for tasks that share environments."""
        ...

    def environments_of(self, task: Task, config: BrowserConfig) -> AbstractAsyncContextManager[EnvironmentFactory]:
        """Open the environments of this task's kind, as `Suite.environments` does. Raises UsageError that names the missing part."""
        ...


@runtime_checkable
class EquippedSuite(Protocol):
    """A suite that needs more than this package brings."""

    def check(self, task: Task) -> None:
        """Raise UsageError that names what this machine lacks for a task, and how to get it. Nothing is started or written."""
        ...


@runtime_checkable
class RequiringSuite(EquippedSuite, Protocol):
    """An equipped suite whose tasks need different programs of this machine."""

    def requirements(self, task: Task) -> tuple[str, ...]:
        """Return the programs that a task needs. Of tasks with the same ones, one is checked."""
        ...


@runtime_checkable
class ActionSuite(Protocol):
    """A suite whose action space the user chooses, so that some policies cannot act in it."""

    def check_policy(self, kind: str) -> None:
        """Raise UsageError, with the way out, if a policy of this kind has nothing to propose in the chosen action space."""
        ...


@runtime_checkable
class RewardedSuite(Protocol):
    """A suite whose raw figure (`Score.raw`) has several published readings. An attempt without a figure counts 0 in each."""

    def rewards(self) -> Mapping[str, Callable[[float], float]]:
        """Return functions from the raw figure to a reward in [0, 1], by the name that tables use."""
        ...


def environments_for(suite: Suite, task: Task, config: BrowserConfig) -> AbstractAsyncContextManager[EnvironmentFactory]:
    """Open the environments in which a task of a suite is attempted."""
    return suite.environments_of(task, config) if isinstance(suite, MixedSuite) else suite.environments(config)
