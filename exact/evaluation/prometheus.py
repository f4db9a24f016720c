"""The status of runs as metrics of Prometheus, in its text format 0.0.4."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from exact.errors import JournalError, UsageError
from exact.evaluation.status import AgentStatus, money_an_hour, seconds_left, status_of

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "exact_attempts": "Attempts, by state: done, running, failed or waiting.",
    "exact_attempts_solved": "Attempts with the full score.",
    "exact_cost_dollars": "US dollars so far, of the calls whose price is known.",
    "exact_cost_dollars_per_hour": "US dollars an hour at the present pace.",
    "exact_seconds_left": "Seconds until the last attempt ends, at the present pace.",
}


def exposition(path: Path) -> tuple[str, str]:
    """Return the metrics of the run or benchmark at a path, or of all in the folder, and their media type.

    A run that does not read is left out.
    """
    lines: dict[str, list[str]] = {name: [] for name in _HELP}
    for run in _runs(path):
        try:
            agents = status_of(run)
        except (JournalError, UsageError):
            continue
        for name, labels, value in _metrics(run.resolve().name, agents):
            shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            lines[name].append(f"{name}{{{shown}}} {value:g}")
    blocks = [[f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge", *found] for name, found in lines.items() if found]
    return "".join(f"{line}\n" for block in blocks for line in block), MEDIA_TYPE


def _runs(path: Path) -> list[Path]:
    """Return the runs and benchmarks at a path or right below it."""
    names = ("run.json", "bench.json")
    if any((path / name).exists() for name in names):
        return [path]
    return sorted({file.parent for name in names for file in path.glob(f"*/{name}")})


def _metrics(run: str, agents: list[AgentStatus]) -> Iterator[tuple[str, dict[str, str], float]]:
    for each in agents:
        labels = {"run": run, "agent": each.agent}
        counts = {"done": each.done, "running": each.running, "failed": each.failed, "waiting": each.waiting}
        for state, count in counts.items():
            yield "exact_attempts", {**labels, "state": state}, count
        yield "exact_attempts_solved", labels, each.solved
        yield "exact_cost_dollars", labels, each.cost
    yield "exact_cost_dollars_per_hour", {"run": run}, money_an_hour(agents)
    left = seconds_left(agents)
    if left is not None:
        yield "exact_seconds_left", {"run": run}, left


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
