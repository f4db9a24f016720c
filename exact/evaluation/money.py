"""A bound on the money that all attempts of a benchmark may spend together."""

from __future__ import annotations

from exact.config import Config
from exact.errors import UsageError
from exact.evaluation.folder import BenchFolder
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.task import Task

_ROUNDING = 1e-9
"""US dollars by which sums may differ from the cap because of the rounding of floating-point numbers."""


def money_limit(config: Config) -> float:
    """Return the limit on the money of one attempt, in US dollars. Raises UsageError if there is none."""
    if config.limits.money is None:
        raise UsageError(f"--money needs a limit on each attempt, and agent {config.name} has none: add --budget money=0.5")
    return config.limits.money


class MoneyCap:
    """Money that the attempts spent, from their journals, and money that the running ones may still spend.

    An attempt is admitted if its whole limit fits under the cap beside the money spent and the money that the running attempts may still
    spend. So the cap is never exceeded.
    """

    def __init__(self, folder: BenchFolder, cap: float) -> None:
        """Read the money spent so far. `cap`: US dollars. Raises UsageError if an agent has no limit on the money of an attempt."""
        plan = folder.plan
        self.cap = cap
        self._folders = {agent: folder.agent(agent) for agent in plan.agents}
        self._limits = {agent: money_limit(config) for agent, (_, config) in self._folders.items()}
        self._spent = {(agent, task.id): self._read(agent, task) for agent, task in plan.pairs}
        self._reserved = dict[tuple[str, str], float]()

    @property
    def spent(self) -> float:
        """US dollars that ended and interrupted attempts spent. The cost of requests that were given up on is not known."""
        return sum(self._spent.values())

    def admits(self, agent: str, task: str) -> bool:
        """Return whether the attempt can spend the rest of its limit without exceeding the cap."""
        return self.spent + sum(self._reserved.values()) + self._left(agent, task) <= self.cap + _ROUNDING

    def reserve(self, agent: str, task: str) -> None:
        """Set aside the money that the attempt may still spend."""
        self._reserved[agent, task] = self._left(agent, task)

    def settle(self, agent: str, task: Task) -> None:
        """Replace the amount set aside for an attempt that ended by the amount that it spent."""
        self._reserved.pop((agent, task.id), None)
        self._spent[agent, task.id] = self._read(agent, task)

    def _left(self, agent: str, task: str) -> float:
        return max(0.0, self._limits[agent] - self._spent[agent, task])

    def _read(self, agent: str, task: Task) -> float:
        """Return the cost of the attempts at a task, including those whose journals were put aside."""
        journals = self._folders[agent][0].task_folder(task).glob("journal*.jsonl")
        return sum(_dollars(event) for journal in journals for event in read_journal(journal))


def _dollars(event: ev.AnyEvent) -> float:
    """Return the cost of an event's calls, or the reserved amount if the server reported no usage."""
    match event:
        case ev.Called():
            return event.reserved if event.usage.cost is None else event.usage.cost
        case ev.Unaccounted():
            return event.usage.cost or 0.0
        case _:
            return 0.0
