"""`exact tasks`: list and show the tasks of the benchmarks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import msgspec

from exact.cli.task_files import is_task_file, read_task_files
from exact.cli.terminal import complete_tasks, echo
from exact.errors import UsageError

if TYPE_CHECKING:
    from exact.task import Task


@click.group()
def tasks() -> None:
    """List the tasks of the benchmarks."""


@tasks.command("list")
@click.argument("suite", required=False, shell_complete=complete_tasks)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_tasks(suite: str | None, as_json: bool) -> None:
    """Print the ids of all tasks, one on a line.

    SUITE selects a suite (miniwob) or a pattern ('miniwob/click-*?seed=1..3'). It may also be a file with your own tasks: tasks.yaml for
    all of them, 'tasks.yaml#open-*' for some.
    """
    ids = _ids(suite)
    if as_json:
        echo(json.dumps(ids))
    else:
        echo("\n".join(ids))


@tasks.command()
@click.argument("id", shell_complete=complete_tasks)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(id: str, as_json: bool) -> None:
    """Print the fields of the task ID, which may be a task of a file: tasks.yaml#name."""
    from exact.benchmarks import registry

    fields = msgspec.to_builtins(_own(id) if is_task_file(id) else registry.task(*registry.own_suites([id])))
    if as_json:
        echo(json.dumps(fields))
        return
    for name, value in fields.items():
        echo(f"{name}: {_line(value)}")


def _ids(suite: str | None) -> list[str]:
    from exact.benchmarks import registry

    if suite is not None and is_task_file(suite):
        return [task.id for task in read_task_files([suite])]
    [suite] = registry.own_suites([suite]) if suite else [None]
    if suite is None:
        return [id for each in registry.suites().values() for id in each.ids()]
    if "/" in suite:
        return [task.id for task in registry.expand([suite])]
    return list(registry.suite(suite).ids())


def _own(pattern: str) -> Task:
    """Return the one task of a file that a pattern names. Raises UsageError if it names several."""
    found = read_task_files([pattern])
    if len(found) != 1:
        raise UsageError(
            f"{pattern} names {len(found)} tasks: name one, such as {pattern.partition('#')[0]}#{found[0].id.rpartition('/')[2]}"
        )
    return found[0]


def _line(value: object) -> str:
    return (value or "-") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
