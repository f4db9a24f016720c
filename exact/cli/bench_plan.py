"""The plan of a benchmark, from the arguments of `exact bench`.

The engine of a benchmark, and the limits on the resources of its attempts.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.text import counted

if TYPE_CHECKING:
    from exact.config import Config
    from exact.evaluation.engine import Engine
    from exact.evaluation.folder import BenchFolder
    from exact.evaluation.local import LocalEngine
    from exact.evaluation.plan import BenchSession, Plan
    from exact.task import Task


def planned(
    suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None, budget: tuple[str, ...], unequal: bool, overrides: tuple[str, ...],
    reruns: int, same_task: bool, money: float | None, *, elsewhere: bool = False,
) -> tuple[Plan, list[Config]]:  # fmt: skip
    """Return the plan of a benchmark and its agents. Every wrong argument is reported; nothing is written.

    `elsewhere`: attempts run on other machines, which are asked themselves for keys and browsers.
    """
    from exact.benchmarks import registry
    from exact.benchmarks.open import check_environments
    from exact.cli.task_files import are_task_files
    from exact.evaluation.money import money_limit
    from exact.evaluation.plan import Plan, agent_config, at_equal_budgets, budget_of, checked_names, require_equal_judges
    from exact.runs.runner import check_models, refuse_reward
    from exact.search.registry import algorithm

    if not suite or not agents:
        raise UsageError("no suite or no agent given: exact bench miniwob/@browsergym --agent react --agent mcts --seeds 0..4")
    configs = [agent_config(each, overrides) for each in agents]
    for config in configs:
        registry.use(config)
    tasks = _tasks(suite, seeds)
    names = checked_names([config.name for config in configs])
    configs, caps = at_equal_budgets(configs, budget_of(budget), own=unequal)
    if money is not None:
        for config in configs:
            money_limit(config)
    own = are_task_files(suite)
    if _asks_models(tasks, own):
        require_equal_judges(configs)
    for config in configs:
        algorithm(config.search)
        check_models(config, keys=not elsewhere)
        if config.value.kind == "reward":
            refuse_reward(tasks, benchmark=not own)
        if config.models.strict_nltk:
            from exact.benchmarks.webarena.text import word_tokenize

            word_tokenize()
        if not elsewhere:
            check_environments(tasks, config, benchmark=not own)
    session = _session()
    plan = Plan(
        suite=" ".join(_named(suite, own)) + (f" seeds {seeds}" if seeds else ""),
        own=own,
        agents=names,
        tasks=tasks,
        budget=caps,
        own_budgets=unequal,
        reruns=reruns,
        same_task=same_task,
        versions=session.versions,
        machine=session.machine,
        begun=session.begun,
    )
    return plan, [_remembering(config, same_task) for config in configs]


def create(plan: Plan, configs: Sequence[Config], out: Path | None) -> BenchFolder:
    """Write the folder of a benchmark, and hold it. Raises UsageError if it holds a benchmark or another process writes it."""
    from exact.evaluation.folder import BenchFolder
    from exact.runs.lock import new_folder

    path = out or new_folder(Path("runs"), "bench")
    hold(path)
    folder = BenchFolder.create(path, plan, {config.name: config for config in configs})
    hold_runs(folder)
    return folder


def hold(path: Path) -> None:
    """Hold the folder of a benchmark for this process until the command ends. Raises UsageError if another process does."""
    from exact.runs.lock import LOCK, sole

    click.get_current_context().with_resource(sole(path, LOCK))


def hold_runs(folder: BenchFolder) -> None:
    """Hold the runs of a benchmark's agents, as `hold` does: they can be resumed by themselves."""
    from exact.runs.lock import sole

    for agent in folder.plan.agents:
        click.get_current_context().with_resource(sole(folder.agent_path(agent)))


def add_session(folder: BenchFolder) -> None:
    if changes := folder.add_session(_session()):
        listed = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in changes.items())
        echo(f"exact: {folder.path} resumes with other code or on another machine, which its tables will say: {listed}", err=True)


def _session() -> BenchSession:
    """Return the description of the present session."""
    import platform

    from exact.evaluation.plan import BenchSession
    from exact.runs.journal.versions import versions

    machine = {"system": platform.platform(), "cores": str(os.cpu_count())}
    return BenchSession(versions=versions(), machine=machine, begun=datetime.now(UTC).isoformat(timespec="seconds"))


def _remembering(config: Config, same_task: bool) -> Config:
    """Return the configuration that shows, or hides, reflections from other seeds of the same task."""
    import msgspec

    return msgspec.structs.replace(config, reflection=msgspec.structs.replace(config.reflection, exclude_same_task=not same_task))


def _named(suite: tuple[str, ...], own: bool) -> tuple[str, ...]:
    """Return the patterns for tables: task files by their names, without their folders."""
    if not own:
        return suite
    return tuple(f"{Path(file).name}{sign}{pattern}" for file, sign, pattern in (each.partition("#") for each in suite))


def _asks_models(tasks: tuple[Task, ...], own: bool) -> bool:
    """Return whether the evaluator of any task may ask a model."""
    from exact.benchmarks import registry
    from exact.benchmarks.base import ModelEvaluatedSuite
    from exact.benchmarks.own.evaluate import by_rules

    return any(by_rules(task) if own else isinstance(registry.suite_of(task), ModelEvaluatedSuite) for task in tasks)


def _own_tasks(files: tuple[str, ...], seeds: str | None) -> tuple[Task, ...]:
    """Return the tasks of files, with the given seeds or with their own."""
    import msgspec

    from exact.benchmarks.ids import join, split_pattern
    from exact.cli.task_files import read_task_files

    tasks = read_task_files(files)
    if seeds is not None:
        names = {task.id: split_pattern(f"{task.id.partition('?')[0]}?seed={seeds}") for task in tasks}
        tasks = tuple(
            msgspec.structs.replace(task, id=join(names[task.id][0], seed), seed=seed) for task in tasks for seed in names[task.id][1]
        )
    if duplicates := [id for id, count in Counter(task.id for task in tasks).items() if count > 1]:
        raise UsageError(f"two tasks are named {duplicates[0]}: give each its own id or seed")
    return tasks


def _tasks(suite: tuple[str, ...], seeds: str | None) -> tuple[Task, ...]:
    """Return the tasks that patterns name. A bare suite or task file stands for all its tasks."""
    from exact.benchmarks import registry
    from exact.cli.task_files import are_task_files

    if are_task_files(suite):
        return _own_tasks(suite, seeds)
    patterns = []
    for each in registry.own_suites(suite):
        name, found, query = each.partition("?")
        name = name if "/" in name else f"{name}/*"
        patterns.append(f"{name}?{query}" if found else f"{name}?seed={seeds or 0}")
    return tuple(registry.expand(patterns))


def check_fixed(path: Path, given: Mapping[str, object]) -> None:
    """Raise UsageError if an option was given that is fixed since the benchmark was created."""
    if names := ", ".join(name for name, value in given.items() if value):
        raise UsageError(
            f"{names} cannot be changed with --resume: {path} continues as it was created; leave it out, or choose another --out"
        )


def check_same(folder: BenchFolder, suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None) -> None:
    """Raise UsageError if the given tasks or agents are not those of the benchmark."""
    from exact.evaluation.plan import agent_config

    plan = folder.plan
    if suite and {task.id for task in _tasks(suite, seeds)} != {task.id for task in plan.tasks}:
        raise UsageError(f"{folder.path} has other tasks ({plan.suite}): name none with --resume, or choose another --out")
    if agents and {agent_config(each).name for each in agents} != set(plan.agents):
        raise UsageError(f"{folder.path} has other agents ({', '.join(plan.agents)}): name none with --resume, or choose another --out")


class ResourceLimits(NamedTuple):
    """Limits on the resources of all attempts together; None for no limit."""

    memory: float | None = None
    """GiB."""
    cores: float | None = None
    """Busy processors above which no further environment is used."""
    environments: int | None = None
    """Open environments of each kind."""
    hang: float | None = None
    """Seconds of silence after which an attempt is killed."""
    pause: float = 0.0
    """Seconds before an attempt is rerun whose model did not answer."""


@contextlib.asynccontextmanager
async def open_engine(
    folder: BenchFolder, engine: str, parallel: int | None, bounds: ResourceLimits, *, address: str | None, needs: Mapping[str, float]
) -> AsyncIterator[tuple[Engine, int]]:
    """Yield the engine, and how many attempts run at once: `parallel`, or as many as this machine or the cluster has room for.

    `needs`: resources that each attempt takes of a node of Ray beside a browser or a desktop.
    """
    if engine == "local":
        parallel = fitting(folder, parallel or os.cpu_count() or 1, bounds.environments)
        async with local_engine(folder, parallel, bounds) as local:
            yield local, parallel
        return
    from functools import partial

    from exact.benchmarks.open import environment_kind, resource_of
    from exact.evaluation.remote.cluster import KINDS, connected, room
    from exact.evaluation.remote.engine import RayEngine

    benchmark, here = not folder.plan.own, float(parallel or os.cpu_count() or 1)
    with connected(address, dict.fromkeys(KINDS, here)) as ray:
        wanted = {task.id: {resource_of(task, benchmark=benchmark): 1.0, **needs} for task in folder.plan.tasks}
        parallel = fitting(folder, parallel or max(1, min(room(ray, each) for each in wanted.values())), bounds.environments)
        async with RayEngine(
            folder.path,
            hang=bounds.hang,
            make=f"{__name__}:worker_engine",
            arguments=(parallel, bounds.cores, bounds.environments),
            key=partial(environment_kind, benchmark=benchmark),
            needs=lambda task: wanted[task.id],
        ) as remote:
            if faults := await remote.faults([dict(each) for each in {tuple(needs.items()) for needs in wanted.values()}]):
                for fault in faults:
                    echo(f"exact: {fault}", err=True)
                raise UsageError(f"{counted(len(faults), 'fault')} of the cluster, and no attempt was started: remove them, then --resume")
            yield remote, parallel


def worker_engine(folder: BenchFolder, processes: int, cores: float | None, environments: int | None) -> LocalEngine:
    """Return the engine of one of several processes on Ray, with its part of the limits. The process that started them detects hangs."""
    part = ResourceLimits(cores=cores and cores / processes, environments=environments and max(1, environments // processes))
    return local_engine(folder, 1, part, share=1 / processes)


def local_engine(folder: BenchFolder, parallel: int, bounds: ResourceLimits, *, share: float = 1.0) -> LocalEngine:
    """Return an engine that runs attempts in this process. `share`, in (0, 1]: its part of the providers' rate limits."""
    from functools import partial

    from exact.benchmarks.open import environment_kind, open_environments
    from exact.environments.pool.capacity import PoolLimits
    from exact.evaluation.local import LocalEngine

    notified, benchmark = set[str](), not folder.plan.own

    def notify(text: str) -> None:
        if text not in notified:
            notified.add(text)
            echo(f"exact: {text}", err=True)

    return LocalEngine(
        folder,
        open_environments=lambda task, config: open_environments(task, config, benchmark=benchmark, notify=notify),
        key=partial(environment_kind, benchmark=benchmark),
        limits=PoolLimits(environments=bounds.environments or _wanted(folder) * parallel, processors=bounds.cores),
        hang=bounds.hang,
        share=share,
    )


def _wanted(folder: BenchFolder) -> int:
    """Return how many environments one attempt may hold at once."""
    from exact.evaluation.local import environments_wanted

    return max(environments_wanted(folder.agent(agent)[1]) for agent in folder.plan.agents)


def fitting(folder: BenchFolder, parallel: int, environments: int | None) -> int:
    """Return how many attempts can run at once and have all their environments.

    An attempt that waits for an environment while it holds another could wait for ever. Raises UsageError if none fits.
    """
    if environments is not None and environments < _wanted(folder):
        raise UsageError(
            f"--environments {environments} is too few: one attempt may need {_wanted(folder)}; give more, or search.workers=1"
        )
    return parallel if environments is None else min(parallel, environments // _wanted(folder))


def memory_limit(gib: float | None) -> int | None:
    """Return the limit in bytes; by default 0.8 of the free memory, None if the system does not report it."""
    if gib is not None:
        return int(gib * 2**30)
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        return int(int(line.split()[1]) * 1024 * 0.8)
    return None


def needs_of(words: Iterable[str]) -> dict[str, float]:
    """Parse resources of a node such as `gpu=0.25`. Raises UsageError."""
    found = {}
    for word in words:
        name, _, amount = word.partition("=")
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = -1.0
        if not name or not 0 < found[name] < float("inf"):
            raise UsageError(f"--needs {word}: write a resource that nodes declare and an amount, such as gpu=0.25")
    return found
