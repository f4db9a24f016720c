"""`exact cost`: the tokens and money that the model calls of a run used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo

if TYPE_CHECKING:
    from exact.runs.journal.costs import CallCost

_HEAD = ("", "calls", "tokens in", "cached", "out", "dollars", "abandoned")


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option(
    "--by", type=click.Choice(["role", "node", "model", "prompt", "task"]), default="role", show_default=True, help="Grouping of the calls."
)
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@on_storage("run")
def cost(run: Path, by: str, pattern: str | None, as_json: bool) -> None:
    """Print the tokens and money that the model calls of RUN used, by role, node, model, prompt or task.

    Calls at an unknown price are counted as unknown. Abandoned requests, which the provider may have charged for, are counted too.
    """
    import msgspec

    from exact.cli.report import started_tasks
    from exact.runs.journal.costs import CallCost, cost_by_group, total_cost
    from exact.runs.journal.file import read_journal
    from exact.runs.journal.store import RunFolder

    folder, groups = RunFolder.open(run), dict[str, CallCost]()
    for task in started_tasks(folder, pattern):
        for name, spent in cost_by_group(read_journal(folder.task_folder(task) / "journal.jsonl"), by, task=task.id).items():  # type: ignore[arg-type]
            groups[name] = groups.get(name, CallCost()) + spent
    whole = total_cost(groups.values())
    if as_json:
        echo(msgspec.json.encode({"total": whole, "by": by, "groups": groups}).decode())
        return
    rows = [_HEAD, *(_row(name or "(none)", spent) for name, spent in groups.items()), _row("total", whole)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    for row in rows:
        cells = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        echo("  ".join(cells).rstrip())


def _row(name: str, spent: CallCost) -> tuple[str, ...]:
    figures = (spent.calls, spent.input_tokens, spent.cached_tokens, spent.output_tokens)
    money = f"{spent.cost:.4f}" + (f" + {spent.unknown} unknown" if spent.unknown else "")
    return (" ".join(name.split()), *(f"{figure:,}" for figure in figures), money, str(spent.unaccounted))
