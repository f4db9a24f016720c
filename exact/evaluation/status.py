"""Progress of a run or a benchmark, its costs, and the time that the rest will take at the present pace.

The status of runs as metrics of Prometheus, in its text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from exact.errors import JournalError, UsageError
from exact.evaluation.folder import BenchFolder
from exact.evaluation.summary import SOLVED
from exact.runs.journal.costs import CallCost, cost_by_group, total_cost
from exact.runs.journal.file import is_being_written, read_journal
from exact.runs.journal.store import ResultLine, RunFolder
from exact.runs.storage import is_written_elsewhere
from exact.task import Task


class OpenAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt without a result: it is running, or it was interrupted."""

    task: str
    running: bool
    seconds: float
    """Wall-clock seconds up to its last event, interruptions not counted."""
    spent: CallCost


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one agent's attempts."""

    agent: str
    tasks: int
    """Attempts in all."""
    done: int
    """Attempts that ended otherwise than by an infrastructure failure."""
    solved: int
    failed: int
    """Attempts that an infrastructure failure ended. `exact resume`, or `exact bench --resume`, runs them again."""
    open: tuple[OpenAttempt, ...]
    """Attempts that began and have no result."""
    cost: float
    """US dollars so far, of the calls whose price is known."""
    unknown: bool
    """Whether the price of some calls is unknown, so that more than `cost` was paid."""
    seconds: float
    """Mean duration of the ended attempts; 0 before the first."""
    cost_rate: float
    """US dollars a second that one running attempt has cost on average."""

    @property
    def running(self) -> int:
        """Number of attempts that a process works on now."""
        return sum(each.running for each in self.open)

    @property
    def waiting(self) -> int:
        """Number of attempts that have neither a result nor a process at work."""
        return self.tasks - self.done - self.failed - self.running


def status_of(path: Path) -> list[AgentStatus]:
    """Return the status of the run at a path, or of each agent of the benchmark there. Raises UsageError, JournalError."""
    if (path / "bench.json").exists():
        bench = BenchFolder.open(path)
        return [_status(agent, RunFolder.open(bench.agent_path(agent)), bench.plan.tasks) for agent in bench.plan.agents]
    folder = RunFolder.open(path)
    return [_status(folder.manifest.agent, folder, folder.manifest.tasks)]


def money_an_hour(agents: Iterable[AgentStatus]) -> float:
    """Return US dollars an hour at the present pace: the cost of the running attempts, if they cost as much as attempts did so far."""
    return sum(each.cost_rate * each.running for each in agents) * 3600


def seconds_left(agents: Iterable[AgentStatus]) -> float | None:
    """Return the seconds until the last attempt ends; None if nothing runs, or none has ended to learn a duration from.

    It assumes that as many attempts run side by side as now, and that each takes the mean duration of its agent's ended ones.
    """
    agents = list(agents)
    running = sum(each.running for each in agents)
    ended = [each.seconds for each in agents if each.seconds]
    if not running or not ended:
        return None
    usual = sum(ended) / len(ended)
    left = 0.0
    for each in agents:
        mean = each.seconds or usual
        left += each.waiting * mean + sum(max(0.0, mean - attempt.seconds) for attempt in each.open if attempt.running)
    return left / running


def _status(agent: str, folder: RunFolder, tasks: Iterable[Task]) -> AgentStatus:
    tasks = list(tasks)
    journals = {task.id: folder.task_folder(task) / "journal.jsonl" for task in tasks}
    ended = {line.task: line for line in folder.results() if not is_being_written(journals.get(line.task, folder.path / "none"))}
    elsewhere = any(is_written_elsewhere(each) for each in (folder.path, *folder.path.parents[:2]))  # a copy of a folder on storage
    begun = [_attempt(id, journal, elsewhere) for id, journal in journals.items() if id not in ended and journal.exists()]
    lines, spent = list(ended.values()), total_cost(each.spent for each in begun)
    cost = sum(line.cost or 0.0 for line in lines) + spent.cost
    seconds = sum(line.seconds for line in lines) + sum(each.seconds for each in begun)
    finished = [line for line in lines if line.status != "failed"]
    return AgentStatus(
        agent=agent,
        tasks=len(tasks),
        done=len(finished),
        solved=sum(_solved(line) for line in finished),
        failed=len(lines) - len(finished),
        open=tuple(begun),
        cost=cost,
        unknown=spent.unknown > 0 or any(line.cost is None for line in lines),
        seconds=sum(line.seconds for line in finished) / len(finished) if finished else 0.0,
        cost_rate=cost / seconds if seconds else 0.0,
    )


def _solved(line: ResultLine) -> bool:
    return line.score is not None and line.score >= SOLVED


def _attempt(id: str, journal: Path, elsewhere: bool) -> OpenAttempt:
    """Read the whole part of an attempt's journal. `elsewhere`: another machine writes the folder, and this is a copy."""
    running, seconds, spent = elsewhere or is_being_written(journal), 0.0, CallCost()
    events = read_journal(journal)
    try:
        for event in events:
            seconds = event.t
            spent += total_cost(cost_by_group([event]).values())
    except JournalError:  # a damaged line: the lines before it were read
        if not running and not seconds:
            raise
    return OpenAttempt(task=id, running=running, seconds=seconds, spent=spent)


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

    A run that cannot be read is left out.
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
