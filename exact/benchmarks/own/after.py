"""The order of a file's tasks, of which some are attempted after others."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Protocol

import msgspec

from exact.errors import UsageError, unknown
from exact.task import Task


class NamedEntry(Protocol):
    """An entry of a file of tasks."""

    @property
    def id(self) -> str:
        """Name in the file."""

    @property
    def after(self) -> tuple[str, ...]:
        """Names of the entries that are attempted before."""


def in_order(path: Path, entries: Sequence[NamedEntry], tasks: Sequence[Task]) -> list[tuple[str, Task]]:
    """Return the tasks of entries with their names, each after those that it names, else in the order of the file.

    Raises UsageError if an entry names an unknown one, or entries wait for each other.
    """
    names = {entry.id: task.id.partition("?")[0] for entry, task in zip(entries, tasks, strict=True)}
    for entry in entries:
        for name in entry.after:
            if name not in names:
                raise unknown("task", name, names, where=f"{path}: after of {entry.id}")
    waits = {entry.id: list[str]() for entry in entries}
    for entry in entries:
        waits[entry.id] += entry.after
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        raise UsageError(f"{path}: tasks wait for each other: {' after '.join(error.args[1][::-1])}: leave one `after` out") from error
    row, place, stack = {name: at for at, name in enumerate(names)}, dict[str, int](), list(reversed(names))
    while stack:
        if left := sorted({*waits[stack[-1]]} - place.keys(), key=row.__getitem__):
            stack.append(left[0])
        else:
            place.setdefault(stack.pop(), len(place))
    found = [
        (entry.id, msgspec.structs.replace(task, after=tuple(names[name] for name in entry.after)))
        for entry, task in zip(entries, tasks, strict=True)
    ]
    return sorted(found, key=lambda each: place[each[0]])
