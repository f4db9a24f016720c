"""The environments of a task, as the task declares them and the configuration allows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.config import Config
from exact.environments.base import EnvironmentFactory
from exact.environments.own import check_own, own_environment, own_environments
from exact.errors import EnvironmentFailure, UsageError
from exact.plugins import import_later
from exact.task import Task

if TYPE_CHECKING:
    from exact.environments.browser.environment import Evaluator
    from exact.environments.browser.page.setup import PageSetup
    from exact.environments.sites.site import Outside

DECLARED = ("services", "hosts", "outside", "browser", "evaluate", "geolocation", "environment", "suite")
"""The fields of a task's metadata and private part that its environments depend on."""

_IN_BROWSER = frozenset({"miniwob", "webarena", "webarena_verified", "visualwebarena", "trac", "wagtail"})
"""Suites whose environments are browsers of this package."""

_FACTORY = "exact.environments.browser.factory"
"""Module that is imported while a browser starts."""
_ON_DESKTOPS = frozenset({"desktop", "osworld"})
"""Suites whose environments are desktops."""

Notify = Callable[[str], None]


def environment_kind(task: Task, *, benchmark: bool = True) -> str:
    """Return a key that is equal for tasks whose environments can be shared.

    It names the suite and the kind within it (`benchmark`) or the origins of the task's own site, and the task's declarations. Raises
    UsageError if `benchmark` is set and no suite has the task.
    """
    fields = {**task.metadata, **task.private}
    declared = [fields.get(name, "") for name in DECLARED]
    if not benchmark:
        return json.dumps([_origins(task), *declared])
    from exact.benchmarks import registry
    from exact.benchmarks.base import MixedSuite

    suite = registry.suite_of(task)
    return json.dumps([suite.name, suite.kind(task) if isinstance(suite, MixedSuite) else "", *declared])


def resource_of(task: Task, *, benchmark: bool = True) -> str:
    """Return the resource of a machine that an attempt at a task takes: `browser`, `desktop`, or `cpu` for environments that are programs.

    Raises UsageError if `benchmark` is set and no suite has the task.
    """
    if not benchmark:
        return "cpu" if own_environment(task) else "browser"
    from exact.benchmarks import registry

    name = registry.suite_of(task).name
    return "desktop" if name in _ON_DESKTOPS else "browser" if name in _IN_BROWSER or name == "browsergym" else "cpu"


def check_environments(tasks: Iterable[Task], config: Config, *, benchmark: bool = True) -> None:
    """Check that the environments of tasks can be opened here and the policy can act in them, without starting or writing anything.

    `benchmark`: as in `open_environments`. Raises UsageError that names what is missing and how to get it.
    """
    from exact.environments.browser.launch.find import find_browser

    needs_browser = False
    for task in {(environment_kind(each, benchmark=benchmark), _requirements(each, benchmark)): each for each in tasks}.values():
        if not benchmark:
            needs_browser = needs_browser or not check_own(task)
            continue
        from exact.benchmarks import registry
        from exact.benchmarks.base import ActionSuite, EquippedSuite

        suite = registry.suite_of(task)
        if isinstance(suite, ActionSuite):
            suite.check_policy(config.policy.kind)
        if isinstance(suite, EquippedSuite):
            suite.check(task)
        needs_browser = needs_browser or suite.name in _IN_BROWSER
    if needs_browser and not getattr(config.browser, "cdp_url", ""):
        try:
            find_browser(config.browser.headed)
        except EnvironmentFailure as error:
            raise UsageError(str(error)) from error


def _requirements(task: Task, benchmark: bool) -> tuple[str, ...]:
    """Return the programs that a task of a suite needs beside those of its kind of environments."""
    if not benchmark:
        return ()
    from exact.benchmarks import registry
    from exact.benchmarks.base import RequiringSuite

    suite = registry.suite_of(task)
    return suite.requirements(task) if isinstance(suite, RequiringSuite) else ()


def open_environments(
    task: Task, config: Config, *, benchmark: bool = True, notify: Notify = lambda text: None
) -> AbstractAsyncContextManager[EnvironmentFactory]:
    """Return a context manager that opens the environments of a task and closes them, with their servers and browsers, on leaving.

        async with open_environments(registry.task("miniwob/click-test"), Config()) as environments:
            async with environments.open(simulation=False) as environment:
                await environment.reset(task)

    `benchmark` says that the task is of a registered suite; otherwise its site is the user's own, which `task.start` and the task's
    declarations describe. `config` gives the browser, the sandbox and the models of evaluators. `notify` is called with each limitation
    that a user should know of, such as a sandbox that this machine lacks.

    Raises UsageError if the task or the configuration cannot be used here, EnvironmentFailure if an environment does not start.
    """
    from exact.environments.sandbox.service import declared_services

    if not benchmark and (own := own_environment(task)):
        return own_environments(*own)
    if not benchmark:
        return _own_site(task, config, notify)
    from exact.benchmarks import registry
    from exact.benchmarks.base import ServedSuite, environments_for

    suite = registry.suite_with_models(task, config.models)
    if not declared_services(task) or not isinstance(suite, ServedSuite):
        if suite.name in _IN_BROWSER:
            import_later(_FACTORY)
        return environments_for(suite, task, config.browser)
    setup, evaluator = suite.page(task)
    return _site(task, config, notify, setup, evaluator)


@asynccontextmanager
async def _own_site(task: Task, config: Config, notify: Notify) -> AsyncIterator[EnvironmentFactory]:
    """Open the user's own site, with the evaluator that the task declares, if any."""
    import_later(_FACTORY)
    if not task.private.get("evaluate"):
        async with _site(task, config, notify, _setup(task), None) as environments:
            yield environments
        return
    from exact.benchmarks.own.evaluate import evaluator
    from exact.models.open import Models

    models = Models(config.models, folder=Path())
    try:
        async with _site(task, config, notify, _setup(task), evaluator(task, config.models, models.chat)) as environments:
            yield environments
    finally:
        await models.close()


@asynccontextmanager
async def _site(
    task: Task, config: Config, notify: Notify, setup: PageSetup, evaluator: Evaluator | None
) -> AsyncIterator[EnvironmentFactory]:
    """Open the site whose services the task declares, or one that runs elsewhere."""
    from exact.environments.browser.launch.options import browser_config_of
    from exact.environments.browser.network.trust import pinned_keys
    from exact.environments.browser.served import open_remote_site, open_served_site
    from exact.environments.sandbox.service import declared_services
    from exact.environments.sites import site as sites

    browser, services, outside = browser_config_of(config.browser, task), declared_services(task), sites.declared_outside(task)
    if services:
        opened = open_served_site(browser, setup, services, application=config.sandbox, evaluator=evaluator, outside=outside, warn=notify)
    else:
        outside = _with_hosts(outside or sites.Outside(), setup)
        trusted = await pinned_keys(browser.authorities, _origins(task), outside.hosts)
        outside = msgspec.structs.replace(outside, trusted=(*outside.trusted, *trusted))
        opened = open_remote_site(browser, setup, outside, evaluator=evaluator, warn=notify)
    async with opened as environments:
        yield environments


def _with_hosts(outside: Outside, setup: PageSetup) -> Outside:
    return msgspec.structs.replace(outside, hosts={**setup.hosts, **outside.hosts})


def _setup(task: Task) -> PageSetup:
    from exact.environments.browser.page.setup import PageSetup

    text = task.metadata.get("hosts") or "{}"
    try:
        return PageSetup(hosts=msgspec.json.decode(str(text), type=dict[str, str]))
    except msgspec.MsgspecError as error:
        raise UsageError(f"invalid hosts in task {task.id}: {error}: write a JSON object such as {{name: address:port}}") from error


def _origins(task: Task) -> tuple[str, ...]:
    from exact.origins import origins

    return origins(task.start, *task.origins)
