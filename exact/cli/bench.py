"""`exact bench`: run several agents on a suite at equal budgets and compare them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from exact.cli.terminal import echo
from exact.counted import counted
from exact.errors import UsageError

if TYPE_CHECKING:
    from exact.config import Config
    from exact.evaluation.engine import Engine
    from exact.evaluation.folder import BenchFolder, Result
    from exact.evaluation.local import LocalEngine
    from exact.evaluation.plan import BenchSession
    from exact.evaluation.summary import Reward
    from exact.task import Task


REPORT = 3.0
"""Megabytes that the report of one attempt may take in a benchmark, which has many."""


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


def _renamed(new: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """Return a callback of an option of an earlier version that raises UsageError with the new spelling."""

    def callback(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise UsageError(f"{option.opts[0]} is now {new}")

    return callback


@click.command()
@click.argument("suite", nargs=-1, metavar="SUITE...")
@click.option(
    "--agent", "-a", "agents", multiple=True, metavar="AGENT", help="YAML file of an agent, or a name: react, mcts, rmcts, ... Repeatable."
)
@click.option("--seeds", metavar="LIST", help="Seeds of the tasks whose pattern gives none: 0..4 or 3,7. Default: 0.")
@click.option(
    "--budget", multiple=True, metavar="KIND=AMOUNT", help="Limit on each attempt of all agents: actions=15, money=0.5. Repeatable."
)
@click.option("--own-budgets", is_flag=True, help="Keep the limits of each agent's configuration. The table says that they are not equal.")
@click.option(
    "--set", "-s", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one configuration key of all agents. Repeatable."
)
@click.option("--strict-nltk", is_flag=True, help="Split answers in WebArena's and VisualWebArena's tasks with nltk, which you install.")
@click.option("--parallel", "-p", type=click.IntRange(1), help="Number of concurrent attempts. Default: one for each processor.")
@click.option(
    "--memory", type=click.FloatRange(0.1), metavar="GIB", help="Limit on the memory of all environments. Default: 0.8 of the free memory."
)
@click.option(
    "--cores", type=click.FloatRange(0.1), help="Number of processors busy with environments above which no further environment is used."
)
@click.option(
    "--environments", type=click.IntRange(1), help="Limit on the open environments of each kind. Default: as many as the attempts may need."
)
@click.option("--worlds", hidden=True, expose_value=False, callback=_renamed("--environments"))
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Run the attempts in this process, or in processes on Ray.",
)
@click.option(
    "--reruns",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Maximum number of reruns of an attempt after infrastructure failures.",
)
@click.option(
    "--hang",
    type=click.FloatRange(1),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds without an event after which an attempt is killed.",
)
@click.option("--allow-same-task", is_flag=True, help="Also show reflections from other seeds of the same task.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Folder to write the benchmark to. Default: runs/bench-<number>.")
@click.option("--resume", is_flag=True, help="Resume the benchmark in --out. Its agents and tasks need not be given again.")
@click.option("--reports/--no-reports", default=True, show_default=True, help="Write a report of each attempt, to which the page links.")
@click.option("--png", is_flag=True, help="Also write the curves as PNG.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each result instead of the table.")
def bench(
    suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None, budget: tuple[str, ...], own_budgets: bool,
    overrides: tuple[str, ...], parallel: int | None, memory: float | None, cores: float | None, environments: int | None, engine: str,
    reruns: int, hang: float, allow_same_task: bool, out: Path | None, resume: bool, reports: bool, png: bool, as_json: bool,
    strict_nltk: bool,
) -> int:  # fmt: skip
    """Run several agents on a suite at equal budgets and compare them.

    Each agent attempts every task and seed. SUITE is a suite, a task or a pattern: miniwob, 'miniwob/@browsergym',
    'miniwob/click-*?seed=0..4'. SUITE may also be a file of tasks on your own site: tasks.yaml for all of them, 'tasks.yaml#open-*' for
    some.

    Hung attempts are killed and retried once. An interrupted benchmark continues with --resume. The command writes results.jsonl,
    table.md, curves and index.html.
    """
    from exact.evaluation.folder import BenchFolder

    if resume:
        if out is None:
            raise UsageError("--resume requires --out: give the folder of the benchmark")
        folder = BenchFolder.open(out)
        anew = click.get_current_context().get_parameter_source("reruns") is not ParameterSource.DEFAULT
        _fixed(out, {
            "--budget": budget, "--set": overrides, "--strict-nltk": strict_nltk, "--own-budgets": own_budgets, "--reruns": anew,
            "--allow-same-task": allow_same_task, "--seeds": seeds and not suite,
        })  # fmt: skip
        _same(folder, suite, agents, seeds)
    else:
        overrides += ("models.strict_nltk=true",) * strict_nltk
        folder = _create(suite, agents, seeds, budget, own_budgets, overrides, reruns, allow_same_task, out)
    bounds = ResourceLimits(memory=memory, cores=cores, environments=environments, hang=hang)
    parallel = _fitting(folder, parallel or os.cpu_count() or 1, environments)
    if resume:
        _add_session(folder)
    try:
        results = asyncio.run(_run(folder, engine, parallel, bounds, as_json=as_json))
    except (KeyboardInterrupt, asyncio.CancelledError):
        echo(f"exact: interrupted; resume with: exact bench --resume --out {folder.path}", err=True)
        return 130
    else:
        if reports:
            _write_reports(folder)
    finally:
        _outputs(folder, png=png, quiet=as_json)
    if failed := [each for each in results if each.status == "failed"]:
        echo(f"exact: {_way_on(failed, folder.path)}", err=True)
    return 1 if failed else 0


def _way_on(failed: list[Result], path: Path) -> str:
    """Return what to do about failed attempts."""
    lasting = sum(not each.resumable for each in failed)
    if lasting == len(failed):
        return f"{counted(lasting, 'attempt')} failed, and resuming cannot help: when the cause is fixed, start a new benchmark"
    rest = f" ({lasting} of them need a new benchmark)" if lasting else ""
    return (
        f"{counted(len(failed), 'attempt')} failed: when the cause is fixed, run: exact bench --resume --out {shlex.quote(str(path))}{rest}"
    )


def _create(
    suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None, budget: tuple[str, ...], unequal: bool, overrides: tuple[str, ...],
    reruns: int, same_task: bool, out: Path | None,
) -> BenchFolder:  # fmt: skip
    """Create a benchmark. Every wrong argument is reported before anything is written."""
    from exact.cli.task_files import are_task_files
    from exact.evaluation.agents import agent_config
    from exact.evaluation.folder import BenchFolder
    from exact.evaluation.plan import Plan, at_equal_budgets, budget_of, checked_names, require_equal_judges
    from exact.runs.runner import check_models, refuse_reward
    from exact.search.registry import algorithm

    if not suite or not agents:
        raise UsageError("no suite or no agent given: exact bench miniwob/@browsergym --agent react --agent mcts --seeds 0..4")
    tasks = _tasks(suite, seeds)
    configs = [agent_config(each, overrides) for each in agents]
    names = checked_names([config.name for config in configs])
    configs, caps = at_equal_budgets(configs, budget_of(budget), own=unequal)
    own = are_task_files(suite)
    if _asks_models(tasks, own):
        require_equal_judges(configs)
    for config in configs:
        algorithm(config.search)
        check_models(config)
        if config.value.kind == "reward":
            refuse_reward(tasks, benchmark=not own)
        if config.models.strict_nltk:
            from exact.benchmarks.webarena.word_tokenize import word_tokenize

            word_tokenize()
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
    return BenchFolder.create(out or _free(), plan, {config.name: _remembering(config, same_task) for config in configs})


def _add_session(folder: BenchFolder) -> None:
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
    from exact.benchmarks.own import by_rules

    return any(by_rules(task) if own else isinstance(registry.suite(task.id), ModelEvaluatedSuite) for task in tasks)


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
    for each in suite:
        name, found, query = each.partition("?")
        name = name if "/" in name else f"{name}/*"
        patterns.append(f"{name}?{query}" if found else f"{name}?seed={seeds or 0}")
    return tuple(registry.expand(patterns))


def _fixed(path: Path, given: Mapping[str, object]) -> None:
    """Raise UsageError where an option was given that is fixed since the benchmark was created."""
    if names := ", ".join(name for name, value in given.items() if value):
        raise UsageError(
            f"{names} cannot be changed with --resume: {path} continues as it was created; leave it out, or choose another --out"
        )


def _same(folder: BenchFolder, suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None) -> None:
    """Raise UsageError where the given tasks or agents are not those of the benchmark."""
    from exact.evaluation.agents import agent_config

    plan = folder.plan
    if suite and {task.id for task in _tasks(suite, seeds)} != {task.id for task in plan.tasks}:
        raise UsageError(f"{folder.path} has other tasks ({plan.suite}): name none with --resume, or choose another --out")
    if agents and {agent_config(each).name for each in agents} != set(plan.agents):
        raise UsageError(f"{folder.path} has other agents ({', '.join(plan.agents)}): name none with --resume, or choose another --out")


async def _run(folder: BenchFolder, engine: str, parallel: int, bounds: ResourceLimits, *, as_json: bool) -> list[Result]:
    import msgspec

    from exact.cli.outcome import details, outcome
    from exact.environments.pool.capacity import Capacity, PoolLimits, measure_usage
    from exact.evaluation.schedule import Schedule

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)

    def finished(result: Result, done: int, of: int) -> None:
        if as_json:
            echo(msgspec.json.encode(result))
            return
        steps = f", {counted(result.transitions, 'step')}, {result.seconds:.1f} s" if result.began else ""
        echo(f"{done}/{of} {result.agent} {result.task} {outcome(result)}{steps}", err=True)
        for text in details(result):
            echo(text, err=True)

    def notify(text: str) -> None:
        echo(f"exact: {text}", err=True)

    learned = {agent: folder.agent(agent)[1].reflection for agent in folder.plan.agents}
    rounds = {agent: max(1, each.round) for agent, each in learned.items() if each.kind != "none"}
    capacity = Capacity(PoolLimits(memory=_memory(bounds.memory)), measure_usage, loop.time)
    async with _engine(folder, engine, parallel, bounds) as made:
        return await Schedule(
            folder=folder, engine=made, parallel=parallel, capacity=capacity, rounds=rounds, finished=finished, notify=notify
        ).run()


@contextlib.asynccontextmanager
async def _engine(folder: BenchFolder, engine: str, parallel: int, bounds: ResourceLimits) -> AsyncIterator[Engine]:
    if engine == "ray":
        from functools import partial

        from exact.benchmarks.open import environment_kind
        from exact.evaluation.ray_engine import RayEngine

        async with RayEngine(
            folder.path,
            lanes=parallel,
            hang=bounds.hang,
            make=f"{__name__}:lane_engine",
            arguments=(parallel, bounds.cores, bounds.environments),
            key=partial(environment_kind, benchmark=not folder.plan.own),
        ) as lanes:
            yield lanes
        return
    async with local_engine(folder, parallel, bounds) as local:
        yield local


def lane_engine(folder: BenchFolder, lanes: int, cores: float | None, environments: int | None) -> LocalEngine:
    """Return the engine of one of `lanes`, with its part of the limits. The process that started the lanes detects hangs."""
    part = ResourceLimits(cores=cores and cores / lanes, environments=environments and max(1, environments // lanes))
    return local_engine(folder, 1, part, share=1 / lanes)


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


def _fitting(folder: BenchFolder, parallel: int, environments: int | None) -> int:
    """Return how many attempts can run at once and have all their environments.

    An attempt that waits for an environment while it holds another could wait for ever. Raises UsageError where none fits.
    """
    if environments is not None and environments < _wanted(folder):
        raise UsageError(
            f"--environments {environments} is too few: one attempt may need {_wanted(folder)}; give more, or search.workers=1"
        )
    return parallel if environments is None else min(parallel, environments // _wanted(folder))


def _memory(gib: float | None) -> int | None:
    """Return the limit in bytes; by default 0.8 of the free memory, None where the system does not report it."""
    if gib is not None:
        return int(gib * 2**30)
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        return int(int(line.split()[1]) * 1024 * 0.8)
    return None


def _write_reports(folder: BenchFolder) -> None:
    """Write the report of each attempt that has none, or an older one, and the page of each agent."""
    from exact.report import build_index, build_report

    for run in (folder.agent(agent)[0] for agent in folder.plan.agents):
        for task in run.manifest.tasks:
            report, journal = (run.task_folder(task) / name for name in ("report.html", "journal.jsonl"))
            if journal.exists() and not (report.exists() and report.stat().st_mtime_ns >= journal.stat().st_mtime_ns):
                try:
                    build_report(run, task, most=REPORT)
                except UsageError:  # it is larger even without pictures
                    build_report(run, task, screenshots=False)
        build_index(run)


def _outputs(folder: BenchFolder, *, png: bool, quiet: bool) -> None:
    from exact.evaluation.output import as_png, write_outputs

    paths = write_outputs(folder, rewards_of(folder))
    if png:
        for path in [path for path in paths if path.suffix == ".svg"]:
            asyncio.run(as_png(path))
    if not quiet:
        echo((folder.path / "table.md").read_text("utf-8"))
        echo(f"{folder.path / 'index.html'}")


def rewards_of(folder: BenchFolder) -> Mapping[str, Reward]:
    """Return the rewards that the benchmark's suite defines, by name."""
    from exact.benchmarks import registry
    from exact.benchmarks.base import RewardedSuite

    suites = {task.id.partition("/")[0] for task in folder.plan.tasks} if not folder.plan.own else set()
    suite = registry.suite(suites.pop()) if len(suites) == 1 else None
    return suite.rewards() if isinstance(suite, RewardedSuite) else {}


def _free() -> Path:
    number = 1
    while Path("runs", f"bench-{number}").exists():
        number += 1
    return Path("runs", f"bench-{number}")
