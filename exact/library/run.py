"""A finished or running run, read from its folder.

A runner that writes reports, as the command line does.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exact.config import Config, load_recorded
from exact.errors import JournalError, UsageError
from exact.library.tasks import named
from exact.runs import runner
from exact.runs.journal.events import AnyEvent
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import Blobs, ResultLine, RunFolder
from exact.search.tree import Tree
from exact.task import Task
from exact.text import counted

if TYPE_CHECKING:
    import networkx
    import pandas  # type: ignore[import-untyped]


class Run:
    """The tasks, results, journals and trees of one run folder.

    Everything is read when it is asked for, so that a run under way can be watched. Methods about one attempt take its task, as a Task or
    by its id; None stands for the only one.
    """

    def __init__(self, path: Path | str) -> None:
        """Open a run folder. Raises UsageError if the path holds none."""
        self._folder = RunFolder.open(Path(path))

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def config(self) -> Config:
        """The configuration that the run was started with."""
        return load_recorded(self.path)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, in order. Raises JournalError if run.json cannot be read."""
        return self._folder.manifest.tasks

    def results(self) -> list[dict[str, Any]]:
        """Return a flat dict for each ended attempt, with the fields of ResultLine. Raises JournalError."""
        return [msgspec.to_builtins(line) for line in self._folder.results()]

    def frame(self) -> pandas.DataFrame:
        """Return the results as a data frame. Raises UsageError if pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise UsageError("a data frame needs pandas, which is not installed: pip install pandas, or use results()") from None
        return pandas.DataFrame(self.results())

    def journal(self, task: Task | str | None = None) -> list[AnyEvent]:
        """Return the events of an attempt, in order. Raises UsageError, JournalError."""
        return list(read_journal(self._folder.journal_of(named(self.tasks, task))))

    def state(self, task: Task | str | None = None) -> AttemptState:
        """Return the state that an attempt's journal folds to. Raises UsageError, JournalError."""
        return fold(self.config, self.journal(task))

    def tree(self, task: Task | str | None = None) -> Tree:
        """Return the tree of an attempt's search, whose text and HTML name elements as the report does. Raises UsageError, JournalError."""
        tree = self.state(task).search.tree
        name_actions(tree, self._folder.blobs)
        return tree

    def graph(self, task: Task | str | None = None) -> networkx.DiGraph[int]:
        """Return the tree as a networkx graph, as `exact export` writes it. Raises UsageError if networkx is not installed."""
        from exact.search.inspect.export import to_networkx

        try:
            return to_networkx(self.tree(task))
        except ImportError:
            raise UsageError("a graph needs networkx, which is not installed: pip install networkx, or use tree()") from None

    def report(self, task: Task | str | None = None) -> Path:
        """Return the path of an attempt's HTML report, written anew from the journal. Raises UsageError, JournalError."""
        from exact.report.build import build_report

        return build_report(self._folder, named(self.tasks, task))

    def __repr__(self) -> str:
        results = list(self._folder.results())
        scored = [line.score for line in results if line.score is not None]
        mean = f", mean score {sum(scored) / len(scored):.2f}" if scored else ""
        return f"<Run {self.path}: {counted(len(self.tasks), 'task')}, {len(results)} ended{mean}>"

    def _repr_html_(self) -> str:
        """Return the results as an HTML table that notebooks show."""
        columns = ("task", "status", "score", "answer", "actions", "transitions", "calls", "cost", "seconds")
        cells = [[line.get(name) for name in columns] for line in self.results()]
        rows = ["".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) for row in cells]
        head = "".join(f"<th>{name}</th>" for name in columns)
        return f"<pre>{escape(repr(self))}</pre><table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def name_actions(tree: Tree, blobs: Blobs) -> None:
    """Put the actions of a tree into words, as far as its observations were recorded and a text of the tree shows them."""
    from exact.report.model.text import by_name
    from exact.search.inspect.text import STATES

    for node in tree.nodes[:STATES]:
        if node.edges and node.observation:
            with suppress(JournalError, ValueError):  # a blob that is gone leaves the ids of elements
                seen = blobs.get_observation(node.observation)
                tree.names |= {(node.id, index): by_name(edge.action, seen) for index, edge in enumerate(node.edges)}


def open_run(path: Path | str) -> Run:
    """Open a run folder, of a run that has ended or is under way. Raises UsageError if the path holds none."""
    return Run(path)


@dataclass(kw_only=True)
class Runner(runner.Runner):
    """One run: a folder, a configuration, and a function that opens environments. Each ended task gets a report, and the run an index."""

    reports: bool = True
    """Whether to write `report.html` for each task, and `index.html`."""

    async def run(self) -> list[ResultLine]:
        """Attempt every task without a result, and failed ones again. Return all results in the order of the tasks.

        Raises UsageError, JournalError.
        """
        lines = await super().run()
        if self.reports:
            complete_reports(self.folder)
        return lines

    def ended(self, task: Task, line: ResultLine) -> None:
        """Write the report of a task that has just ended, and the index."""
        from exact.report.build import build_index, build_report

        if self.reports:
            build_report(self.folder, task)
            build_index(self.folder)
        super().ended(task, line)


def complete_reports(folder: RunFolder) -> None:
    """Write the reports of ended tasks that an earlier session could not write, for instance on a full disk."""
    from exact.report.build import build_index, build_report

    folders = [(task, folder.task_folder(task)) for task in folder.manifest.tasks]
    missing = [task for task, each in folders if (each / "journal.jsonl").exists() and not (each / "report.html").exists()]
    for task in missing:
        build_report(folder, task)
    if missing:
        build_index(folder)
