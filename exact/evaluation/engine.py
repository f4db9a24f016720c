"""The interface of engines, which run attempts in this process or in others."""

from __future__ import annotations

from typing import Protocol

from exact.errors import InfrastructureError
from exact.evaluation.folder import Replay
from exact.runs.journal.store import ResultLine
from exact.task import Task


class Hung(InfrastructureError):
    """Raised when an attempt recorded no event for too long. The attempt has been killed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"hung: nothing happened for {seconds:g} s; killed")


class Engine(Protocol):
    """Runs attempts, several at once. A later attempt at the same task resumes from the journal of the earlier one."""

    async def persists(self, agent: str, task: Task) -> bool:
        """Return whether side effects of an attempt persist in its environments, which are then not isolated.

        Two attempts must not overlap in such environments. Raises InfrastructureError if this cannot be determined, UsageError.
        """
        ...

    async def attempt(self, agent: str, task: Task) -> ResultLine:
        """Run one attempt to its end and return its line; nothing is added to the results.

        A failure of the infrastructure or of a part is returned as a line of status `failed`, or raised.

        Raises Hung, UsageError, JournalError.
        """
        ...

    async def replay(self, agent: str, task: Task) -> Replay:
        """Replay the committed actions of an ended attempt in a fresh environment. Raises InfrastructureError, UsageError."""
        ...
