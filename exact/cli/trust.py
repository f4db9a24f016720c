"""`exact trust`: continue with a run folder that others made, or that was changed, although it names code, files or servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo
from exact.errors import ExactError, UsageError
from exact.signature import is_signed, sign

if TYPE_CHECKING:
    from exact.runs.references import Named
    from exact.task import Task

_SHORT = 120
"""Characters of a value in the error that refuses a folder."""
_SHOWN = 3
"""Things that an error shows."""


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON array; ask nothing, and trust nothing without --yes.")
@on_storage("run", write=True)
def trust(run: Path, yes: bool, as_json: bool) -> int:
    """Show the things beyond its folder that RUN names, and trust it once you say yes.

    RUN is a folder of `exact run` or of `exact bench` that another user made, that was made on another machine, or whose tasks or
    configuration were changed since. Code that it names is run, programs are started, files are read, and keys are sent: look at the list.
    Runs that you make yourself are trusted.
    """
    from exact.runs.folder_check import check_folder

    check_folder(run)
    folders = _folders(run)
    found = [(folder.name, each) for folder in folders for each in _named(folder)]
    if as_json:
        echo(json.dumps([{"folder": name, "key": each.key, "value": each.value} for name, each in found]))
    else:
        for name, each in found:
            echo(f"{name}: {each}")
    if as_json and not yes:
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"nobody can be asked here: look at the list, and if you trust it: exact trust {run} --yes")
        click.confirm("Trust it?", abort=True, err=True)
    for folder in folders:
        sign(folder)
    echo(f"trusted: {run}", err=as_json)
    return 0


def require_trust(*folders: Path) -> None:
    """Raise UsageError if a run folder is not this user's and names anything outside it."""
    for folder in folders:
        if not is_signed(folder) and (found := _named(folder)):
            told = "; it ".join(each.told(_SHORT) for each in found[:_SHOWN])
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            fact = f"{folder} was not made by you here, or was changed since: it {told}{more}"
            raise UsageError(f"{fact}: if you trust it, exact trust {_whole(folder)}")


def require_trusted_bench(path: Path) -> None:
    """Raise UsageError if a benchmark's folder is not this user's and names anything outside it, or contradicts itself."""
    from exact.evaluation.folder import BenchFolder

    bench = BenchFolder(path)
    plan = bench.plan
    for folder in _folders(path):
        if bench.agent(folder.name)[0].manifest.tasks != plan.tasks:
            raise UsageError(f"{path / 'bench.json'} and {folder / 'run.json'} have different tasks: use a folder that `exact bench` wrote")
    require_trust(*_folders(path))


def _whole(folder: Path) -> Path:
    return folder.parent.parent if (folder.parent.parent / "bench.json").exists() else folder


def _folders(run: Path) -> list[Path]:
    """Return the run folder, or those of a benchmark's agents."""
    if not (run / "bench.json").exists():
        return [run]
    from exact.evaluation.folder import BenchFolder

    bench = BenchFolder(run)
    return [bench.agent_path(agent) for agent in bench.plan.agents]


def _named(folder: Path) -> Sequence[Named]:
    from exact.config import load_recorded
    from exact.runs.journal.store import RunFolder
    from exact.runs.references import named

    manifest = RunFolder.open(folder).manifest
    tasks = [task for task in manifest.tasks if not (manifest.benchmark and _is_published(task))]
    return named(load_recorded(folder), tasks)


def _is_published(task: Task) -> bool:
    """Return whether a suite that is installed here has the same task."""
    from exact.benchmarks import registry

    try:
        return registry.task(task.id) == task
    except (ExactError, ValueError, LookupError, OSError):
        return False
