"""Who makes attempts: in this process, or elsewhere."""

from __future__ import annotations

from typing import Protocol

from exact.errors import InfrastructureError
from exact.evaluation.folder import Replay
from exact.runs.journal.store import Line
from exact.task import Task


class Hung(InfrastructureError):
    """An attempt in which nothing happened for too long. It was killed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"hung: nothing happened for {seconds:g} s; killed")


class Engine(Protocol):
    """Makes attempts, several at once. What an attempt has journalled is not done again by the next one at the same task."""

    async def persists(self, agent: str, task: Task) -> bool:
        """Whether what an attempt does in its environments stays there: they are not isolated, and no two attempts may overlap in such
        environments.

        Raises InfrastructureError where that cannot be found out, UsageError.
        """
        ...

    async def attempt(self, agent: str, task: Task) -> Line:
        """One attempt, to its end. An infrastructure failure is a Line that says so, or raised; nothing is added to the results.

        Raises Hung, UsageError, JournalError, UncertainCommit.
        """
        ...

    async def replay(self, agent: str, task: Task) -> Replay:
        """The actions of an attempt that has ended, in a fresh environment. Raises InfrastructureError, UsageError."""
        ...
