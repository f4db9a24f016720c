"""`exact tasks`: what there is to attempt."""

from __future__ import annotations

import json

import click
import msgspec


@click.group()
def tasks() -> None:
    """Names the tasks of the benchmarks."""


@tasks.command("list")
@click.argument("suite", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON array instead of one id a line.")
def list_tasks(suite: str | None, as_json: bool) -> None:
    """Prints the ids of all tasks, or of those of one SUITE (or a pattern: miniwob/click-*?seed=1..3), one a line."""
    ids = _ids(suite)
    if as_json:
        click.echo(json.dumps(ids))
    else:
        click.echo("\n".join(ids))


@tasks.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def show(id: str, as_json: bool) -> None:
    """Prints what the task ID says about itself."""
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
