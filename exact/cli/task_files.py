"""Task files given in place of task ids: `tasks.yaml`, `tasks.yaml#open-*`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exact.errors import UsageError

if TYPE_CHECKING:
    from exact.task import Task


def is_task_file(pattern: str) -> bool:
    """Return whether a pattern names a task file."""
    return pattern.partition("#")[0].endswith((".yaml", ".yml", ".json"))


def are_task_files(patterns: Sequence[str]) -> bool:
    """Return whether the patterns name task files and no benchmark. Raises UsageError if they name both."""
    files = [is_task_file(each) for each in patterns]
    if any(files) and not all(files):
        raise UsageError("task files and benchmark ids do not go into one run: start two runs")
    return any(files)


def read_task_files(patterns: Sequence[str]) -> tuple[Task, ...]:
    """Return the tasks of files. Raises UsageError if a file cannot be read or a pattern matches nothing."""
    from exact.benchmarks.own.files import read

    return tuple(task for each in patterns for task in read(Path(each.partition("#")[0]), each.partition("#")[2] or "*"))
