"""`exact bench`: several agents, one suite, paired and at equal budgets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from exact.errors import UsageError

if TYPE_CHECKING:
    from exact.config import Config
    from exact.evaluation.engine import Engine
    from exact.evaluation.folder import BenchFolder, Result
    from exact.evaluation.local import LocalEngine
    from exact.evaluation.plan import BenchSession
    from exact.evaluation.summary import Reward
    from exact.task import Task


class ResourceLimits(NamedTuple):
    """What all attempts together may use."""

    memory: float | None = None
    cores: float | None = None
    environments: int | None = None
    """Of each kind."""
    hang: float | None = None


def _renamed(new: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """Return a callback of an option of an earlier version that raises UsageError with the new spelling."""

    def callback(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise UsageError(f"{option.opts[0]} is now {new}")

    return callback


@click.command()
@click.argument("suite", nargs=-1, metavar="SUITE...")
@click.option("--agent", "-a", "agents", multiple=True, metavar="AGENT", help="YAML file, or a name: react, mcts, rmcts, ... Repeatable.")
@click.option("--seeds", metavar="LIST", help="Seeds of each task that names none: 0..4 or 3,7. Default: 0.")
@click.option("--budget", multiple=True, metavar="KIND=AMOUNT", help="Cap on one task, for all agents: actions=15, money=0.5. Repeatable.")
@click.option("--own-budgets", is_flag=True, help="Let each agent keep caps of its own. The table says that they are not equal.")
@click.option("--set", "-s", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one key of all agents. Repeatable.")
@click.option("--parallel", "-p", type=click.IntRange(1), help="Attempts at once. Default: one a processor.")
@click.option(
    "--memory", type=click.FloatRange(0.1), metavar="GIB", help="Bound on what all environments use. Default: 0.8 of what is free."
)
@click.option(
    "--cores", type=click.FloatRange(0.1), help="No further environment is used while environments keep more processors busy than that."
)
@click.option(
    "--environments", type=click.IntRange(1), help="Environments of each kind open at once. Default: as many as attempts may need."
)
@click.option("--worlds", hidden=True, expose_value=False, callback=_renamed("--environments"))
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="Where attempts are made.")
@click.option("--reruns", type=click.IntRange(0), default=3, help="How often an attempt that the infrastructure ended is made again.")
@click.option("--hang", type=click.FloatRange(1), default=900.0, metavar="SECONDS", help="Silence after which an attempt is killed.")
@click.option("--allow-same-task", is_flag=True, help="Show agents that remember lessons from other seeds of the same task too.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Folder of the benchmark. Default: runs/bench-<number>.")
@click.option("--resume", is_flag=True, help="Go on with the benchmark in --out. Its agents and tasks need not be named again.")
@click.option("--png", is_flag=True, help="The curves as PNG too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a result instead of the table.")
def bench(
    suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None, budget: tuple[str, ...], own_budgets: bool,
    overrides: tuple[str, ...], parallel: int | None, memory: float | None, cores: float | None, environments: int | None, engine: str,
    reruns: int, hang: float, allow_same_task: bool, out: Path | None, resume: bool, png: bool, as_json: bool,
) -> int:  # fmt: skip
    """Let several agents attempt a suite: each every task and seed, at equal budgets, several attempts at once.

    SUITE is a suite, a task or a pattern: miniwob, 'miniwob/@browsergym', 'miniwob/click-*?seed=0..4'; or a file of tasks on your own site:
    tasks.yaml for all, 'tasks.yaml#open-*' for some. Attempts that hang are killed, and
    made again once; what was interrupted goes on with --resume. Writes results.jsonl, table.md, curves and index.html.
    """
    from exact.evaluation.folder import BenchFolder

    if resume:
        if out is None:
            raise UsageError("--resume needs --out: the folder of the benchmark to go on with")
        folder = BenchFolder.open(out)
        anew = click.get_current_context().get_parameter_source("reruns") is not ParameterSource.DEFAULT
        _fixed(out, {
            "--budget": budget, "--set": overrides, "--own-budgets": own_budgets, "--reruns": anew,
            "--allow-same-task": allow_same_task, "--seeds": seeds and not suite,
        })  # fmt: skip
        _same(folder, suite, agents, seeds)
    else:
        folder = _create(suite, agents, seeds, budget, own_budgets, overrides, reruns, allow_same_task, out)
    bounds = ResourceLimits(memory=memory, cores=cores, environments=environments, hang=hang)
    parallel = _fitting(folder, parallel or os.cpu_count() or 1, environments)
    if resume:
        _go_on(folder)
    try:
        results = asyncio.run(_run(folder, engine, parallel, bounds, as_json=as_json))
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo(f"exact: interrupted; go on with: exact bench --resume --out {folder.path}", err=True)
        return 130
    finally:
        _outputs(folder, png=png, quiet=as_json)
    return 1 if any(each.status == "failed" for each in results) else 0


def _create(
    suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None, budget: tuple[str, ...], unequal: bool, overrides: tuple[str, ...],
    reruns: int, same_task: bool, out: Path | None,
) -> BenchFolder:  # fmt: skip
    """Everything that can be wrong is said before anything is written."""
    from exact.cli.task_files import are_task_files
    from exact.evaluation.agents import agent_config
    from exact.evaluation.folder import BenchFolder
    from exact.evaluation.plan import Plan, at_equal_budgets, budget_of, checked_names, require_equal_judges
    from exact.runs.runner import check_models
    from exact.search.registry import algorithm

    if not suite or not agents:
        raise UsageError("name a suite and an agent: exact bench miniwob/@browsergym --agent react --agent mcts --seeds 0..4")
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


def _go_on(folder: BenchFolder) -> None:
    if other := folder.add_session(_session()):
        told = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in other.items())
        click.echo(f"exact: {folder.path} goes on by other code or elsewhere than before, as its tables will say: {told}", err=True)


def _session() -> BenchSession:
    """This one."""
    import platform

    from exact.evaluation.plan import BenchSession
    from exact.runs.journal.versions import versions

    machine = {"system": platform.platform(), "cores": str(os.cpu_count())}
    return BenchSession(versions=versions(), machine=machine, begun=datetime.now(UTC).isoformat(timespec="seconds"))


def _remembering(config: Config, same_task: bool) -> Config:
    """Unless it is allowed, nothing learned on any seed of a task is shown on that task."""
    import msgspec

    return msgspec.structs.replace(config, reflection=msgspec.structs.replace(config.reflection, exclude_same_task=not same_task))


def _named(suite: tuple[str, ...], own: bool) -> tuple[str, ...]:
    """As tables call it: of files not where they lie."""
    if not own:
        return suite
    return tuple(f"{Path(file).name}{sign}{pattern}" for file, sign, pattern in (each.partition("#") for each in suite))


def _asks_models(tasks: tuple[Task, ...], own: bool) -> bool:
    """Whether verdicts on any of them may be asked of models."""
    from exact.benchmarks import registry
    from exact.benchmarks.base import ModelEvaluatedSuite
    from exact.benchmarks.own import by_rules

    return any(by_rules(task) if own else isinstance(registry.suite(task.id), ModelEvaluatedSuite) for task in tasks)


def _own_tasks(files: tuple[str, ...], seeds: str | None) -> tuple[Task, ...]:
    """The tasks of files, each with its own seed or with those that are given."""
    import msgspec

    from exact.benchmarks.ids import join, split_pattern
    from exact.cli.task_files import read_task_files

    found = read_task_files(files)
    if seeds is not None:
        names = {task.id: split_pattern(f"{task.id.partition('?')[0]}?seed={seeds}") for task in found}
        found = tuple(
            msgspec.structs.replace(task, id=join(names[task.id][0], seed), seed=seed) for task in found for seed in names[task.id][1]
        )
    if twice := [id for id, count in Counter(task.id for task in found).items() if count > 1]:
        raise UsageError(f"two tasks are named {twice[0]}: each needs an id of its own, or a seed")
    return found


def _tasks(suite: tuple[str, ...], seeds: str | None) -> tuple[Task, ...]:
    """What the patterns name; a bare suite is all of it, and so is a file of tasks."""
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
    """Raises UsageError where an option was given that a benchmark has had since it began."""
    if names := ", ".join(name for name, value in given.items() if value):
        raise UsageError(f"{names} cannot be changed with --resume: {path} goes on as it began; leave it out, or choose another --out")


def _same(folder: BenchFolder, suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None) -> None:
    """Raises UsageError where what is asked for is not what the benchmark to go on with was asked."""
    from exact.evaluation.agents import agent_config

    plan = folder.plan
    if suite and {task.id for task in _tasks(suite, seeds)} != {task.id for task in plan.tasks}:
        raise UsageError(f"{folder.path} is of other tasks ({plan.suite}): name none with --resume, or choose another --out")
    if agents and {agent_config(each).name for each in agents} != set(plan.agents):
        raise UsageError(f"{folder.path} is of other agents ({', '.join(plan.agents)}): name none with --resume, or choose another --out")


async def _run(folder: BenchFolder, engine: str, parallel: int, bounds: ResourceLimits, *, as_json: bool) -> list[Result]:
    import msgspec

    from exact.environments.pool.capacity import Capacity, PoolLimits, measure_usage
    from exact.evaluation.schedule import Schedule

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)

    def finished(result: Result, done: int, of: int) -> None:
        if as_json:
            click.echo(msgspec.json.encode(result))
            return
        came = f"score {result.score:g}" if result.score is not None else f"{result.status}: {result.reason}"
        click.echo(f"{done}/{of} {result.agent} {result.task} {came}, {result.transitions} steps, {result.seconds:.1f} s", err=True)

    def notify(text: str) -> None:
        click.echo(f"exact: {text}", err=True)

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
    """One lane's part of what all of them may use. Who looks for one that hangs is outside."""
    part = ResourceLimits(cores=cores and cores / lanes, environments=environments and max(1, environments // lanes))
    return local_engine(folder, 1, part, share=1 / lanes)


def local_engine(folder: BenchFolder, parallel: int, bounds: ResourceLimits, *, share: float = 1.0) -> LocalEngine:
    """Attempts in this process. `share`: of what providers of models allow."""
    from functools import partial

    from exact.benchmarks.open import environment_kind, open_environments
    from exact.environments.pool.capacity import PoolLimits
    from exact.evaluation.local import LocalEngine

    notified, benchmark = set[str](), not folder.plan.own

    def notify(text: str) -> None:
        if text not in notified:
            notified.add(text)
            click.echo(f"exact: {text}", err=True)

    return LocalEngine(
        folder,
        open_environments=lambda task, config: open_environments(task, config, benchmark=benchmark, notify=notify),
        key=partial(environment_kind, benchmark=benchmark),
        limits=PoolLimits(environments=bounds.environments or _wanted(folder) * parallel, processors=bounds.cores),
        hang=bounds.hang,
        share=share,
    )


def _wanted(folder: BenchFolder) -> int:
    """Environments that one attempt may hold at once."""
    from exact.evaluation.local import environments_wanted

    return max(environments_wanted(folder.agent(agent)[1]) for agent in folder.plan.agents)


def _fitting(folder: BenchFolder, parallel: int, environments: int | None) -> int:
    """As many attempts at once as can have all their environments: who waits for an environment while holding one would wait for ever."""
    if environments is not None and environments < _wanted(folder):
        raise UsageError(
            f"--environments {environments} is too few: one attempt may need {_wanted(folder)}; give more, or search.workers=1"
        )
    return parallel if environments is None else min(parallel, environments // _wanted(folder))


def _memory(gib: float | None) -> int | None:
    """Bytes; by default 0.8 of what is free now, where this system tells."""
    if gib is not None:
        return int(gib * 2**30)
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        return int(int(line.split()[1]) * 1024 * 0.8)
    return None


def _outputs(folder: BenchFolder, *, png: bool, quiet: bool) -> None:
    from exact.evaluation.output import as_png, write_outputs

    paths = write_outputs(folder, rewards_of(folder))
    if png:
        for path in [path for path in paths if path.suffix == ".svg"]:
            asyncio.run(as_png(path))
    if not quiet:
        click.echo((folder.path / "table.md").read_text("utf-8"))
        click.echo(f"{folder.path / 'index.html'}")


def rewards_of(folder: BenchFolder) -> Mapping[str, Reward]:
    """Other readings of the suite's own figure, where it names them."""
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
