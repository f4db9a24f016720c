"""`exact compare`: compare two runs task by task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import columns, echo
from exact.text import counted

if TYPE_CHECKING:
    from exact.evaluation.summary import Comparison


@click.command()
@click.argument("a", metavar="RUN_A", type=RunFolderPath())
@click.argument("b", metavar="RUN_B", type=RunFolderPath())
@click.option("--all", "every", is_flag=True, help="Also list the tasks on which both runs did equally well.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@on_storage("a")
@on_storage("b")
def compare(a: Path, b: Path, every: bool, as_json: bool) -> None:
    """Compare RUN_A with RUN_B on the tasks and seeds that both have a score for.

    The table shows the wins and losses by task, and p values of the gain. A run is a folder of `exact run`, or BENCH/agents/NAME of
    `exact bench`.
    """
    import msgspec

    from exact.evaluation import summary as comparing

    comparison = comparing.compare(comparing.open_side(a), comparing.open_side(b))
    if as_json:
        echo(msgspec.json.encode(_plain(comparison)))
        return
    from exact.evaluation.table import agent_label, format_number

    for warning in comparison.warnings:
        echo(f"exact: {warning}", err=True)
    sides = (comparison.a, comparison.b)
    rows = [
        [agent_label(each), str(each.success), *(format_number(each.costs[kind]) for kind in ("actions", "transitions", "seconds"))]
        for each in sides
    ]
    echo(columns(rows, head=("run", "success", "actions", "steps", "seconds")))
    gain, (one, other) = comparison.versus, map(agent_label, sides)
    echo(
        f"\ngain of {one}: {gain.gain}; wins {gain.wins}, losses {gain.losses}, ties {gain.ties}; "
        f"p {gain.mcnemar:.3f} (McNemar, assumes independent attempts), {gain.by_task:.3f} (sign flips by task)"
    )
    if not any(each.oracle for each in sides):
        echo(comparing.advice(comparison.b, comparison.a, gain))
    if any(comparison.only):
        echo(f"not compared: {counted(comparison.only[0], 'score')} that only {one} has, {comparison.only[1]} that only {other} has")
    shown = [each for each in comparison.tasks if every or each.wins or each.losses]
    if shown:
        body = [[t.task, f"{t.a:.2f}", f"{t.b:.2f}", str(t.seeds), str(t.wins), str(t.losses)] for t in shown]
        echo("\n" + columns(body, head=("task", one, other, "seeds", "wins", "losses")))


def _plain(comparison: Comparison) -> dict[str, object]:
    """Return mappings, because JSON would encode named tuples as lists."""
    return {
        **comparison._asdict(),
        "a": _mapped(comparison.a._asdict()),
        "b": _mapped(comparison.b._asdict()),
        "versus": _mapped(comparison.versus._asdict()),
        "tasks": [each._asdict() for each in comparison.tasks],
    }


def _mapped(fields: dict[str, object]) -> dict[str, object]:
    return {name: value._asdict() if hasattr(value, "_asdict") else value for name, value in fields.items()}
