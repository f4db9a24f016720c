"""GRPO with vLLM, at the seam with TRL: vLLM itself needs a GPU. tests/learning/train/vision.py trains with a stand-in for it."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exact.errors import EnvironmentFailure, UsageError
from exact.learning.train import grpo, sampler
from exact.learning.train.pictures import ShownPicture
from exact.learning.train.sampler import VLLMSampler, reached, vllm_options
from exact.learning.train.settings import GRPOSettings, read_settings

TOKENIZER = SimpleNamespace(convert_tokens_to_ids=lambda mark: 9, decode=lambda ids, skip_special_tokens: " ".join(map(str, ids)))
READER: Any = SimpleNamespace(token=5, unsaid=[5, 6])


def settings(**more: Any) -> GRPOSettings:
    return GRPOSettings(**{"model": "folder", "out": "out", "server": "http://server"} | more)


class Generation:
    """A stand-in for `trainer.vllm_generation`."""

    max_completion_length = 999

    def __init__(self, found: Any) -> None:
        self.found = found

    def generate(self, prompts: list[list[int]], images: Any, num_generations: int) -> Any:
        self.asked = (prompts, images, num_generations)
        return prompts, [(1, 2, 9), (3,)], self.found, None


def test_answers_have_the_tokens_and_the_log_probabilities_of_vllm() -> None:
    generation = Generation([[[-0.1], [-0.2], [-0.3]], [[None]]])
    sampler = VLLMSampler(generation, TOKENIZER, 16)
    first, second = sampler([[7], [8, 8]], [[], []])
    assert (first.ids, first.logprobs, first.text, first.ended) == ([1, 2, 9], [-0.1, -0.2, -0.3], "1 2", True)
    assert second.ids == [3] and math.isnan(second.logprobs[0]) and not second.ended
    assert generation.asked == ([[7], [8, 8]], None, 1) and generation.max_completion_length == 16 and sampler.tokens == 4


def test_vllm_is_given_the_pictures_and_where_they_stand() -> None:
    generation: Any = Generation([[[-0.1]] * 3, [[-0.1]]])
    VLLMSampler(generation, TOKENIZER, 16, READER)([[7], [8]], [[ShownPicture("image", None, (1, 2, 2), "")], []])
    assert generation.asked[1] == [["image"], None] and generation.processing_class.image_token_id == 5


def test_a_server_without_log_probabilities_is_refused() -> None:
    with pytest.raises(UsageError, match="--logprobs-mode processed_logprobs"):
        VLLMSampler(Generation(None), TOKENIZER, 16)([[7], [8]], [[], []])


def test_settings_become_those_of_trl() -> None:
    stop = {"stop_token_ids": [9]}
    assert vllm_options(settings(), TOKENIZER, None) == {}
    assert vllm_options(settings(vllm="colocate", top_k=3), TOKENIZER, None) == {
        "use_vllm": True, "vllm_mode": "colocate", "top_k": 3, "generation_kwargs": stop,
    }  # fmt: skip
    for address in ("http://gpu:8000", "http://gpu:8000/", "http://gpu:8000/v1", "http://gpu:8000/v1/"):
        found = vllm_options(settings(vllm=address), TOKENIZER, READER)
        assert (found["vllm_mode"], found["vllm_server_base_url"]) == ("server", "http://gpu:8000")
        assert found["generation_kwargs"] == stop | {"logit_bias": {5: -100.0, 6: -100.0}}


@pytest.mark.parametrize("model", ["tiny", "tiny-vision", "smollm2", "weights/qwen.gguf"])
def test_what_cannot_be_used_is_refused_before_a_model_is_loaded(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "datasets", "transformers"):
        monkeypatch.setitem(__import__("sys").modules, name, SimpleNamespace(Dataset=None, set_seed=None))
    with pytest.raises(UsageError, match="the package vllm is not installed: pip install"):
        grpo.train(settings(model=model, vllm="http://gpu"))
    monkeypatch.setattr(sampler, "_installed", lambda: True)
    with pytest.raises(UsageError, match=f"colocate loads a folder or a name, and {model} is made in memory"):
        grpo.train(settings(model=model, vllm="colocate"))


def test_a_server_that_is_not_there_is_one_line() -> None:
    with (
        pytest.raises(EnvironmentFailure, match="vllm: no server answers at http://gpu: it is not up"),
        reached(settings(vllm="http://gpu")),
    ):
        raise ConnectionError("it is\nnot up")


def test_the_setting_is_an_address_or_colocate(tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text("model: tiny\nout: x\nserver: s\n")
    assert read_settings(path, GRPOSettings, ("vllm=https://gpu:8000",)).vllm == "https://gpu:8000"
    with pytest.raises(UsageError, match="vllm"):
        read_settings(path, GRPOSettings, ("vllm=locally",))
