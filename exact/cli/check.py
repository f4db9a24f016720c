"""`exact check`: check an environment against the contract that search relies on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.signals import run_async
from exact.cli.task_files import is_task_file
from exact.cli.terminal import complete_tasks, echo, padded, width
from exact.errors import UsageError
from exact.plugins import plugin_in
from exact.text import counted
from exact.untrusted import read_bounded

if TYPE_CHECKING:
    from exact.environments.base import EnvironmentFactory
    from exact.environments.check import Finding
    from exact.task import Task


@click.command()
@click.argument("environment", metavar="ENV", shell_complete=complete_tasks)
@click.option("--task", "task_id", metavar="ID", help="Task to reset to, where ENV is a module:factory.")
@click.option("--goal", default="", metavar="TEXT", help="Instruction of that task.")
@click.option("--quick", is_flag=True, help="Run fewer depths and cycles: under a minute, unless a step takes seconds.")
@click.option(
    "--limit", type=float, metavar="SECONDS", help="Seconds after which a call counts as hung. Default: 30, or what ENV states of itself."
)
@click.option("--python", metavar="PATH", help="Interpreter that runs module:factory or file.py:factory in a process of its own.")
@click.option(
    "--sandbox/--no-sandbox",
    default=None,
    help="Run the environment in a gVisor sandbox, or not. Default: as a run would for a tasks.yaml, otherwise not.",
)
@click.option(
    "--actions",
    "actions_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Actions to take instead of those that the elements suggest, one on each line: click [3], go "left".',
)
@click.option("--cdp-url", default="", metavar="URL", help="DevTools of a running browser to check a tasks.yaml in. It is not closed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def check(
    environment: str, task_id: str | None, goal: str, quick: bool, limit: float | None, python: str | None, sandbox: bool | None,
    actions_file: Path | None, cdp_url: str, as_json: bool,
) -> int:  # fmt: skip
    """Check the guarantees of the environment contract on ENV. The exit code is 1 if one does not hold.

    ENV is a task id (miniwob/click-button?seed=1), a suite (desktop), of which the first task is used, your own task (tasks.yaml#name), or
    your own environment: module:factory, file.py:factory, or a name in the entry points exact.environments. Modules of the current folder
    are found. The factory is a class or function without arguments that gives an Environment, an EnvironmentFactory, an async context
    manager of one, or an object with reset, step and actions. With --python or --sandbox it is a guest as
    exact/environments/process/guest.py describes.
    """
    if plugin_in(environment) not in ("", environment):  # a task of a user-defined suite
        from exact.benchmarks import registry

        [environment] = registry.own_suites([environment])
    if python and ":" not in environment:
        raise UsageError(f"{environment!r} is no factory, which --python requires: write module:factory or file.py:factory")
    if cdp_url and not is_task_file(environment):
        raise UsageError("--cdp-url is for tasks on your own site: exact check tasks.yaml#name --cdp-url URL")
    guest = ":" in environment and (python or sandbox)
    if is_task_file(environment):
        own = _own(environment)
        task, open_factory = partial(_same, own), partial(_site, own, sandbox, cdp_url)
    else:
        task = partial(_task, environment, task_id, goal)
        open_factory = (
            partial(_guest, environment, python, bool(sandbox)) if guest else partial(_opened, environment, task_id, bool(sandbox))
        )
    written = _read_actions(actions_file) if actions_file else ()
    with _current_folder():
        findings = run_async(_check(open_factory, task, quick, limit, written))
    if as_json:
        import msgspec

        echo(json.dumps(msgspec.to_builtins(findings)))
    else:
        print_findings(findings)
    return 0 if all(finding.passed for finding in findings) else 1


async def _check(
    open_factory: Callable[[], AbstractAsyncContextManager[EnvironmentFactory]],
    task: Callable[[], Task],
    quick: bool,
    limit: float | None,
    actions: Sequence[str],
) -> list[Finding]:
    from exact.environments.check import check as run
    from exact.environments.check import written_actions

    async with open_factory() as environments:
        if not actions:
            return await run(environments, task(), quick=quick, limit=limit)
        propose = await written_actions(environments, actions)
        return await run(environments, task(), quick=quick, limit=limit, propose=propose)


def _read_actions(path: Path) -> tuple[str, ...]:
    """Return the lines of a file of actions, without empty ones and comments. Raises UsageError if none is left."""
    try:
        lines = [line.strip() for line in read_bounded(path).decode("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not (found := tuple(line for line in lines if line and not line.startswith("#"))):
        raise UsageError(f"{path} holds no action: write one on each line, such as click [3]")
    return found


@contextmanager
def _current_folder() -> Iterator[None]:
    """Let modules of the current folder be imported, as `python -m` does."""
    added = str(Path.cwd())
    sys.path.insert(0, added)
    try:
        yield
    finally:
        sys.path.remove(added)


def _task(environment: str, task_id: str | None, goal: str) -> Task:
    from exact.benchmarks import registry
    from exact.environments.own import is_own
    from exact.task import Task

    name = environment.rpartition(":")[2]
    if is_own(environment):
        return Task(id=task_id or name, instruction=goal)
    if task_id or "/" in environment:
        return registry.task(task_id or environment)
    ids = registry.suite(environment).ids()
    if not ids:
        raise UsageError(f"{environment} has no tasks here: docs/benchmarks.md says what it needs")
    return registry.task(ids[0])


def _own(environment: str) -> Task:
    from exact.benchmarks.own.files import read

    path, _, name = environment.partition("#")
    return read(Path(path), name or "*")[0]


def _same(task: Task) -> Task:
    return task


def _site(task: Task, sandbox: bool | None, cdp_url: str) -> AbstractAsyncContextManager[EnvironmentFactory]:
    """Open the environments of a task on the user's own site."""
    from exact.benchmarks.open import open_environments
    from exact.config import Config, parse

    where = "auto" if sandbox is None else "required" if sandbox else "never"
    browser = parse({"browser": {"screenshots": False, "sandbox": where, "cdp_url": cdp_url}}).browser
    return open_environments(task, Config(browser=browser), benchmark=False, notify=partial(echo, err=True))


def _guest(environment: str, python: str | None, sandbox: bool) -> AbstractAsyncContextManager[EnvironmentFactory]:
    from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
    from exact.environments.sandbox.factory import sandboxed_factory

    name = str(Path(environment).absolute()) if environment.rpartition(":")[0].endswith(".py") else environment
    spec = EnvironmentSpec(name, python=Path(python or sys.executable))
    return sandboxed_factory(spec) if sandbox else nullcontext(WorkerFactory(spec))


def _opened(environment: str, task_id: str | None, sandbox: bool) -> AbstractAsyncContextManager[EnvironmentFactory]:
    from exact.environments.own import is_own, own_environments

    if is_own(environment):
        module, _, name = environment.rpartition(":")
        if ":" in environment and not (all(module.removesuffix(".py").split(".")) and name):
            raise UsageError(f"{environment!r} is no factory: write module:factory or file.py:factory")
        return own_environments("ENV", environment)
    from exact.benchmarks import registry
    from exact.benchmarks.base import environments_for
    from exact.config import BrowserConfig

    config = BrowserConfig(screenshots=False, sandbox="required" if sandbox else "never")
    return environments_for(registry.suite(environment), _task(environment, task_id, ""), config)


def print_findings(findings: list[Finding]) -> None:
    """Print one line for each finding, and the number of guarantees that do not hold."""
    names = max(width(finding.name) for finding in findings)
    for finding in findings:
        echo(f"  {padded(finding.name, names)}  {finding.seconds:7.1f} s  {finding.detail}", mark=_mark(finding))
    broken = sum(not finding.passed for finding in findings)
    verb = "does" if broken == 1 else "do"
    echo(f"{broken} of {counted(len(findings), 'guarantee')} {verb} not hold" if broken else "all guarantees hold")


def _mark(finding: Finding) -> str:
    if finding.skipped:
        return click.style("skip", fg="yellow")
    return click.style("ok  ", fg="green") if finding.passed else click.style("FAIL", fg="red")
