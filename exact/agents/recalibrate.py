"""Recalibration: a curve, fitted to outcomes, that maps graded values to probabilities of success."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from pathlib import Path

import msgspec

from exact.agents.base import ValueFunction, evaluate, evaluate_all
from exact.context import Context, Evaluation
from exact.errors import UsageError
from exact.untrusted import read_bounded


class Curve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A non-decreasing function of values: linear between its points, constant beyond them."""

    values: tuple[float, ...]
    """Increasing values in [0, 1], at least one."""
    probabilities: tuple[float, ...]
    """Probabilities in [0, 1], one for each value, non-decreasing."""
    about: str = ""
    """Description of the fit: value function, runs and number of outcomes."""

    def __call__(self, value: float) -> float:
        """Return the probability for a value."""
        i = bisect.bisect_left(self.values, value)
        if i == 0:
            return self.probabilities[0]
        if i == len(self.values):
            return self.probabilities[-1]
        low, high = self.values[i - 1], self.values[i]
        before, after = self.probabilities[i - 1], self.probabilities[i]
        return min(after, before + (after - before) * (value - low) / (high - low))


def load_curve(path: str) -> Curve:
    """Return the curve in a JSON file.

    Raises UsageError if the file cannot be read or holds no non-decreasing curve.
    """
    try:
        curve = msgspec.json.decode(read_bounded(Path(path)), type=Curve)
    except OSError as error:
        raise UsageError(f"cannot read calibration {path}: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path} holds no calibration ({error}): write one with `exact train calibration RUN --fit {path}`") from error
    rising = all(a < b for a, b in zip(curve.values, curve.values[1:], strict=False))
    never_falls = all(a <= b for a, b in zip(curve.probabilities, curve.probabilities[1:], strict=False))
    whole = len(curve.values) == len(curve.probabilities) > 0 and all(0 <= each <= 1 for each in (*curve.values, *curve.probabilities))
    if not (rising and never_falls and whole):
        raise UsageError(f"{path} holds no curve that never falls: write one with `exact train calibration RUN --fit {path}`")
    return curve


class RecalibratedValue:
    """Maps another value function's values through a curve. Samples and disagreement stay as they were."""

    def __init__(self, value: ValueFunction, curve: Curve) -> None:
        self._value, self._curve = value, curve

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the recalibrated evaluation.

        Raises ModelError.
        """
        return self._through(await evaluate(self._value, context))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return the recalibrated evaluations of siblings, in order.

        Raises ModelError.
        """
        return tuple(self._through(found) for found in await evaluate_all(self._value, contexts))

    def _through(self, found: Evaluation) -> Evaluation:
        return msgspec.structs.replace(found, value=self._curve(found.value))
