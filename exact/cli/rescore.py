"""`exact rescore`: replay the committed actions of a run in fresh environments and evaluate them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from exact.cli.bench_plan import hold, hold_runs
from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.signals import run_async
from exact.cli.terminal import echo

if TYPE_CHECKING:
    from exact.config import Config
    from exact.evaluation.folder import Replay
    from exact.runs.environment_cache import EnvironmentCache
    from exact.runs.journal.state import AttemptState
    from exact.runs.journal.store import RunFolder
    from exact.task import Task


class _Rescored(NamedTuple):
    """The score of one attempt in its run, and its replay."""

    agent: str
    task: str
    before: float | None
    replay: Replay | None
    error: str = ""
    """Reason that the attempt could not be replayed."""


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed.")
@click.option("--adopt", is_flag=True, help="Use the new scores in `exact compare` and in the results and tables of a benchmark.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each task.")
@on_storage("run", write=True)
def rescore(run: Path, pattern: str | None, adopt: bool, as_json: bool) -> int:
    """Replay the committed actions of RUN in fresh environments and evaluate them.

    RUN is a run or a benchmark. Nothing is searched and no model is asked for an action. The new scores are written to rescored.jsonl;
    results.jsonl changes only with --adopt. Use it after an evaluator was fixed, or to check a score.
    """
    from exact.cli.trust import require_trust, require_trusted_bench
    from exact.evaluation.folder import BenchFolder
    from exact.runs.lock import sole
    from exact.runs.runner import reopen

    bench = BenchFolder(run) if (run / "bench.json").exists() else None
    runs = {agent: bench.agent(agent) for agent in bench.plan.agents} if bench else {run.name: reopen(run)}
    (require_trusted_bench if bench else require_trust)(run)
    if adopt and bench:
        hold(run)
        hold_runs(bench)
    elif adopt:
        click.get_current_context().with_resource(sole(run))
    try:
        rescored = run_async(_rescored(runs, pattern, adopt, as_json))
    finally:
        if bench and adopt:
            from exact.cli.bench import rewards_of
            from exact.evaluation.output import write_outputs

            bench.write_results(bench.gather())
            write_outputs(bench, rewards_of(bench))
    return 1 if any(each.error for each in rescored) else 0


async def _rescored(runs: Mapping[str, tuple[RunFolder, Config]], pattern: str | None, adopt: bool, as_json: bool) -> list[_Rescored]:
    """Replay the attempts and print each score at once."""
    from exact.cli.report import started_tasks

    tasks, rescored = {agent: started_tasks(folder, pattern) for agent, (folder, _) in runs.items()}, []
    for agent, (folder, config) in runs.items():
        async for each in _replays(agent, folder, config, tasks[agent], adopt):
            rescored.append(each)
            echo(_as_json(each) if as_json else _line(each))
    return rescored


async def _replays(agent: str, folder: RunFolder, config: Config, tasks: Sequence[Task], adopt: bool) -> AsyncIterator[_Rescored]:
    from exact.benchmarks.open import environment_kind, open_environments
    from exact.evaluation.replay import finished_state
    from exact.runs.environment_cache import EnvironmentCache
    from exact.runs.journal.store import append_line

    benchmark, before = folder.manifest.benchmark, {line.task: line.score for line in folder.results()}
    async with EnvironmentCache(
        lambda task: environment_kind(task, benchmark=benchmark),
        lambda task: open_environments(task, config, benchmark=benchmark, notify=_notify),
    ) as shared:
        for task in tasks:
            state = finished_state(folder, config, task)
            if state is None:
                yield _Rescored(agent, task.id, before.get(task.id), None, f"its attempt has not ended: `{folder.resuming}` ends it")
                continue
            rescored = await _rescore(agent, task, before.get(task.id), shared, folder, state)
            if rescored.replay is not None:
                append_line(folder.path / "rescored.jsonl", rescored.replay)
                if adopt:
                    append_line(folder.path / "replays.jsonl", rescored.replay)
            yield rescored


async def _rescore(
    agent: str, task: Task, before: float | None, shared: EnvironmentCache, folder: RunFolder, state: AttemptState
) -> _Rescored:
    from exact.errors import EnvironmentFailure, ExactError, InfrastructureError
    from exact.evaluation.replay import replay

    try:
        async with shared(task) as environments:
            try:
                return _Rescored(agent, task.id, before, await replay(environments, task, state, folder.blobs))
            except EnvironmentFailure:
                raise  # the cache closes the environments
            except ExactError as error:  # of this task alone: it wrote to a site that is not isolated, or it has no evaluator
                return _Rescored(agent, task.id, before, None, str(error))
            except Exception as error:  # noqa: BLE001 - any error of an evaluator concerns its own task only
                return _Rescored(agent, task.id, before, None, f"{type(error).__name__}: {error}")
    except InfrastructureError as error:
        return _Rescored(agent, task.id, before, None, str(error))


def _notify(text: str) -> None:
    echo(f"exact: {text}", err=True)


def _as_json(each: _Rescored) -> bytes:
    import msgspec

    return msgspec.json.encode({**each._asdict(), "replay": msgspec.to_builtins(each.replay) if each.replay else None})


def _line(each: _Rescored) -> str:
    old = "none" if each.before is None else f"{each.before:g}"
    if each.replay is None:
        return f"! {each.agent} {each.task}: {each.error}"
    new = "none" if each.replay.score is None else f"{each.replay.score:g}"
    mark = "=" if old == new else "*"
    why = f" ({each.replay.match}: {each.replay.reason})" if each.replay.match != "same" else ""
    return f"{mark} {each.agent} {each.task}: {old} -> {new}{why}"
