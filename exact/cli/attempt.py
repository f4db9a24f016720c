"""The common part of `exact run` and `exact resume`: open environments, show progress, write reports, return the exit code.

Progress of a run: a live line on a terminal, and one line or JSON object for each task.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType

import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from exact.benchmarks.open import environment_kind, open_environments
from exact.cli.outcome import details, figures, mark, outcome
from exact.cli.person import terminal_person
from exact.cli.signals import run_async
from exact.cli.terminal import echo, padded, width
from exact.config import Config
from exact.errors import ExactError, JournalError, PartError
from exact.library.run import Runner
from exact.runs.environment_cache import EnvironmentCache
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import Blobs, ResultLine, RunFolder
from exact.task import Task
from exact.text import counted, inert
from exact.version import system_lacks

WRONG_CODE = 2
"""Exit code if only the user's own code failed: an evaluator, a policy or another part."""
UNSOLVED = 3
"""Exit code with `--fail-unsolved` if an attempt was not solved."""
NEEDS_USER = 4
"""Exit code if an attempt ended at a page that only a person can pass."""
BEAT = 30.0
"""Seconds between two lines on the progress of an attempt, where no terminal shows it live."""
_SCORE, _SAID = len("score 1"), len("says that it is done")
"""Columns of how an attempt ended: a benchmark scores each."""
_ACTION = 80
"""Characters of the last action in such a line."""


def attempt(
    folder: RunFolder,
    config: Config,
    *,
    as_json: bool,
    repeat_uncertain: bool = False,
    fail_unsolved: bool = False,
    junit: Path | None = None,
) -> int:
    """Run the unfinished tasks of a run and return the exit code."""
    from exact.cli.outcome import is_solved

    if lacks := system_lacks():
        echo(f"exact: {lacks}", err=True)
    try:
        lines = run_async(_attempt(folder, config, as_json=as_json, repeat_uncertain=repeat_uncertain))
    except KeyboardInterrupt:
        echo(f"exact: {_interrupted(folder, config)}", err=True)
        return 130
    if junit is not None:
        from exact.cli.outcome import write_junit

        write_junit(lines, config.name, junit)
    if failed := [line for line in lines if line.status == "failed"]:
        return WRONG_CODE if all(line.missing == PartError.missing for line in failed) else 1
    if any(line.status == "needs_user" for line in lines):
        return NEEDS_USER
    return UNSOLVED if fail_unsolved and not all(map(is_solved, lines)) else 0


def _interrupted(folder: RunFolder, config: Config) -> str:
    """Return the way on after an interruption: to resume, unless an interrupted attempt wrote to a site that keeps it."""
    ended = {line.task for line in folder.results() if line.status != "failed"}
    left = [task for task in folder.manifest.tasks if task.id not in ended]
    lost = [task.id for task in left if not _is_resumable(folder.task_folder(task) / "journal.jsonl", config)]
    if lost and len(lost) == len(left):
        return f"interrupted after {', '.join(lost)} wrote outside, which resuming would repeat: start a new run"
    rest = f" ({', '.join(lost)} wrote outside and needs a new run)" if lost else ""
    return f"interrupted; resume with: exact resume {shlex.quote(str(folder.path))}{rest}"


def _is_resumable(journal: Path, config: Config) -> bool:
    try:
        return not journal.exists() or fold(config, read_journal(journal)).live.is_resumable
    except ExactError:
        return True  # resuming reports what is wrong with the journal


async def _attempt(folder: RunFolder, config: Config, *, as_json: bool, repeat_uncertain: bool) -> list[ResultLine]:
    benchmark = folder.manifest.benchmark
    with RunProgress(folder, config, as_json=as_json) as progress:
        notified = set[str]()

        def notify(text: str) -> None:
            if text not in notified:
                notified.add(text)
                echo(f"exact: {text}", err=True)

        async with (
            progress.told(),
            EnvironmentCache(
                partial(environment_kind, benchmark=benchmark),
                lambda task: open_environments(task, config, benchmark=benchmark, notify=notify),
            ) as environments,
        ):

            def finished(task: Task, line: ResultLine) -> None:
                progress.finished(task, line, folder.task_folder(task) / "report.html")

            runner = Runner(
                folder=folder,
                config=config,
                open_environments=environments,
                watch=progress.event,
                finished=finished,
                repeat_uncertain=repeat_uncertain,
                ask=terminal_person(config.browser, progress.paused, reruns=bool(folder.manifest.ways)),
            )
            return await runner.run()


class RunProgress:
    """Progress display of one run: a live line if standard error is a terminal, else a line every `BEAT` seconds."""

    def __init__(self, folder: RunFolder, config: Config, *, as_json: bool) -> None:
        self._folder, self._config, self._json = folder, config, as_json
        self._at: _Progress | None = None
        """Progress of the present attempt at its last event."""
        self._console = Console(stderr=True)
        self._live = (
            Live(console=self._console, transient=True, refresh_per_second=4, get_renderable=self._now)
            if self._console.is_terminal and not as_json
            else None
        )
        self._width = max(width(inert(task.id)) for task in folder.manifest.tasks)
        self._ends = _SCORE if folder.manifest.benchmark else _SAID
        self._total, self._done = len(folder.manifest.tasks), sum(line.status != "failed" for line in self._last())

    def __enter__(self) -> RunProgress:
        if self._live:
            self._live.start()
        elif not self._json:
            echo(f"{self._config.name}: {counted(self._total, 'task')}, {self._done} done, into {self._folder.path}", err=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()
        if kind is None:
            self._summary()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Draw no live line, so that a person can type."""
        if self._live:
            self._live.stop()
        try:
            yield
        finally:
            if self._live:
                self._live.start()

    @asynccontextmanager
    async def told(self) -> AsyncIterator[None]:
        """Print a line on the present attempt every `BEAT` seconds inside the block, unless a terminal shows it live."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT)
                if self._at is not None:
                    echo(f"  {self._at.line(self._folder.blobs)}", err=True)

        beating = None if self._live else asyncio.create_task(beat())
        try:
            yield
        finally:
            if beating is not None:
                beating.cancel()

    def event(self, task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        """Show an event of an attempt."""
        tree = state.search.tree
        action, seen = (self._at.action, self._at.seen) if self._at is not None and self._at.task == task.id else ("", "")
        match event:
            case ev.Acted():
                node = tree.nodes[event.node]
                action, seen = node.edges[event.edge].action.key, node.observation
            case ev.Committed():
                action, seen = tree.root.edges[event.edge].action.key, tree.root.observation
        self._at = _Progress.of(task, state, action, seen)

    def finished(self, task: Task, line: ResultLine, report: Path) -> None:
        """Print the line of an ended attempt."""
        self._done += 1
        self._at = None
        if self._json:
            echo(msgspec.json.encode({**msgspec.to_builtins(line), "report": str(report)}))
            return
        if self._live:
            self._live.stop()  # the live line is drawn below the printed lines
        took = figures(line) if line.began else ""
        echo(f" {padded(inert(task.id), self._width)}  {outcome(line):{self._ends}}  {took}".rstrip(), mark=mark(line))
        for text in details(line, report=str(report)):
            echo(text)
        if self._live:
            self._live.start()

    def _now(self) -> Table:
        row, at = Table.grid(padding=(0, 2)), self._at
        if at is not None:
            row.add_row(
                f"[bold]{self._done + 1}/{self._total}[/]",
                Text(inert(at.task)),
                counted(at.nodes, "node"),
                "best –" if at.best is None else f"best {at.best:.2f}",
                counted(at.actions, "action"),
                counted(at.calls, "call"),
                f"${at.money:.4f}",
                f"{at.elapsed:.0f} s",
            )
        return row

    def _last(self) -> list[ResultLine]:
        """Return the last line of each task, without those of failed attempts that were rerun."""
        return list({line.task: line for line in self._folder.results()}.values())

    def _summary(self) -> None:
        lines = self._last()
        if self._json or not lines:
            return
        echo(f"\n{_counts(lines)}. Reports: {self._folder.path / 'index.html'}")
        if way := way_on(lines, self._folder.path):
            echo(way)
        sys.stdout.flush()


@dataclass(frozen=True, kw_only=True)
class _Progress:
    """Progress of an attempt at its last event."""

    task: str
    action: str
    """The last simulated or committed action; empty before the first."""
    seen: str
    """Blob of the observation in which it was taken; empty if none is kept."""
    nodes: int
    iterations: int
    best: float | None
    """Highest mean value of an action at the root."""
    actions: int
    """Committed actions."""
    calls: int
    tokens: int
    money: float
    seconds: float
    """Seconds of the attempt up to the event."""
    clock: float
    """Time of the event by this process's clock."""

    @classmethod
    def of(cls, task: Task, state: AttemptState, action: str, seen: str) -> _Progress:
        tree, spent = state.search.tree, state.spending.task.spent
        return cls(
            task=task.id,
            action=action,
            seen=seen,
            nodes=len(tree.nodes),
            iterations=tree.iterations,
            best=max((edge.value for edge in tree.root.edges if edge.value is not None), default=None),
            actions=int(spent.get("actions", 0)),
            calls=int(spent.get("calls", 0)),
            tokens=int(spent.get("tokens", 0)),
            money=spent.get("money", 0.0),
            seconds=state.spending.elapsed,
            clock=monotonic(),
        )

    @property
    def elapsed(self) -> float:
        """Seconds of the attempt up to now, so that a person sees them pass while a model thinks."""
        return self.seconds + monotonic() - self.clock

    def line(self, blobs: Blobs) -> str:
        """Return the progress in one line."""
        from exact.report.model.text import by_name, one_line

        seen = None
        with suppress(JournalError):  # the id says which element it is as well
            seen = blobs.get_observation(self.seen) if self.seen else None
        last = f", last action: {by_name(self.action, seen, _ACTION)}" if self.action else ""
        counts = f"{counted(self.iterations, 'iteration')}, {counted(self.calls, 'call')}, {self.tokens:,} tokens"
        return f"{one_line(self.task)}: {self.elapsed:.0f} s, {counts}, {counted(self.actions, 'action')} committed{last}"


def _counts(lines: Sequence[ResultLine]) -> str:
    """Return how many attempts ended how."""
    scored = [line.score for line in lines if line.score is not None]
    judged, failed = (sum(line.status == status for line in lines) for status in ("judged", "failed"))
    parts = [f"{sum(score >= 1 for score in scored)} of {len(scored)} solved"] if scored else []
    parts += [f"{judged} without an evaluator"] if judged else []
    parts += [f"{failed} failed, without a score"] if failed else []
    waiting = sum(line.status == "needs_user" for line in lines)
    parts += [f"{waiting} that need a person"] if waiting else []
    return ", ".join(parts) or f"{len(lines)} stopped"


def way_on(lines: Sequence[ResultLine], run: Path) -> str:
    """Return the one command that continues after failures; empty if nothing failed."""
    failed = [line for line in lines if line.status == "failed"]
    if not failed:
        return ""
    lasting = sum(not line.resumable for line in failed)
    if lasting == len(failed):
        return "Resuming cannot help: when the cause is fixed, start a new run."
    rest = f" ({lasting} of the {len(failed)} failed need a new run)" if lasting else ""
    return f"When the cause is fixed, run: exact resume {shlex.quote(str(run))}{rest}"
