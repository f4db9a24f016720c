"""Files of tasks of one's own, named where ids of benchmarks may be: `tasks.yaml`, `tasks.yaml#open-*`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exact.errors import UsageError

if TYPE_CHECKING:
    from exact.task import Task


def is_task_file(pattern: str) -> bool:
    """Whether it names a file of tasks."""
    return pattern.partition("#")[0].endswith((".yaml", ".yml"))


def are_task_files(patterns: Sequence[str]) -> bool:
    """Whether they name files of tasks, and no benchmark. Raises UsageError where some do and some do not."""
    files = [is_task_file(each) for each in patterns]
    if any(files) and not all(files):
        raise UsageError("files of tasks and ids of benchmarks do not go into one run: start two")
    return any(files)


def read_task_files(patterns: Sequence[str]) -> tuple[Task, ...]:
    """The tasks of files. Raises UsageError."""
    from exact.benchmarks.own import read

    return tuple(task for each in patterns for task in read(Path(each.partition("#")[0]), each.partition("#")[2] or "*"))
