"""Answers drawn by vLLM, which TRL keeps in step with the model that is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from exact.errors import EnvironmentFailure, UsageError
from exact.learning.train.model import IN_MEMORY
from exact.learning.train.pictures import PictureReader, ShownPicture
from exact.learning.train.sampler import AnswerSampler
from exact.learning.train.settings import GRPOSettings

_NEVER = -100.0
"""Added to the logit of a token that is not to be drawn."""


def vllm_usable(settings: GRPOSettings) -> None:
    """Check before a model is loaded that vLLM can be used as the settings say. Raises UsageError."""
    if settings.vllm is not None and not _installed():
        raise UsageError("vllm: the package vllm is not installed: pip install 'trl[vllm]' on a machine with a GPU, or leave vllm out")
    if settings.vllm == "colocate" and settings.model in IN_MEMORY:
        raise UsageError(
            f"vllm: colocate loads a folder or a name, and {settings.model} is made in memory: name another model, or a server"
        )


def vllm_options(settings: GRPOSettings, tokenizer: Any, reader: PictureReader | None) -> dict[str, Any]:
    """Return what TRL's own configuration says of vLLM: nothing where it is not used."""
    if settings.vllm is None:
        return {}
    drawn: dict[str, Any] = {"stop_token_ids": [tokenizer.convert_tokens_to_ids("<|im_end|>")]}
    if reader:
        drawn["logit_bias"] = dict.fromkeys(reader.unsaid, _NEVER)
    server = settings.vllm.rstrip("/").removesuffix("/v1")  # as clients of chat models write it
    place = {"vllm_mode": "colocate"} if settings.vllm == "colocate" else {"vllm_mode": "server", "vllm_server_base_url": server}
    return {"use_vllm": True, "top_k": settings.top_k, "generation_kwargs": drawn, **place}


def _installed() -> bool:
    return find_spec("vllm") is not None


@contextmanager
def reached(settings: GRPOSettings) -> Iterator[None]:
    """Turn TRL's failure to reach vLLM's server, in the block, into one line. Raises EnvironmentFailure."""
    try:
        yield
    except ConnectionError as error:
        raise EnvironmentFailure(f"vllm: no server answers at {settings.vllm}: {' '.join(str(error).split())}") from error


class VLLMSampler(AnswerSampler):
    """Draws answers by the vLLM of a trainer. Their log-probabilities are vLLM's: at the temperature, after the cut to `top_k`."""

    def __init__(self, generation: Any, tokenizer: Any, most: int, reader: PictureReader | None = None) -> None:
        """Configure the sampler. generation: TRL's `trainer.vllm_generation`, whose weights TRL updates before each rollout."""
        super().__init__(tokenizer, reader)
        generation.max_completion_length = most  # of one answer; the trainer's own is that of an episode
        if reader:  # TRL reads nothing but this from it, to find where pictures stand
            generation.processing_class = SimpleNamespace(image_token_id=reader.token)
        self._generation = generation

    def _drawn(self, prompts: list[list[int]], pictures: list[list[ShownPicture]]) -> tuple[list[list[int]], list[list[float]]]:
        images = [[each.image for each in row] or None for row in pictures] if self._reader else None
        _, ids, found, _ = self._generation.generate(prompts=prompts, images=images, num_generations=1)
        if found is None:
            raise UsageError("vLLM returned no log-probabilities: start `vllm serve` with --logprobs-mode processed_logprobs")
        # The first of a token's list is its own, and None where vLLM had no number: TRL makes no correction there.
        return [list(each) for each in ids], [[math.nan if token[0] is None else token[0] for token in row] for row in found]
