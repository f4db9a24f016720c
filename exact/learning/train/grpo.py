"""Group-relative policy optimisation by TRL, in the environments of an OpenEnv server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import exact
from exact.errors import UsageError
from exact.learning.train.episodes import ClientSessions, Episode, EpisodePool, EpisodeStart, Sampled
from exact.learning.train.model import adapter, load_model
from exact.learning.train.settings import GRPOSettings, Reduction
from exact.learning.train.sft import TrainedModel, encoder, save

SYSTEM = 'Answer with one action, such as: click "OK" button [3]'


def reward_sum(completions: Sequence[Any], step_rewards: Sequence[Sequence[float]], **_: Any) -> list[float]:
    """Return the sum of each episode's rewards."""
    return [sum(each) for each in step_rewards]


def reward_mean(completions: Sequence[Any], step_rewards: Sequence[Sequence[float]], **_: Any) -> list[float]:
    """Return the mean of each episode's rewards."""
    return [sum(each) / max(1, len(each)) for each in step_rewards]


def reward_max(completions: Sequence[Any], step_rewards: Sequence[Sequence[float]], **_: Any) -> list[float]:
    """Return the largest of each episode's rewards."""
    return [max(each, default=0.0) for each in step_rewards]


REWARDS: dict[Reduction, Callable[..., list[float]]] = {"sum": reward_sum, "mean": reward_mean, "max": reward_max}


def train(settings: GRPOSettings, report: Callable[[dict[str, float]], None] = lambda figures: None) -> TrainedModel:
    """Train a model against a server, and save it or its adapter. Raises UsageError, EnvironmentFailure."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback, set_seed
    from trl import GRPOConfig, GRPOTrainer

    if settings.threads:
        torch.set_num_threads(settings.threads)
    set_seed(settings.seed)
    loaded = load_model(settings.model, settings.seed)
    loaded.tokenizer.padding_side = "left"
    if loaded.tokenizer.pad_token is None:
        loaded.tokenizer.pad_token = loaded.tokenizer.eos_token
    starts = [EpisodeStart(task, seed) for seed in range(settings.seeds) for task in settings.tasks or ("",)]
    gpu = torch.cuda.is_available()
    config = GRPOConfig(
        output_dir=f"{settings.out}.run", max_steps=settings.steps, per_device_train_batch_size=settings.generations * settings.groups,
        num_generations=settings.generations, temperature=settings.temperature, learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup, gradient_accumulation_steps=settings.accumulation, save_steps=settings.save_every, beta=settings.beta,
        max_completion_length=settings.max_new_tokens * settings.max_steps, reward_weights=list(settings.rewards.values()),
        use_cpu=not gpu, bf16=gpu, report_to="none", logging_steps=1, disable_tqdm=True, seed=settings.seed, gradient_checkpointing=False,
    )  # fmt: skip

    class Reporter(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
            if logs and "reward" in logs:
                report(logs | {"step": state.global_step})

    with ClientSessions(settings.server, settings.environments) as sessions:
        pool = EpisodePool(
            sessions.clients,
            encoder(loaded.tokenizer),
            max_steps=settings.max_steps,
            characters=settings.observation_characters,
            system=SYSTEM,
        )
        gaps = list[float]()

        def rollout(prompts: Sequence[str], trainer: Any) -> dict[str, list[Any]]:
            model = trainer.accelerator.unwrap_model(trainer.model)
            sampler = Sampler(model, loaded.tokenizer, settings.temperature, settings.top_k, settings.max_new_tokens)
            episodes = sessions.run(pool.play([EpisodeStart(**json.loads(prompt)) for prompt in prompts], sampler))
            gaps.append(largest_gap(model, episodes, settings.temperature))
            return rows(episodes)

        trainer = GRPOTrainer(
            model=adapter(loaded.model, settings.lora, settings.model), args=config, processing_class=loaded.tokenizer,
            reward_funcs=[REWARDS[name] for name in settings.rewards], rollout_func=rollout, callbacks=[Reporter()],
            train_dataset=Dataset.from_list([{"prompt": json.dumps(start._asdict())} for start in starts]),
        )  # fmt: skip
        resumed = sorted(Path(config.output_dir).glob("checkpoint-*"))
        trainer.train(resume_from_checkpoint=bool(resumed))
    history = [log for log in trainer.state.log_history if "reward" in log]
    for log, gap in zip(history, gaps, strict=False):
        log["logprob_gap"] = gap
    folder = save(trainer.model, loaded.tokenizer, Path(settings.out))
    (folder / "training.json").write_text(json.dumps({"exact": exact.__version__, "history": history}, indent=1))
    return TrainedModel(folder, history, len(history) * settings.generations * settings.groups, 0)


def rows(episodes: Sequence[Episode]) -> dict[str, list[Any]]:
    """Return episodes as TRL's `rollout_func` returns them. Raises UsageError where a row is empty or its lengths differ."""
    for each in episodes:
        lengths = {len(each.completion_ids), len(each.env_mask), len(each.logprobs)}
        if len(lengths) != 1 or not each.completion_ids or not any(each.env_mask):
            raise UsageError(f"an episode of {each.start} has no sampled token, or ids, mask and log-probabilities of different lengths")
    return {
        "prompt_ids": [each.prompt_ids for each in episodes],
        "completion_ids": [each.completion_ids for each in episodes],
        "logprobs": [each.logprobs for each in episodes],
        "env_mask": [each.env_mask for each in episodes],
        "step_rewards": [each.rewards for each in episodes],
    }


class Sampler:
    """Draws answers by transformers, with the log-probabilities of the model at the temperature."""

    def __init__(self, model: Any, tokenizer: Any, temperature: float, top_k: int, most: int) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._temperature, self._top_k, self._most = temperature, top_k, most
        self._end = tokenizer.convert_tokens_to_ids("<|im_end|>")

    def __call__(self, prompts: list[list[int]]) -> list[Sampled]:
        """Return one answer to each prompt."""
        import torch

        width, device = max(map(len, prompts)), self._model.device
        pad = self._tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(each)) + each for each in prompts], device=device)
        mask = torch.tensor([[0] * (width - len(each)) + [1] * len(each) for each in prompts], device=device)
        training = self._model.training
        self._model.eval()
        with torch.no_grad():
            made = self._model.generate(
                input_ids=ids, attention_mask=mask, do_sample=True, temperature=self._temperature, top_k=self._top_k, top_p=1.0,
                max_new_tokens=self._most, eos_token_id=self._end, pad_token_id=pad, return_dict_in_generate=True, output_logits=True,
            )  # fmt: skip
            chances = torch.stack(made.logits, 1).float().div(self._temperature).log_softmax(-1)
        self._model.train(training)
        drawn = made.sequences[:, width:]
        picked = chances.gather(-1, drawn.unsqueeze(-1)).squeeze(-1)
        return [self._one(one.tolist(), chance.tolist()) for one, chance in zip(drawn, picked, strict=True)]

    def _one(self, ids: list[int], logprobs: list[float]) -> Sampled:
        ended = self._end in ids
        count = ids.index(self._end) + 1 if ended else len(ids)
        text = self._tokenizer.decode(ids[: count - ended], skip_special_tokens=True)
        return Sampled(ids[:count], logprobs[:count], text, ended)


def largest_gap(model: Any, episodes: Sequence[Episode], temperature: float) -> float:
    """Return the largest difference between a sampled token's log-probability and the one that its row gives it now."""
    import torch

    largest = 0.0
    for each in episodes:
        ids = torch.tensor([each.prompt_ids + each.completion_ids], device=model.device)
        training = model.training
        model.eval()
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, len(each.prompt_ids) - 1 : -1].float() / temperature
        model.train(training)
        now = logits.log_softmax(-1).gather(-1, ids[0, len(each.prompt_ids) :].unsqueeze(-1)).squeeze(-1).tolist()
        largest = max(largest, *(abs(a - b) for a, b, learned in zip(now, each.logprobs, each.env_mask, strict=True) if learned))
    return largest
