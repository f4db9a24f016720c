"""`exact tasks`: list and show the tasks of the benchmarks."""

from __future__ import annotations

import json

import click
import msgspec


@click.group()
def tasks() -> None:
    """List the tasks of the benchmarks."""


@tasks.command("list")
@click.argument("suite", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_tasks(suite: str | None, as_json: bool) -> None:
    """Print the ids of all tasks, one on a line.

    SUITE selects a suite (miniwob) or a pattern ('miniwob/click-*?seed=1..3').
    """
    ids = _ids(suite)
    if as_json:
        click.echo(json.dumps(ids))
    else:
        click.echo("\n".join(ids))


@tasks.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(id: str, as_json: bool) -> None:
    """Print the fields of the task ID."""
    from exact.benchmarks import registry

    fields = msgspec.to_builtins(registry.task(id))
    if as_json:
        click.echo(json.dumps(fields))
        return
    for name, value in fields.items():
        click.echo(f"{name}: {_line(value)}")


def _ids(suite: str | None) -> list[str]:
    from exact.benchmarks import registry

    if suite is None:
        return [id for each in registry.suites().values() for id in each.ids()]
    if "/" in suite:
        return [task.id for task in registry.expand([suite])]
    return list(registry.suite(suite).ids())


def _line(value: object) -> str:
    return (value or "-") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
