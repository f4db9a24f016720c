"""A value function that knows nothing: with it a search has only its policy's priors."""

from __future__ import annotations

from exact.context import Context, Evaluation


class ConstantValue:
    """The same value for every state."""

    def __init__(self, value: float = 0.5) -> None:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a value of {value} is not a probability: give one in [0, 1]")
        self.value = value

    async def evaluate(self, context: Context) -> Evaluation:
        """That value, whatever the state."""
        return Evaluation(value=self.value, rationale="constant", samples=(self.value,))
