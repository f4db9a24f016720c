"""Tasks as arguments of the library."""

from __future__ import annotations

from urllib.parse import urlsplit

from exact.errors import UsageError, unknown
from exact.origins import is_web
from exact.task import Task

AnyTask = Task | str
"""A task, or the id of a benchmark's task."""
_LONGEST_URL, _LONGEST_INSTRUCTION = 2**16, 100_000
"""Maximum characters of an address and of an instruction that are given as arguments."""


def task_of(given: AnyTask, *, own: bool = True) -> Task:
    """Return the task that an argument stands for.

    `own`: whether an id may name the user's own suite, which is code.

    Raises UsageError for an id that no suite has, or that stands for several tasks.
    """
    from exact.benchmarks import registry

    if isinstance(given, Task):
        return given
    if not isinstance(given, str):
        raise UsageError(f"task is of type {type(given).__name__}: give a Task, or the id of a benchmark's task")
    found = list(registry.expand(registry.own_suites((given,)) if own else (given,)))
    if len(found) != 1:
        raise UsageError(
            f"{given!r} stands for {len(found)} tasks: name one of them, such as {found[0].id!r}" if found else f"no task {given!r}"
        )
    return found[0]


def page_task(url: str, instruction: str) -> Task:
    """Return the task of following an instruction from a page on. Raises UsageError if one of them is invalid or too long."""
    for name, given, longest in (("url", url, _LONGEST_URL), ("instruction", instruction, _LONGEST_INSTRUCTION)):
        if len(given) > longest:
            raise UsageError(f"the {name} has {len(given)} characters: write at most {longest}")
    if not is_web(url):
        raise UsageError(f"invalid url {url!r}: write a web address such as https://host/path")
    if not instruction.strip():
        raise UsageError("the instruction is empty: say what is to be done or found")
    parts = urlsplit(url)
    return Task(id=f"site/{parts.netloc}{parts.path}".rstrip("/"), instruction=instruction, start=url)


def is_of_suite(task: Task) -> bool:
    """Return whether a suite has the task: a registered one, or the user's own."""
    from exact.benchmarks import registry

    return registry.OWN in task.private or task.id.partition("?")[0].partition("/")[0] in registry.suites()


def named(tasks: tuple[Task, ...], given: Task | str | None) -> Task:
    """Return the task of a run that has an id, or the id of a task; without one, the only task. Raises UsageError."""
    id = given.id if isinstance(given, Task) else given
    if id is None and len(tasks) == 1:
        return tasks[0]
    known = {task.id: task for task in tasks}
    if id is None:
        raise UsageError(f"the run has {len(tasks)} tasks: name one, such as {tasks[0].id!r}")
    if not isinstance(id, str):
        raise UsageError(f"task is of type {type(id).__name__}: give a Task, or its id, such as {tasks[0].id!r}")
    if id not in known:
        raise unknown("task", id, known)
    return known[id]
