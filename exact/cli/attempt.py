"""What `exact run` and `exact resume` share: open worlds, show progress, write reports, say how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.progress import Progress
from exact.config import Config
from exact.environments.base import Worlds
from exact.runs.runner import Runner
from exact.runs.shared import SharedWorlds
from exact.runs.store import Line, RunFolder
from exact.task import Task

if TYPE_CHECKING:
    from exact.environments.browser.environment import Evaluator
    from exact.environments.browser.setup import PageSetup
    from exact.environments.sandbox.service import Service


UNSOLVED = 3
"""Exit code, where it was asked for, of a run in which an attempt did not end as it should."""


def attempt(
    folder: RunFolder,
    config: Config,
    *,
    as_json: bool,
    repeat_uncertain: bool = False,
    fail_unsolved: bool = False,
    junit: Path | None = None,
) -> int:
    """Run what is left of a run to its end; the exit code."""
    try:
        lines = asyncio.run(_attempt(folder, config, as_json=as_json, repeat_uncertain=repeat_uncertain))
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo(f"exact: interrupted; go on with: exact resume {folder.path}", err=True)
        return 130
    from exact.cli.junit import solved, write

    if junit is not None:
        write(lines, config.name, junit)
    if any(line.status == "failed" for line in lines):
        return 1
    return UNSOLVED if fail_unsolved and not all(map(solved, lines)) else 0


async def _attempt(folder: RunFolder, config: Config, *, as_json: bool, repeat_uncertain: bool) -> list[Line]:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    benchmark = folder.manifest.benchmark
    with Progress(folder, config, as_json=as_json) as progress:
        told = set[str]()

        def tell(text: str) -> None:
            if text not in told:
                told.add(text)
                click.echo(f"exact: {text}", err=True)

        async with SharedWorlds(partial(kind_of, benchmark), lambda task: open_worlds(task, config, benchmark, tell)) as worlds:

            def finished(task: Task, line: Line) -> None:
                progress.finished(task, line, _report(folder, task))

            runner = Runner(
                folder=folder, config=config, open_worlds=worlds, watch=progress.event, finished=finished, repeat_uncertain=repeat_uncertain
            )
            return await runner.run()


def kind_of(benchmark: bool, task: Task) -> str:
    """What tasks share whose worlds are opened once: their suite, their kind in it, and their services."""
    if not benchmark:
        return f"{task.id} {task.metadata.get('services', '')}"
    from exact.benchmarks import registry
    from exact.benchmarks.base import Mixed

    suite = registry.suite(task.id)
    return f"{suite.name} {suite.kind(task) if isinstance(suite, Mixed) else ''} {task.metadata.get('services', '')}"


def open_worlds(task: Task, config: Config, benchmark: bool, tell: Callable[[str], None]) -> AbstractAsyncContextManager[Worlds]:
    """The worlds of a task: its suite's, or the user's own site. `tell` is called with what a user should know of them."""
    from exact.environments.sandbox.service import declared

    services = declared(task)
    if benchmark:
        from exact.benchmarks import registry
        from exact.benchmarks.base import Served, worlds_for

        suite = registry.judged(task.id, config.models)
        if not services or not isinstance(suite, Served):
            return worlds_for(suite, task, config.browser)
        setup, evaluator = suite.page(task)
        return _served(config, services, tell, setup, evaluator)
    return _own(task, config, services, tell)


@asynccontextmanager
async def _own(task: Task, config: Config, services: Sequence[Service], tell: Callable[[str], None]) -> AsyncIterator[Worlds]:
    """A site of the user's, and who judges there, if anybody does."""
    from exact.benchmarks.own import evaluator
    from exact.models.open import Models

    models = Models(config.models, folder=Path())
    verdict = evaluator(task, config.models, models.chat)
    try:
        async with _served(config, services, tell, evaluator=verdict) if services else _site(config, verdict) as worlds:
            yield worlds
    finally:
        await models.close()


@asynccontextmanager
async def _served(
    config: Config,
    services: Sequence[Service],
    tell: Callable[[str], None],
    setup: PageSetup | None = None,
    evaluator: Evaluator | None = None,
) -> AsyncIterator[Worlds]:
    """A site that comes with its task."""
    from exact.environments.browser.served import served
    from exact.environments.browser.setup import PageSetup

    async with served(config.browser, setup or PageSetup(), services, application=config.sandbox, evaluator=evaluator, tell=tell) as worlds:
        yield worlds


@asynccontextmanager
async def _site(config: Config, evaluator: Evaluator | None = None) -> AsyncIterator[Worlds]:
    """The user's own site: nothing there is undone. Its browser forks where a sandbox is required."""
    from exact.environments.browser.forking import forking
    from exact.environments.browser.launch import launch
    from exact.environments.browser.setup import PageSetup
    from exact.environments.browser.worlds import BrowserWorlds
    from exact.environments.sites import Outside

    if config.browser.sandbox == "required":
        async with forking(
            config.browser, PageSetup(), outside=Outside(), evaluator=evaluator, limit=config.browser.snapshots << 20
        ) as worlds:
            yield worlds
        return
    async with launch(config.browser) as browser:
        yield BrowserWorlds(browser, PageSetup(), config.browser, sealed=False, evaluator=evaluator)


def _report(folder: RunFolder, task: Task) -> Path:
    """The report of a task that has just ended; the run's index with it."""
    from exact.report import build_index, build_report

    report = build_report(folder, task)
    build_index(folder)
    return report
