"""GRPO of a tiny vision model, run by the interpreter that has torch. Prints one JSON object. Usage: vision.py FOLDER SERVER"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from PIL import Image
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration, Qwen3VLConfig, Qwen3VLForConditionalGeneration
from trl import GRPOTrainer
from trl.trainer import grpo_trainer

from exact.errors import UsageError
from exact.learning.train import grpo, sampler
from exact.learning.train.chat import ChatAnswers
from exact.learning.train.episodes import Episode, EpisodeStart
from exact.learning.train.model import load_model
from exact.learning.train.pictures import PictureReader
from exact.learning.train.sampler import Sampler, largest_gap
from exact.learning.train.settings import GRPOSettings
from exact.learning.train.sft import encoder

folder, server = Path(sys.argv[1]), sys.argv[2]
in_loss, swapped = list[float](), list[float]()
loss, logps = GRPOTrainer._compute_loss, GRPOTrainer._get_per_token_logps_and_entropies


def compared(self: Any, model: Any, inputs: Any) -> Any:
    """Keep the largest difference between the log-probabilities in a loss and the sampled ones."""

    def kept(trainer: Any, *args: Any, **options: Any) -> Any:
        found = logps(trainer, *args, **options)
        learned = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        in_loss.append(float((found[0].detach() - inputs["sampling_per_token_logps"])[learned].abs().max()))
        return found

    GRPOTrainer._get_per_token_logps_and_entropies = kept
    try:
        return loss(self, model, inputs)
    finally:
        GRPOTrainer._get_per_token_logps_and_entropies = logps


def gap(model: Any, episodes: Sequence[Episode], temperature: float, reader: Any) -> float:
    """Keep the gap of the rows with other pixels too."""
    others = [replace(each, pictures=[one._replace(pixels=-one.pixels) for one in each.pictures]) for each in episodes]
    swapped.append(largest_gap(model, others, temperature, reader))
    return largest_gap(model, episodes, temperature, reader)


GRPOTrainer._compute_loss, grpo.largest_gap = compared, gap
grpo.returns = lambda episodes, weights: [float(sum(each.completion_ids) % 7) for each in episodes]  # so that some are better than others


def settings(model: str, out: str, **more: Any) -> GRPOSettings:
    """Return the settings of a short training on screenshots."""
    return GRPOSettings(
        model=model, out=str(folder / out), server=server, steps=2, generations=4, batch=2, environments=4, max_steps=3, max_new_tokens=4,
        temperature=1.0, top_k=0, learning_rate=1e-2, threads=1, observation_characters=200, screenshots=True, **more,
    )  # fmt: skip


class Generation:
    """A stand-in for TRL's vLLM, which needs a GPU: it draws from the model that is trained, and finds pictures by itself."""

    made = list[Any]()

    def __init__(self, model: Any, accelerator: Any, processing_class: Any, **options: Any) -> None:
        self.model, self.tokenizer, self.options, self.synced = model, processing_class, options, 0
        self.made.append(self)

    def sync_weights(self) -> None:
        """Count the calls."""
        self.synced += 1

    def generate(self, prompts: list[list[int]], images: list[list[Any]], num_generations: int) -> Any:
        """Return what vLLM returns: each token's own log-probability first."""
        reader = PictureReader(load_model("tiny-vision"), "tiny-vision", None)
        pictures = [[reader(png(image)) for image in row] for row in images]
        drawn = Sampler(self.model, self.tokenizer, self.options["temperature"], self.options["top_k"], self.max_completion_length, reader)
        answers = drawn(prompts, pictures)
        return prompts, [each.ids for each in answers], [[[one] for one in each.logprobs] for each in answers], None


def png(image: Any) -> bytes:
    """Return an image as the server gives it."""
    file = io.BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue())


first = grpo.train(settings("tiny-vision", "first", lora=None))
second = grpo.train(settings(str(folder / "first"), "second", branches=2, credit="step", beta=0.1, screenshot_tokens=6))
sampler._installed, grpo_trainer.VLLMGeneration = lambda: True, Generation
third = grpo.train(settings(str(folder / "first"), "third", vllm="colocate", screenshot_tokens=6))
try:
    refused = str(grpo.train(settings("tiny", "fourth")))
except UsageError as error:
    refused = str(error)
start, loaded = load_model(str(folder / "first")), load_model(str(folder / "second"))
changed = [name for name, value in loaded.model.state_dict().items() if not torch.equal(value, start.model.state_dict()[name])]
adapted = PeftModel.from_pretrained(start.model, str(folder / "second"))


def kinds() -> list[list[float]]:
    """Return the gap of rows of other kinds of vision models, and that with other pixels."""
    parts, found = load_model("tiny-vision"), list[list[float]]()
    encode, shot = encoder(parts.tokenizer), png(Image.effect_noise((90, 60), 60))
    given = parts.model.config.to_dict()
    named = {name: value for name, value in given.items() if name.endswith("token_id")} | {"tie_word_embeddings": True}
    eyes = {"depth": 2, "num_heads": 2, "patch_size": 14}
    text = given["text_config"]
    for model in (
        Qwen2VLForConditionalGeneration(
            Qwen2VLConfig(text_config=text, vision_config=eyes | {"embed_dim": 32, "hidden_size": 48, "mlp_ratio": 2}, **named)
        ),
        Qwen3VLForConditionalGeneration(
            Qwen3VLConfig(
                text_config=text | {"head_dim": 12},
                vision_config=eyes | {"hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 48, "deepstack_visual_indexes": [0]},
                **named,
            )
        ),
    ):
        reader = PictureReader(parts._replace(model=model), "other", None)
        sampler, episodes = Sampler(model, parts.tokenizer, 1.0, 0, 6, reader), [Episode(EpisodeStart("", row)) for row in range(2)]
        for turn in range(3):
            for row, episode in enumerate(episodes):
                picture = reader(shot)
                episode.show(encode(f"{picture.mark}Page: {'x' * (3 * row + turn)}"), [picture])
            drawn = sampler([each.prompt_ids + each.completion_ids for each in episodes], [each.pictures for each in episodes])
            for episode, answer in zip(episodes, drawn, strict=True):
                episode.say(answer)
        found.append([gap(model, episodes, 1.0, reader), swapped.pop()])
    return found


eyes = PictureReader(start, "first", None)
drawn = Sampler(start.model, start.tokenizer, 1e3, 0, 200, eyes)([[1, 2]] * 8, [[]] * 8)  # all tokens are about as likely


def answered(image: Any) -> list[Any]:
    """Return the tokens of a prompt that holds a picture, the log-probability of the answer's first token, and the gap of its row."""
    url = {"url": f"data:image/png;base64,{png(image).decode()}"}
    turn = {"role": "user", "content": [{"type": "image_url", "image_url": url}, {"type": "text", "text": "Page:"}]}
    found = ChatAnswers(loaded)({"messages": [turn], "temperature": 0, "max_tokens": 3, "logprobs": True, "n": 2})
    choice, ids = found["choices"][1], found["prompt_token_ids"]
    chances = [each["logprob"] for each in choice["logprobs"]["content"]]
    reader = PictureReader(loaded, "second", None)
    row = Episode(EpisodeStart("", 0), ids, choice["token_ids"], [1] * len(chances), chances, pictures=[reader(png(image))])
    return [found["usage"]["prompt_tokens"], chances[0], largest_gap(loaded.model, [row], 1.0, reader)]


def refused_to_answer(*parts: dict[str, Any]) -> str:
    """Return why a request is refused."""
    try:
        return str(ChatAnswers(loaded)({"messages": [{"role": "user", "content": list(parts)}]}))
    except UsageError as error:
        return str(error)


sys.stdout.write(
    json.dumps({
        "losses": [each["loss"] for each in [*first.history, *second.history]],
        "gaps": [each["logprob_gap"] for each in [*first.history, *second.history]],
        "in_loss": in_loss,
        "swapped": swapped,
        "kl": [each["kl"] for each in second.history],
        "grad_norm": [each["grad_norm"] for each in second.history],
        "tokens": [each["num_tokens"] for each in (first.history[0], second.history[0])],
        "refused": refused,
        "changed": changed,
        "adapters": [name for name, _ in adapted.named_parameters() if "lora_" in name],
        "said": [len({id for each in drawn for id in each.ids}), [id for each in drawn for id in each.ids if id in eyes.unsaid]],
        "vllm": [each["sampling/sampling_logp_difference/max"] for each in third.history],
        "ratios": [each["sampling/importance_sampling_ratio/mean"] for each in third.history],
        "synced": [each.synced for each in Generation.made],
        "kinds": kinds(),
        "answered": [answered(Image.new("RGB", size, "red")) for size in ((56, 56), (112, 112))],
        "unanswered": [
            refused_to_answer({"type": "image_url", "image_url": {"url": "http://other/picture.png"}}),
            refused_to_answer({"type": "text", "text": "<|image_pad|>"}),
        ],
        "eyes": type(loaded.image_processor).__name__,
    })
)  # fmt: skip
