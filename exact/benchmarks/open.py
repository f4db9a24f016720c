"""The environments of a task, as it declares them and as the configuration allows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.config import Config
from exact.environments.base import EnvironmentFactory
from exact.errors import UsageError
from exact.task import Task

if TYPE_CHECKING:
    from exact.environments.browser.environment import Evaluator
    from exact.environments.browser.page.setup import PageSetup
    from exact.environments.sites.site import Outside

DECLARED = ("services", "hosts", "outside", "browser", "evaluate", "geolocation")
"""What of a task's metadata and private part its environments are made of."""


def kind_of(benchmark: bool, task: Task) -> str:
    """What tasks share whose environments are opened once: their suite and kind in it, or their site; and what they declare."""
    told = {**task.metadata, **task.private}
    declared = [told.get(name, "") for name in DECLARED]
    if not benchmark:
        return json.dumps([_origins(task), *declared])
    from exact.benchmarks import registry
    from exact.benchmarks.base import Mixed

    suite = registry.suite(task.id)
    return json.dumps([suite.name, suite.kind(task) if isinstance(suite, Mixed) else "", *declared])


def open_environments(
    task: Task, config: Config, benchmark: bool, tell: Callable[[str], None]
) -> AbstractAsyncContextManager[EnvironmentFactory]:
    """The environments of a task: its suite's, or the user's own site. `tell` is called with what a user should know of them.

    Raises UsageError, EnvironmentFailure.
    """
    from exact.environments.sandbox.service import declared

    if not benchmark:
        return _judged(task, config, tell)
    from exact.benchmarks import registry
    from exact.benchmarks.base import Served, environments_for

    suite = registry.suite_with_models(task.id, config.models)
    if not declared(task) or not isinstance(suite, Served):
        return environments_for(suite, task, config.browser)
    setup, evaluator = suite.page(task)
    return _own(task, config, tell, setup, evaluator)


@asynccontextmanager
async def _judged(task: Task, config: Config, tell: Callable[[str], None]) -> AsyncIterator[EnvironmentFactory]:
    """A site of the user's, and who judges there, if anybody does."""
    from exact.benchmarks.own import evaluator
    from exact.models.open import Models

    models = Models(config.models, folder=Path())
    try:
        async with _own(task, config, tell, _setup(task), evaluator(task, config.models, models.chat)) as environments:
            yield environments
    finally:
        await models.close()


@asynccontextmanager
async def _own(
    task: Task, config: Config, tell: Callable[[str], None], setup: PageSetup, evaluator: Evaluator | None
) -> AsyncIterator[EnvironmentFactory]:
    """A site that comes with its task, or one that is elsewhere."""
    from exact.environments.browser.network.trust import pins
    from exact.environments.browser.served import elsewhere, served
    from exact.environments.browser.task_config import of_task
    from exact.environments.sandbox.service import declared
    from exact.environments.sites import site as sites

    browser, services, outside = of_task(config.browser, task), declared(task), sites.declared(task)
    if services:
        opened = served(browser, setup, services, application=config.sandbox, evaluator=evaluator, outside=outside, tell=tell)
    else:
        outside = _hosted(outside or sites.Outside(), setup)
        trusted = await pins(browser.authorities, _origins(task), outside.hosts)
        outside = msgspec.structs.replace(outside, trusted=(*outside.trusted, *trusted))
        opened = elsewhere(browser, setup, outside, evaluator=evaluator, tell=tell)
    async with opened as found:
        yield found


def _hosted(outside: Outside, setup: PageSetup) -> Outside:
    return msgspec.structs.replace(outside, hosts={**setup.hosts, **outside.hosts})


def _setup(task: Task) -> PageSetup:
    from exact.environments.browser.page.setup import PageSetup

    text = task.metadata.get("hosts") or "{}"
    try:
        return PageSetup(hosts=msgspec.json.decode(str(text), type=dict[str, str]))
    except msgspec.MsgspecError as error:
        raise UsageError(f"task {task.id} declares hosts that are none: {error}: write {{name: address:port}}") from error


def _origins(task: Task) -> tuple[str, ...]:
    from exact.safety import origins

    return origins(task.start, *task.origins)
