"""TRL's trainer with an advantage for each token in place of one for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def credited_trainer(credits: Sequence[Sequence[float]] | None) -> Any:
    """Return the class of the trainer. credits: the advantages of each row's tokens, of the last rollout; None: TRL's own."""
    from trl import GRPOTrainer

    if credits is None:
        return GRPOTrainer
    advantages = credits

    class CreditedTrainer(GRPOTrainer):  # type: ignore[misc]
        """GRPO with the advantages of the rollout. TRL's loss takes one a token from a subclass."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            found = super()._generate_and_score_completions(inputs)
            found["advantages"] = padded_credits(advantages, found["completion_ids"])
            return found

    return CreditedTrainer


def padded_credits(credits: Sequence[Sequence[float]], completions: Any) -> Any:
    """Return the advantages as a tensor of the shape of the completions, which are padded on the right."""
    import torch

    made = torch.zeros(completions.shape, device=completions.device)
    for row, each in zip(made, credits, strict=True):
        row[: len(each)] = torch.tensor(each)
    return made
