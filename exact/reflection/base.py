"""The contracts of reflection."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from exact.context import Context, Reflection, Taken
from exact.observation import Observation

Kind = Literal["policy", "value"]


class Surprise(msgspec.Struct, frozen=True, kw_only=True):
    """One committed step whose outcome was not what the search expected."""

    step: Taken
    """State and action."""
    after: Observation | None
    """What came; None when the episode ended."""
    expected: float
    """Q of the action at the time of the decision, in [0, 1]; before the step's own value was backed up."""
    real: float
    """What came, in [0, 1], as the search knew it at the end: the mean of the values in that state and below; the outcome where the
    step was the last."""
    value_before: float
    """V of the state it was taken in, frozen before acting."""
    alternative: str = ""
    """Canonical text of the best-valued sibling that was not chosen, if any."""
    alternative_value: float | None = None
    node: int = 0

    @property
    def surprise(self) -> float:
        """Signed, in [-1, 1]: negative when it went worse than expected."""
        return self.real - self.expected


class Reflector(Protocol):
    """Writes a lesson from a surprise."""

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection:
        """`context` is that of the state the action was taken in. Raises ModelError; a failed call writes nothing."""
        ...


class Memory(Protocol):
    """Keeps reflections. Many processes may use one at once. Calls are short; run them in a thread from async code."""

    def add(self, reflection: Reflection) -> None:
        """Stored durably on return. Adding an id twice is a no-op."""
        ...

    def retrieve(self, context: Context, kind: Kind, *, k: int, threshold: float, exclude_task: str | None) -> tuple[Reflection, ...]:
        """The k most similar above the cosine threshold, best first.

        `exclude_task`: leave out reflections from that task, any seed of it (benchmark mode).
        """
        ...

    @property
    def version(self) -> str:
        """Changes when the content changes; journalled with each use."""
        ...

    def close(self) -> None: ...
