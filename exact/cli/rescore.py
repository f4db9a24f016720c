"""`exact rescore`: evaluates a run again without running it again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from exact.config import Config
    from exact.evaluation.folder import Replay
    from exact.runs.environment_cache import EnvironmentCache
    from exact.runs.journal.state import State
    from exact.runs.journal.store import RunFolder
    from exact.task import Task


class _Rescored(NamedTuple):
    """One attempt: its score in the run, and what came now."""

    agent: str
    task: str
    before: float | None
    replay: Replay | None
    trouble: str = ""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--task", "pattern", metavar="GLOB", help="Only tasks whose id fits, with or without its seed.")
@click.option("--adopt", is_flag=True, help="Let the new scores count: in `exact compare`, and in a benchmark's results and tables.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a task instead of text.")
def rescore(run: Path, pattern: str | None, adopt: bool, as_json: bool) -> int:
    """Takes the committed actions of RUN again, each task in a fresh environment, and evaluates where they lead. Nothing is searched, no
    model is asked for an action, and results.jsonl stays as it is unless --adopt is given; the new scores are in rescored.jsonl.

    RUN is a run of `exact run`, or a benchmark. Where an evaluator was mended, or a score is in doubt, this is the way to another one.
    """
    from exact.evaluation.folder import BenchFolder
    from exact.runs.runner import reopen

    bench = BenchFolder(run) if (run / "bench.json").exists() else None
    runs = {agent: bench.agent(agent) for agent in bench.plan.agents} if bench else {run.name: reopen(run)}
    try:
        found = asyncio.run(_rescored(runs, pattern, adopt, as_json))
    finally:
        if bench and adopt:
            from exact.cli.bench import rewards_of
            from exact.evaluation.output import write_outputs

            bench.write_results(bench.gather())
            write_outputs(bench, rewards_of(bench))
    return 1 if any(each.trouble for each in found) else 0


async def _rescored(runs: Mapping[str, tuple[RunFolder, Config]], pattern: str | None, adopt: bool, as_json: bool) -> list[_Rescored]:
    """Each is told as soon as it came."""
    from exact.cli.report import started_tasks

    tasks, found = {agent: started_tasks(folder, pattern) for agent, (folder, _) in runs.items()}, []
    for agent, (folder, config) in runs.items():
        async for each in _taken_again(agent, folder, config, tasks[agent], adopt):
            found.append(each)
            click.echo(_as_json(each) if as_json else _line(each))
    return found


async def _taken_again(agent: str, folder: RunFolder, config: Config, tasks: Sequence[Task], adopt: bool) -> AsyncIterator[_Rescored]:
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
                yield _Rescored(agent, task.id, before.get(task.id), None, "its attempt did not come to its end")
                continue
            again = await _again(agent, task, before.get(task.id), shared, folder, state)
            if again.replay is not None:
                append_line(folder.path / "rescored.jsonl", again.replay)
                if adopt:
                    append_line(folder.path / "replays.jsonl", again.replay)
            yield again


async def _again(agent: str, task: Task, before: float | None, shared: EnvironmentCache, folder: RunFolder, state: State) -> _Rescored:
    from exact.errors import EnvironmentFailure, ExactError, InfrastructureError
    from exact.evaluation.replay import replay

    try:
        async with shared(task) as environments:
            try:
                return _Rescored(agent, task.id, before, await replay(environments, task, state, folder.blobs))
            except EnvironmentFailure:
                raise  # the environments are closed by it
            except ExactError as error:  # of this task alone: it wrote where that stays, or nobody is named to judge it
                return _Rescored(agent, task.id, before, None, str(error))
            except Exception as error:  # noqa: BLE001 - whatever an evaluator raises is of its own task, and ends no other
                return _Rescored(agent, task.id, before, None, f"{type(error).__name__}: {error}")
    except InfrastructureError as error:
        return _Rescored(agent, task.id, before, None, str(error))


def _notify(text: str) -> None:
    click.echo(f"exact: {text}", err=True)


def _as_json(each: _Rescored) -> bytes:
    import msgspec

    return msgspec.json.encode({**each._asdict(), "replay": msgspec.to_builtins(each.replay) if each.replay else None})


def _line(each: _Rescored) -> str:
    old = "none" if each.before is None else f"{each.before:g}"
    if each.replay is None:
        return f"! {each.agent} {each.task}: {each.trouble}"
    new = "none" if each.replay.score is None else f"{each.replay.score:g}"
    mark = "=" if old == new else "*"
    why = f" ({each.replay.verdict}: {each.replay.reason})" if each.replay.verdict != "same" else ""
    return f"{mark} {each.agent} {each.task}: {old} -> {new}{why}"
