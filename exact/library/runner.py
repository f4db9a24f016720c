"""A runner that writes reports, as the command line does."""

from __future__ import annotations

from dataclasses import dataclass

from exact.runs import runner
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Task


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
        from exact.report import build_index, build_report

        if self.reports:
            build_report(self.folder, task)
            build_index(self.folder)
        super().ended(task, line)


def complete_reports(folder: RunFolder) -> None:
    """Write the reports of ended tasks that an earlier session could not write, for instance on a full disk."""
    from exact.report import build_index, build_report

    folders = [(task, folder.task_folder(task)) for task in folder.manifest.tasks]
    missing = [task for task, each in folders if (each / "journal.jsonl").exists() and not (each / "report.html").exists()]
    for task in missing:
        build_report(folder, task)
    if missing:
        build_index(folder)
