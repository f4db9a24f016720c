"""Answers drawn from the model that is trained, and a check of their log-probabilities.

Answers drawn by vLLM, which TRL keeps in step with the model that is trained.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from exact.errors import EnvironmentFailure, UsageError
from exact.learning.train.episodes import Episode, Sampled
from exact.learning.train.model import is_made_in_memory
from exact.learning.train.pictures import PictureReader, ShownPicture, picture_inputs
from exact.learning.train.settings import GRPOSettings

_ROWS_ON_GPU = 16
"""Rows that are scored at once on a GPU. On a CPU it is one: the memory of more is worth nothing there."""


class AnswerSampler(ABC):
    """Draws answers, and measures how long that takes."""

    def __init__(self, tokenizer: Any, reader: PictureReader | None) -> None:
        """Configure the sampler. reader: the reader of the pictures in prompts; None: there are none."""
        self._tokenizer, self._reader = tokenizer, reader
        self._end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.tokens, self.seconds = 0, 0.0

    def __call__(self, prompts: list[list[int]], pictures: list[list[ShownPicture]]) -> list[Sampled]:
        """Return one answer to each prompt. Tokens and seconds are added up."""
        began = time.perf_counter()
        drawn, chances = self._drawn(prompts, pictures)
        found = [self._one(*each) for each in zip(drawn, chances, strict=True)]
        self.tokens += sum(len(each.ids) for each in found)
        self.seconds += time.perf_counter() - began
        return found

    @abstractmethod
    def _drawn(self, prompts: list[list[int]], pictures: list[list[ShownPicture]]) -> tuple[list[list[int]], list[list[float]]]:
        """Return the token ids of one answer to each prompt, and their log-probabilities. Tokens after an end of the turn do not count."""

    def _one(self, ids: list[int], logprobs: list[float]) -> Sampled:
        ended = self._end in ids
        count = ids.index(self._end) + 1 if ended else len(ids)
        text = self._tokenizer.decode(ids[: count - ended], skip_special_tokens=True)
        return Sampled(ids[:count], logprobs[:count], text, ended)


class Sampler(AnswerSampler):
    """Draws answers by transformers, with the log-probabilities of the model at the temperature."""

    def __init__(self, model: Any, tokenizer: Any, temperature: float, top_k: int, most: int, reader: PictureReader | None = None) -> None:
        super().__init__(tokenizer, reader)
        self._model, self._temperature, self._top_k, self._most = model, temperature, top_k, most

    def _drawn(self, prompts: list[list[int]], pictures: list[list[ShownPicture]]) -> tuple[list[list[int]], list[list[float]]]:
        import torch

        ids, mask = padded(prompts, self._tokenizer.pad_token_id, self._model.device, left=True)
        seen = seen_by(self._reader, pictures, ids)
        unsaid = {"suppress_tokens": self._reader.unsaid} if self._reader else {}
        with evaluating(self._model):
            made = self._model.generate(
                input_ids=ids, attention_mask=mask, do_sample=True, temperature=self._temperature, top_k=self._top_k, top_p=1.0,
                max_new_tokens=self._most, eos_token_id=self._end, pad_token_id=self._tokenizer.pad_token_id, return_dict_in_generate=True,
                output_logits=True, **seen, **unsaid,
            )  # fmt: skip
            chances = torch.stack(made.logits, 1).float().div(self._temperature).log_softmax(-1)
        drawn = made.sequences[:, ids.shape[1] :]
        return drawn.tolist(), chances.gather(-1, drawn.unsqueeze(-1)).squeeze(-1).tolist()


def seen_by(reader: PictureReader | None, pictures: Sequence[Sequence[ShownPicture]], ids: Any) -> dict[str, Any]:
    """Return a model's inputs beside the ids: nothing without a reader of pictures."""
    return picture_inputs(pictures, ids, reader.token) if reader else {}


def largest_gap(model: Any, episodes: Sequence[Episode], temperature: float, reader: PictureReader | None = None) -> float:
    """Return the largest difference between a sampled token's log-probability and the one that its row gives it now."""
    count = _ROWS_ON_GPU if model.device.type == "cuda" else 1
    return max(_gap(model, episodes[at : at + count], temperature, reader) for at in range(0, len(episodes), count))


def _gap(model: Any, episodes: Sequence[Episode], temperature: float, reader: PictureReader | None) -> float:
    import torch

    ids, mask = padded([each.prompt_ids + each.completion_ids for each in episodes], 0, model.device)
    with evaluating(model):
        logits = model(input_ids=ids, attention_mask=mask, **seen_by(reader, [each.pictures for each in episodes], ids)).logits
    largest = 0.0
    for row, each in enumerate(episodes):
        begins, ends = len(each.prompt_ids), len(each.prompt_ids) + len(each.completion_ids)
        learned = torch.tensor(each.env_mask, device=model.device).bool()
        chances = logits[row, begins - 1 : ends - 1][learned].float().div(temperature).log_softmax(-1)
        now = chances.gather(-1, ids[row, begins:ends][learned].unsqueeze(-1)).squeeze(-1)
        sampled = torch.tensor(each.logprobs, device=model.device)[learned]
        largest = max(largest, float((now - sampled).abs().max()))
    return largest


def padded(rows: Sequence[Sequence[int]], pad: int, device: Any, *, left: bool = False) -> tuple[Any, Any]:
    """Return rows as one tensor of token ids, and the mask of those that count."""
    import torch

    width = max(map(len, rows))
    blank = [width - len(each) for each in rows]
    ids = [[pad] * more + [*each] if left else [*each] + [pad] * more for each, more in zip(rows, blank, strict=True)]
    mask = [[0] * more + [1] * (width - more) if left else [1] * (width - more) + [0] * more for more in blank]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Keep a model from training, and from recording for gradients, while the block runs."""
    import torch

    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


_NEVER = -100.0
"""Added to the logit of a token that is not to be drawn."""


def vllm_usable(settings: GRPOSettings) -> None:
    """Check before a model is loaded that vLLM can be used as the settings say. Raises UsageError."""
    if settings.vllm is not None and not _installed():
        raise UsageError("vllm: the package vllm is not installed: pip install 'trl[vllm]' on a machine with a GPU, or leave vllm out")
    if settings.vllm == "colocate" and is_made_in_memory(settings.model):
        raise UsageError(
            f"vllm: colocate loads a folder or a name, and {settings.model} is made in memory: name another model, or a server"
        )


def vllm_options(settings: GRPOSettings, tokenizer: Any, reader: PictureReader | None) -> dict[str, Any]:
    """Return the options for vLLM in TRL's configuration: nothing if it is not used."""
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
        if reader:  # TRL reads nothing but this from it, to find the places of pictures
            generation.processing_class = SimpleNamespace(image_token_id=reader.token)
        self._generation = generation

    def _drawn(self, prompts: list[list[int]], pictures: list[list[ShownPicture]]) -> tuple[list[list[int]], list[list[float]]]:
        images = [[each.image for each in row] or None for row in pictures] if self._reader else None
        _, ids, found, _ = self._generation.generate(prompts=prompts, images=images, num_generations=1)
        if found is None:
            raise UsageError("vLLM returned no log-probabilities: start `vllm serve` with --logprobs-mode processed_logprobs")
        # The first of a token's list is its own, and None if vLLM had no number: TRL makes no correction there.
        return [list(each) for each in ids], [[math.nan if token[0] is None else token[0] for token in row] for row in found]
