"""`exact compare`: two runs, task by task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from exact.evaluation.compare import Comparison


@click.command()
@click.argument("a", metavar="RUN_A", type=click.Path(path_type=Path))
@click.argument("b", metavar="RUN_B", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Tasks on which both did alike too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def compare(a: Path, b: Path, every: bool, as_json: bool) -> None:
    """Compares RUN_A with RUN_B on the tasks and seeds that both have a score for: who won where, and whether it is more than luck.

    A run is one folder with run.json: of `exact run`, or BENCH/agents/NAME of `exact bench`.
    """
    import msgspec

    from exact.evaluation import compare as comparing

    found = comparing.compare(comparing.open_side(a), comparing.open_side(b))
    if as_json:
        click.echo(msgspec.json.encode(_plain(found)))
        return
    from exact.evaluation.table import agent_label, format_number, markdown_table

    for warning in found.warnings:
        click.echo(f"exact: {warning}", err=True)
    sides = (found.a, found.b)
    rows = [
        [agent_label(each), str(each.success), *(format_number(each.costs[kind]) for kind in ("actions", "transitions", "seconds"))]
        for each in sides
    ]
    click.echo(markdown_table(["run", "success", "actions", "steps", "seconds"], rows))
    gain, (one, other) = found.versus, map(agent_label, sides)
    click.echo(
        f"\ngain of {one}: {gain.gain}; wins {gain.wins}, losses {gain.losses}, ties {gain.ties}; "
        f"p {gain.mcnemar:.3f} (McNemar, attempts taken for independent), {gain.by_task:.3f} (whole tasks flipped)"
    )
    if any(found.only):
        click.echo(f"not compared: {found.only[0]} scores of {one} alone, {found.only[1]} of {other} alone")
    shown = [each for each in found.tasks if every or each.wins or each.losses]
    if shown:
        body = [[t.task, f"{t.a:.2f}", f"{t.b:.2f}", str(t.seeds), str(t.wins), str(t.losses)] for t in shown]
        click.echo("\n" + markdown_table(["task", one, other, "seeds", "wins", "losses"], body))


def _plain(found: Comparison) -> dict[str, object]:
    """As mappings: tuples with names would be lists in JSON."""
    return {
        **found._asdict(),
        "a": _mapped(found.a._asdict()),
        "b": _mapped(found.b._asdict()),
        "versus": _mapped(found.versus._asdict()),
        "tasks": [each._asdict() for each in found.tasks],
    }


def _mapped(fields: dict[str, object]) -> dict[str, object]:
    return {name: value._asdict() if hasattr(value, "_asdict") else value for name, value in fields.items()}
