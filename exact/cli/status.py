"""`exact status`: the progress of a run or a benchmark, and the work left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo

if TYPE_CHECKING:
    from exact.evaluation.status import AgentStatus

_HEAD = ("agent", "tasks", "done", "solved", "running", "failed", "left", "dollars")


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@on_storage("run")
def status(run: Path, as_json: bool) -> None:
    """Print how many attempts of RUN are done, running, failed and left, their cost, and the time left.

    RUN is a folder of `exact run` or of `exact bench`, which may be at work. The time left and the dollars an hour assume that attempts
    continue as before.
    """
    import msgspec

    from exact.evaluation.status import money_an_hour, seconds_left, status_of

    agents = status_of(run)
    left, an_hour = seconds_left(agents), money_an_hour(agents)
    if as_json:
        plain = [{**msgspec.to_builtins(each), "running": each.running, "waiting": each.waiting} for each in agents]
        echo(msgspec.json.encode({"agents": plain, "dollars_an_hour": an_hour, "seconds_left": left}))
        return
    rows = [_HEAD, *map(_row, agents)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    for row in rows:
        cells = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        echo("  ".join(cells).rstrip())
    for each in agents:
        for attempt in each.open:
            what = " ".join(f"{each.agent} {attempt.task}".split())
            echo(f"{'running' if attempt.running else 'interrupted'}: {what}, {duration(attempt.seconds)} in")
    echo(_outlook(agents, left, an_hour, run))


def duration(seconds: float) -> str:
    """Return a duration in words that fit its size: `42 s`, `7 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def _row(each: AgentStatus) -> tuple[str, ...]:
    counts = (each.tasks, each.done, each.solved, each.running, each.failed, each.waiting)
    return (" ".join(each.agent.split()), *map(str, counts), f"{each.cost:.4f}" + (" + unknown" if each.unknown else ""))


def _outlook(agents: list[AgentStatus], left: float | None, an_hour: float, run: Path) -> str:
    """Return the last line: the time left, or how to continue."""
    if any(each.running for each in agents):
        time = "unknown before the first attempt has ended" if left is None else f"about {duration(left)}"
        return f"time left: {time}; {an_hour:.2f} dollars an hour"
    if any(each.waiting or each.failed for each in agents):
        again = f"exact bench --resume --out {run}" if (run / "bench.json").exists() else f"exact resume {run}"
        return f"nothing is running: `{again}` goes on"
    return "complete"
