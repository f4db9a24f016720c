"""`exact bench`: run several agents on a suite at equal budgets and compare them."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from exact.cli.bench_plan import (
    ResourceLimits,
    add_session,
    check_fixed,
    check_same,
    create,
    fitting,
    hold,
    hold_runs,
    memory_limit,
    needs_of,
    open_engine,
    planned,
)
from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.signals import run_async
from exact.cli.terminal import complete_tasks, echo, plain
from exact.errors import InfrastructureError, UsageError
from exact.text import counted

if TYPE_CHECKING:
    from exact.evaluation.engine import Engine
    from exact.evaluation.folder import BenchFolder, Result
    from exact.evaluation.summary import Reward


REPORT = 3.0
"""Megabytes that the report of one attempt may take in a benchmark, which has many."""


def _renamed(new: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """Return a callback of an option of an earlier version that raises UsageError with the new spelling."""

    def callback(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise UsageError(f"{option.opts[0]} is now {new}")

    return callback


@click.command()
@click.argument("suite", nargs=-1, metavar="SUITE...", shell_complete=complete_tasks)
@click.option(
    "--agent", "-a", "agents", multiple=True, metavar="AGENT", help="YAML file of an agent, or a name: react, mcts, rmcts, ... Repeatable."
)
@click.option("--seeds", metavar="LIST", help="Seeds of the tasks whose pattern gives none: 0..4 or 3,7. Default: 0.")
@click.option(
    "--budget", multiple=True, metavar="KIND=AMOUNT", help="Limit on each attempt of all agents: actions=15, money=0.5. Repeatable."
)
@click.option(
    "--money",
    type=click.FloatRange(0),
    metavar="DOLLARS",
    help="Limit on the money of all attempts together. An attempt is started only where its own limit fits. --resume may give more.",
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
    help="Run the attempts in this process, or as tasks of Ray.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Cluster of Ray: auto, HOST:PORT or ray://HOST:PORT. Default: $RAY_ADDRESS, else a Ray on this machine alone.",
)
@click.option(
    "--needs", multiple=True, metavar="NAME=AMOUNT", help="Resource of a node of Ray that each attempt takes too: gpu=0.25. Repeatable."
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
@click.option(
    "--pause",
    type=click.FloatRange(0),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Pause before an attempt is rerun whose model did not answer, twice as long each further time.",
)
@click.option("--allow-same-task", is_flag=True, help="Also show reflections from other seeds of the same task.")
@click.option("--out", "-o", type=RunFolderPath(), help="Folder to write the benchmark to. Default: runs/bench-<number>.")
@click.option("--resume", is_flag=True, help="Resume the benchmark in --out. Its agents and tasks need not be given again.")
@click.option("--dry-run", is_flag=True, help="Print what would be called and written, and what it costs at worst. Start nothing.")
@click.option("--advise", is_flag=True, help="Tell what the agents of the benchmark in --out bring, for how much, and which to use.")
@click.option("--reports/--no-reports", default=True, show_default=True, help="Write a report of each attempt, to which the page links.")
@click.option("--png", is_flag=True, help="Also write the curves as PNG.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each result instead of the table.")
@on_storage("out", write=True)
def bench(
    suite: tuple[str, ...], agents: tuple[str, ...], seeds: str | None, budget: tuple[str, ...], own_budgets: bool,
    overrides: tuple[str, ...], parallel: int | None, memory: float | None, cores: float | None, environments: int | None, engine: str,
    reruns: int, hang: float, allow_same_task: bool, out: Path | None, resume: bool, reports: bool, png: bool, as_json: bool,
    strict_nltk: bool, money: float | None, address: str | None, needs: tuple[str, ...], pause: float, dry_run: bool, advise: bool,
) -> int:  # fmt: skip
    """Run several agents on a suite at equal budgets and compare them.

    Each agent attempts every task and seed. SUITE is a suite, a task or a pattern: miniwob, 'miniwob/@browsergym',
    'miniwob/click-*?seed=0..4'. SUITE may also be a file of tasks on your own site: tasks.yaml for all of them, 'tasks.yaml#open-*' for
    some.

    Hung attempts are killed and retried once. An interrupted benchmark continues with --resume. The command writes results.jsonl,
    table.md, curves and index.html.
    """
    from exact.cli.trust import require_trusted_bench
    from exact.evaluation.folder import BenchFolder

    if advise:
        return _advise(out, suite)
    _check_engine(engine, address, needs)
    resources = needs_of(needs)
    if resume:
        out = _to_resume(out, dry_run)
        folder = BenchFolder.open(out)
        require_trusted_bench(out)
        hold(out)
        hold_runs(folder)
        anew = click.get_current_context().get_parameter_source("reruns") is not ParameterSource.DEFAULT
        check_fixed(out, {
            "--budget": budget, "--set": overrides, "--strict-nltk": strict_nltk, "--own-budgets": own_budgets, "--reruns": anew,
            "--allow-same-task": allow_same_task, "--seeds": seeds and not suite,
        })  # fmt: skip
        check_same(folder, suite, agents, seeds)
    else:
        overrides += ("models.strict_nltk=true",) * strict_nltk
        plan, configs = planned(
            suite, agents, seeds, budget, own_budgets, overrides, reruns, allow_same_task, money, elsewhere=dry_run or engine == "ray"
        )
        if dry_run:
            from exact.cli.dry_run import describe_bench

            echo(describe_bench(plan, configs, out or Path("runs", "bench-N"), money, here=engine == "local"))
            return 0
        folder = create(plan, configs, out)
    bounds = ResourceLimits(memory=memory, cores=cores, environments=environments, hang=hang, pause=pause)
    if engine == "local":
        fitting(folder, parallel or 1, environments)
    if resume:
        add_session(folder)
    try:
        opening = partial(open_engine, folder, engine, parallel, bounds, address=address, needs=resources)
        results = run_async(_run(folder, opening, bounds, as_json=as_json, money=money))
    except KeyboardInterrupt:
        echo(f"exact: interrupted; resume with: exact bench --resume --out {folder.path}", err=True)
        return 130
    else:
        if reports:
            _write_reports(folder)
    finally:
        _outputs(folder, png=png, quiet=as_json)
    left = 0 if money is None else len(folder.plan.pairs) - len(results)
    if left:
        echo(
            f"exact: {counted(left, 'attempt')} not started, because --money {money:g} is not enough for the limit of one more: "
            f"exact bench --resume --out {shlex.quote(str(folder.path))} --money MORE",
            err=True,
        )
    if failed := [each for each in results if each.status == "failed"]:
        echo(f"exact: {_way_on(failed, folder.path)}", err=True)
    return 1 if failed or left else 0


def _to_resume(out: Path | None, dry_run: bool) -> Path:
    """Return the folder to resume. Raises UsageError if there is none, or nothing is to be started."""
    if dry_run:
        raise UsageError("--dry-run shows a new benchmark: leave out --resume, or use `exact show OUT --progress`")
    if out is None:
        raise UsageError("--resume requires --out: give the folder of the benchmark")
    return out


def _advise(out: Path | None, suite: tuple[str, ...]) -> int:
    """Print what the agents of a benchmark bring over its first one. Raises UsageError."""
    from exact.evaluation.folder import BenchFolder
    from exact.evaluation.table import advised

    if out is None or suite:
        raise UsageError("--advise reads a benchmark that was run: give its folder with --out, and no tasks")
    folder = BenchFolder.open(out)
    if len(folder.plan.agents) < 2:
        raise UsageError(f"{out} has one agent: run another one beside it, as in `exact bench SUITE -a react -a rmcts`")
    lines = advised(folder.plan, [*folder.gather().values()])
    if not lines:
        raise UsageError(f"{out} has no two agents with scores, oracles aside: resume it with `exact bench --resume --out {out}`")
    echo("\n".join(lines))
    return 0


def _check_engine(engine: str, address: str | None, needs: tuple[str, ...]) -> None:
    """Raise UsageError if the engine is not installed, or an option has no effect on it."""
    if engine == "ray" and not find_spec("ray"):
        raise UsageError("Ray is not installed: run `pip install 'exact-agent[ray]'`, or use the local engine")
    if engine == "local" and (address or needs):
        raise UsageError(f"{'--address' if address else '--needs'} has no effect without --engine ray: add it")


def _way_on(failed: list[Result], path: Path) -> str:
    """Return the advice about failed attempts."""
    lasting = sum(not each.resumable for each in failed)
    if lasting == len(failed):
        return f"{counted(lasting, 'attempt')} failed, and resuming cannot help: when the cause is fixed, start a new benchmark"
    rest = f" ({lasting} of them need a new benchmark)" if lasting else ""
    return (
        f"{counted(len(failed), 'attempt')} failed: when the cause is fixed, run: exact bench --resume --out {shlex.quote(str(path))}{rest}"
    )


async def _run(
    folder: BenchFolder,
    opening: Callable[[], AbstractAsyncContextManager[tuple[Engine, int]]],
    bounds: ResourceLimits,
    *,
    as_json: bool,
    money: float | None,
) -> list[Result]:
    import msgspec

    from exact.cli.outcome import details, outcome
    from exact.environments.pool.capacity import Capacity, PoolLimits, measure_usage
    from exact.evaluation.money import MoneyCap
    from exact.evaluation.schedule import Schedule

    cap = None if money is None else MoneyCap(folder, money)

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
    capacity = Capacity(PoolLimits(memory=memory_limit(bounds.memory)), measure_usage, asyncio.get_running_loop().time)
    async with opening() as (made, parallel), _written(folder):
        return await Schedule(
            folder=folder, engine=made, parallel=parallel, capacity=capacity, money=cap, rounds=rounds, pause=bounds.pause,
            finished=finished, notify=notify,
        ).run()  # fmt: skip


@contextlib.asynccontextmanager
async def _written(folder: BenchFolder) -> AsyncIterator[None]:
    """Keep the table, the curves and the page up to date while the block runs."""
    from exact.evaluation.output import keep_written

    writing = asyncio.ensure_future(keep_written(folder, rewards_of(folder)))
    try:
        yield
    finally:
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError, InfrastructureError):  # reports that cannot be written are listed at the end
            await writing


def _write_reports(folder: BenchFolder) -> None:
    """Write the report of each attempt that has no report, or an older one, and the page of each agent."""
    from exact.report.build import build_index, build_report

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
            run_async(as_png(path))
    if not quiet:
        echo(plain((folder.path / "table.md").read_text("utf-8")))
        echo(f"\n{folder.path / 'index.html'}")


def rewards_of(folder: BenchFolder) -> Mapping[str, Reward]:
    """Return the rewards that the benchmark's suite defines, by name."""
    from exact.benchmarks import registry
    from exact.benchmarks.base import RewardedSuite

    suites = {task.id.partition("/")[0] for task in folder.plan.tasks} if not folder.plan.own else set()
    name = suites.pop() if len(suites) == 1 else ""
    suite = registry.suite(name) if name in registry.suites() else None  # the user's own suite may not be here any more
    return suite.rewards() if isinstance(suite, RewardedSuite) else {}
