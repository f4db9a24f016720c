"""The contracts of reflection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec

from exact.context import Context, Evaluation, Reflection, Taken
from exact.observation import Observation

Kind = Literal["policy", "value"]


class Surprise(msgspec.Struct, frozen=True, kw_only=True):
    """A step that came out otherwise than expected; what was expected, and of what, its signal says (see contrast.py)."""

    step: Taken
    """State and action."""
    after: Observation | None
    """What came; None when the episode ended."""
    expected: float
    """In [0, 1]."""
    real: float
    """What came, in [0, 1]."""
    value_before: float
    """V of the state it was taken in, frozen before acting."""
    alternative: str = ""
    """Canonical text of the action it is contrasted with, if any: the best-valued sibling, the policy's favourite, the committed one."""
    alternative_value: float | None = None
    node: int = 0
    signal: str = "edge"
    """Which expectation was wrong."""
    more: float = 0.0
    """Added to its size, where a measure does that."""
    judgement: Evaluation | None = None
    """The first judgement of the state that came, with its reasons; what a lesson for judges is about."""

    @property
    def surprise(self) -> float:
        """Signed, in [-1, 1]: negative when it went worse than expected."""
        return self.real - self.expected

    @property
    def expectation(self) -> str:
        """What was expected, in the words of who judged where these are known."""
        reasons = " ".join(self.judgement.rationale.split()) if self.judgement else ""
        return f"success with probability {self.expected:.2f}" + (f": {reasons}" if reasons else "")

    @property
    def size(self) -> float:
        """What it is ranked by."""
        return abs(self.surprise) + self.more


class Reflector(Protocol):
    """Writes a lesson from a surprise."""

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection:
        """`context` is that of the state the action was taken in. Raises ModelError; a failed call writes nothing."""
        ...


class Memory(Protocol):
    """Keeps reflections. Many processes may use one at once. Calls are short; run them in a thread from async code."""

    def add(self, reflection: Reflection) -> None:
        """Stored durably on return. Adding an id twice is a no-op, unless its outcome is surer than it was."""
        ...

    def retrieve(
        self, context: Context, kind: Kind, *, k: int, threshold: float, exclude_task: str | None, confidence: float = 0.0
    ) -> tuple[Reflection, ...]:
        """The k most similar above the cosine threshold, best first.

        `exclude_task`: leave out reflections from that task, any seed of it, and from its template (benchmark mode). `confidence`: leave
        out those whose outcome was judged less surely, |2 v - 1|.
        """
        ...

    def used(self, attempt: str, ids: Iterable[str], success: bool | None) -> None:
        """An attempt that was shown reflections has ended well, badly, or nobody knows how. Saying it twice counts once."""
        ...

    @property
    def version(self) -> str:
        """Changes when the content changes; journalled with each use."""
        ...

    def close(self) -> None: ...
