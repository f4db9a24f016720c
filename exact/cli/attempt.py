"""The common part of `exact run` and `exact resume`: open environments, show progress, write reports, return the exit code."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

from exact.benchmarks.open import environment_kind, open_environments
from exact.cli.person import terminal_person
from exact.cli.progress import RunProgress
from exact.cli.signals import run_async
from exact.cli.terminal import echo
from exact.config import Config
from exact.errors import ExactError, PartError
from exact.hints import system_lacks
from exact.library.runner import Runner
from exact.runs.environment_cache import EnvironmentCache
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Task

WRONG_CODE = 2
"""Exit code where nothing but code of the user's failed: an evaluator, a policy or another part."""
UNSOLVED = 3
"""Exit code with `--fail-unsolved` where an attempt was not solved."""
NEEDS_USER = 4
"""Exit code where an attempt ended at a page that only a person can pass."""


def attempt(
    folder: RunFolder,
    config: Config,
    *,
    as_json: bool,
    repeat_uncertain: bool = False,
    fail_unsolved: bool = False,
    junit: Path | None = None,
) -> int:
    """Run the unfinished tasks of a run and return the exit code."""
    from exact.cli.outcome import is_solved

    if lacks := system_lacks():
        echo(f"exact: {lacks}", err=True)
    try:
        lines = run_async(_attempt(folder, config, as_json=as_json, repeat_uncertain=repeat_uncertain))
    except KeyboardInterrupt:
        echo(f"exact: {_interrupted(folder, config)}", err=True)
        return 130
    if junit is not None:
        from exact.cli.junit import write_junit

        write_junit(lines, config.name, junit)
    if failed := [line for line in lines if line.status == "failed"]:
        return WRONG_CODE if all(line.missing == PartError.missing for line in failed) else 1
    if any(line.status == "needs_user" for line in lines):
        return NEEDS_USER
    return UNSOLVED if fail_unsolved and not all(map(is_solved, lines)) else 0


def _interrupted(folder: RunFolder, config: Config) -> str:
    """Return the way on after an interruption: to resume, unless what was interrupted wrote to a site that keeps it."""
    ended = {line.task for line in folder.results() if line.status != "failed"}
    left = [task for task in folder.manifest.tasks if task.id not in ended]
    lost = [task.id for task in left if not _is_resumable(folder.task_folder(task) / "journal.jsonl", config)]
    if lost and len(lost) == len(left):
        return f"interrupted after {', '.join(lost)} wrote outside, which resuming would repeat: start a new run"
    rest = f" ({', '.join(lost)} wrote outside and needs a new run)" if lost else ""
    return f"interrupted; resume with: exact resume {shlex.quote(str(folder.path))}{rest}"


def _is_resumable(journal: Path, config: Config) -> bool:
    try:
        return not journal.exists() or fold(config, read_journal(journal)).is_resumable
    except ExactError:
        return True  # what is wrong with the journal is said when it is resumed


async def _attempt(folder: RunFolder, config: Config, *, as_json: bool, repeat_uncertain: bool) -> list[ResultLine]:
    benchmark = folder.manifest.benchmark
    with RunProgress(folder, config, as_json=as_json) as progress:
        notified = set[str]()

        def notify(text: str) -> None:
            if text not in notified:
                notified.add(text)
                echo(f"exact: {text}", err=True)

        async with EnvironmentCache(
            partial(environment_kind, benchmark=benchmark),
            lambda task: open_environments(task, config, benchmark=benchmark, notify=notify),
        ) as environments:

            def finished(task: Task, line: ResultLine) -> None:
                progress.finished(task, line, folder.task_folder(task) / "report.html")

            runner = Runner(
                folder=folder,
                config=config,
                open_environments=environments,
                watch=progress.event,
                finished=finished,
                repeat_uncertain=repeat_uncertain,
                ask=terminal_person(config.browser, progress.paused),
            )
            return await runner.run()
