"""Contracts of reflection: surprises, reflectors and memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec

from exact.context import Context, Evaluation, Reflection, Taken
from exact.observation import Observation

Kind = Literal["policy", "value"]


class Surprise(msgspec.Struct, frozen=True, kw_only=True):
    """A step with an unexpected result. Its signal says which expectation was wrong (see contrast.py)."""

    step: Taken
    """State and action of the step."""
    after: Observation | None
    """Resulting observation; None if the episode ended."""
    expected: float
    """Expected value, in [0, 1]."""
    real: float
    """Actual value, in [0, 1]."""
    value_before: float
    """V of the state in which the step was taken, from before the step."""
    alternative: str = ""
    """Canonical text of the contrasted action, if any: the best-valued sibling, the policy's favourite, or the committed action."""
    alternative_value: float | None = None
    alternative_after: Observation | None = None
    """Observation that the contrasted action led to, if it was seen."""
    node: int = 0
    signal: str = "edge"
    """Name of the wrong expectation."""
    judgement: Evaluation | None = None
    """First evaluation of the resulting state, with its reasons: the subject of a reflection for the value function."""

    @property
    def surprise(self) -> float:
        """Actual less expected value, in [-1, 1]: negative if the result was worse than expected."""
        return self.real - self.expected

    @property
    def expectation(self) -> str:
        """Text of the expectation, with the evaluator's reasons if they are known."""
        reasons = " ".join(self.judgement.rationale.split()) if self.judgement else ""
        return f"success with probability {self.expected:.2f}" + (f": {reasons}" if reasons else "")

    @property
    def size(self) -> float:
        """Size that surprises are ranked by."""
        return abs(self.surprise)


class Reflector(Protocol):
    """An author of reflections on surprises."""

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection | None:
        """Return a reflection; None if there is nothing to learn. `context` is that of the state in which the action was taken.

        Raises ModelError; a failed call writes nothing.
        """
        ...


class Memory(Protocol):
    """A store of reflections that several processes may use at once. Calls are short; run them in a thread from async code."""

    def add(self, reflection: Reflection) -> None:
        """Store a reflection durably. Adding an id again has no effect, unless its outcome is more certain."""
        ...

    def retrieve(
        self, context: Context, kind: Kind, *, k: int, threshold: float, exclude_task: str | None, confidence: float = 0.0
    ) -> tuple[Reflection, ...]:
        """Return the k most similar reflections above the cosine threshold, best first.

        `exclude_task` leaves out reflections from any seed of that task and from its template (benchmark mode). `confidence` leaves
        out those whose outcome v has a lower certainty |2 v - 1|.
        """
        ...

    def used(self, attempt: str, ids: Iterable[str], success: bool | None) -> None:
        """Record the end of an attempt that was shown reflections; `success` is None if it is unknown. Repeated calls count once."""
        ...

    @property
    def version(self) -> str:
        """Version that changes with the content; journalled with each use."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...
