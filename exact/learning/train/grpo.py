"""Group-relative policy optimisation by TRL, in the environments of an OpenEnv server.

TRL's trainer with an advantage for each token in place of one for each row.

Episodes of one start that share first steps, as a tree, and the value of each step of such a tree.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from exact.errors import UsageError
from exact.learning.masks import Encode
from exact.learning.train.curves import PAGE, reported, reporter, training_page
from exact.learning.train.episodes import Episode, EpisodePool, EpisodeStart, EpisodeStep, Sample
from exact.learning.train.model import adapter, load_model
from exact.learning.train.pictures import PictureReader, ShownPicture, pictured_trainer
from exact.learning.train.sampler import AnswerSampler, Sampler, VLLMSampler, largest_gap, reached, vllm_options, vllm_usable
from exact.learning.train.sessions import ClientSessions, SessionClient
from exact.learning.train.settings import GRPOSettings, Reduction
from exact.learning.train.sft import TrainedModel, encoder, save, unused
from exact.runs.lock import LOCK, sole
from exact.version import __version__


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
    from transformers import set_seed

    if settings.credit == "step" and not settings.branches:
        raise UsageError("credit: step needs branches, which the values before and after a step are known by: set branches, such as 4")
    if settings.branches >= settings.generations:
        raise UsageError(f"{settings.branches} branches of {settings.generations} generations: at least one episode begins at the start")
    vllm_usable(settings)
    reported(settings.report_to)
    unused(settings.out)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    set_seed(settings.seed)
    loaded = load_model(settings.model, settings.seed)
    loaded.tokenizer.padding_side = "left"
    if loaded.tokenizer.pad_token is None:
        loaded.tokenizer.pad_token = loaded.tokenizer.eos_token
    reader = PictureReader(loaded, settings.model, settings.screenshot_tokens) if settings.screenshots else None
    starts = [EpisodeStart(task, seed) for seed in range(settings.seeds) for task in settings.tasks or ("",)]
    config = _config(settings, vllm_options(settings, loaded.tokenizer, reader))
    with sole(Path(config.output_dir), LOCK), ClientSessions(settings.server, settings.environments) as sessions:
        pool = episode_pool(settings, sessions.clients, encoder(loaded.tokenizer), reader)
        played = partial(_played, settings, pool)
        rollouts = RolloutFunction(settings, loaded.tokenizer, lambda starts, sample: sessions.run(played(starts, sample)), reader)
        with reached(settings):
            trainer = _trainer(settings, rollouts)(
                model=adapter(loaded.model, settings.lora, settings.model), args=config, processing_class=loaded.tokenizer,
                reward_funcs=[REWARDS[name] for name in settings.rewards], rollout_func=rollouts,
                callbacks=[reporter(rollouts.figures, report, Path(config.output_dir), Path(settings.out).name)],
                train_dataset=Dataset.from_list([{"prompt": json.dumps(start._asdict())} for start in starts]),
            )  # fmt: skip
        trainer.train(resume_from_checkpoint=last_checkpoint(Path(config.output_dir)))
    history = [log for log in trainer.state.log_history if "reward" in log]
    folder = save(trainer.model, loaded, Path(settings.out))
    (folder / "training.json").write_text(json.dumps({"exact": __version__, **used(), "history": history}, indent=1))
    (folder / PAGE).write_text(training_page(folder.name, history), "utf-8")
    return TrainedModel(folder, history, len(history) * settings.generations * settings.groups * settings.accumulation, 0)


def last_checkpoint(folder: Path) -> str | None:
    """Return the newest checkpoint that is whole; None if there is none."""
    whole = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    return str(max(whole, key=lambda path: int(path.name.rpartition("-")[2]))) if whole else None


def _is_whole(checkpoint: Path) -> bool:
    """Return whether the state of a checkpoint reads. It is the file that is written last, and a kill may cut it off."""
    try:
        return isinstance(json.loads((checkpoint / "trainer_state.json").read_bytes()), dict)
    except (OSError, ValueError):
        return False


def episode_pool(
    settings: GRPOSettings, clients: Sequence[SessionClient], encode: Encode, look: Callable[[Any], ShownPicture] | None = None
) -> EpisodePool:
    """Return the sessions as a pool that shows pages as the settings say."""
    return EpisodePool(
        clients, encode, max_steps=settings.max_steps, characters=settings.observation_characters, system=settings.system,
        history=settings.history, look=look,
    )  # fmt: skip


def _trainer(settings: GRPOSettings, rollouts: RolloutFunction) -> Any:
    trainer = credited_trainer(rollouts.credits if settings.credit == "step" else None)
    return pictured_trainer(trainer, rollouts.pictures, rollouts.reader.token) if rollouts.reader else trainer


def _config(settings: GRPOSettings, vllm: Mapping[str, Any]) -> Any:
    import torch
    from trl import GRPOConfig

    episodes = settings.generations * settings.groups * settings.accumulation
    batch = settings.batch or settings.generations * settings.groups
    if episodes % batch:
        raise UsageError(f"batch: {batch} does not divide the {episodes} episodes of a step (generations x groups x accumulation)")
    # No 16-bit floats: with bfloat16 on a GPU, log-probabilities of one row differed by 0.39 between two batches.
    return GRPOConfig(
        output_dir=f"{settings.out}.run", max_steps=settings.steps, per_device_train_batch_size=batch,
        num_generations=settings.generations, temperature=settings.temperature, learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup, gradient_accumulation_steps=episodes // batch, save_steps=settings.save_every, beta=settings.beta,
        max_completion_length=settings.max_new_tokens * settings.max_steps, reward_weights=list(settings.rewards.values()),
        use_cpu=not torch.cuda.is_available(), bf16=False, report_to=list(settings.report_to) or "none", run_name=settings.run_name,
        logging_steps=1, disable_tqdm=True, seed=settings.seed, gradient_checkpointing=False, **vllm,
    )  # fmt: skip


async def _played(settings: GRPOSettings, pool: EpisodePool, starts: Sequence[EpisodeStart], sample: Sample) -> list[Episode]:
    if not settings.branches:
        return await pool.play(starts, sample)
    chance = random.Random(f"{settings.seed} {starts}")
    return await play_trees(pool, starts, sample, size=settings.generations, branches=settings.branches, chance=chance)


class RolloutFunction:
    """TRL's `rollout_func`: one row for each prompt, which names the start of an episode."""

    def __init__(
        self, settings: GRPOSettings, tokenizer: Any, play: Callable[[list[EpisodeStart], Sample], list[Episode]],
        reader: PictureReader | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._tokenizer, self._play, self.reader = settings, tokenizer, play, reader
        self.figures = dict[str, float]()
        """Figures measured on the last rows."""
        self.credits = list[list[float]]()
        """Advantage of each token of the last rows, with `credit: step`."""
        self.pictures = list[list[ShownPicture]]()
        """Screenshots in each of the last rows."""

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, list[Any]]:
        """Play the episodes. Raises EnvironmentFailure, UsageError."""
        settings, model = self._settings, trainer.accelerator.unwrap_model(trainer.model)
        sampler = self._sampler(model, trainer)
        began = time.perf_counter()
        episodes = self._play([EpisodeStart(**json.loads(prompt)) for prompt in prompts], sampler)
        others = time.perf_counter() - began - sampler.seconds
        self.figures.update(sampled_tokens=sampler.tokens, sampling_seconds=sampler.seconds, environment_seconds=others)
        self.figures["actions"] = sum(len(each.steps) for each in episodes)
        self.figures["shared_steps"] = self.figures["actions"] - len({step for each in episodes for step in each.steps})
        self.figures["logprob_gap"] = largest_gap(model, episodes, settings.temperature, self.reader)
        self.pictures[:] = [each.pictures for each in episodes]
        if settings.credit == "step":
            self.credits[:] = token_credits(episodes, returns(episodes, settings.rewards), settings.generations)
        return rows(episodes)

    def _sampler(self, model: Any, trainer: Any) -> AnswerSampler:
        settings = self._settings
        if settings.vllm is not None:
            return VLLMSampler(trainer.vllm_generation, self._tokenizer, settings.max_new_tokens, self.reader)
        return Sampler(model, self._tokenizer, settings.temperature, settings.top_k, settings.max_new_tokens, self.reader)


def returns(episodes: Sequence[Episode], weights: Mapping[Reduction, float]) -> list[float]:
    """Return the weighted reward of each episode."""
    steps = [each.rewards for each in episodes]
    found = [(weight, REWARDS[name](steps, steps)) for name, weight in weights.items()]
    return [sum(weight * values[row] for weight, values in found) for row in range(len(episodes))]


def used() -> dict[str, Any]:
    """Return the device of the training and the most memory that it used: of this process, and of the GPU."""
    import torch

    found: dict[str, Any] = {"device": "cpu"}
    with suppress(ImportError):  # Windows does not report it
        import resource

        found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (2**20 if sys.platform == "darwin" else 2**10)
    if torch.cuda.is_available():
        found |= {"device": torch.cuda.get_device_name(), "peak_gpu_mib": torch.cuda.max_memory_allocated() // 2**20}
    return found


def rows(episodes: Sequence[Episode]) -> dict[str, list[Any]]:
    """Return episodes as TRL's `rollout_func` returns them. Raises UsageError if a row is empty or its lengths differ."""
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


_LEAST = 1e-4
"""Added to a deviation, as TRL does."""


async def play_trees(
    pool: EpisodePool, starts: Sequence[EpisodeStart], sample: Sample, *, size: int, branches: int, chance: random.Random
) -> list[Episode]:
    """Return one episode for each start, in order. Raises as `EpisodePool.play`.

    Each `size` starts are equal, and make one tree. Its first episodes begin at the start; `branches` of them begin at a state inside of
    those, each drawn by `chance` among the states after a first step. If there is none, they begin at the start too.
    """
    trunk = size - branches
    groups = [list(starts[at : at + size]) for at in range(0, len(starts), size)]
    whole = await pool.play([start for group in groups for start in group[:trunk]], sample)
    trunks = [whole[at : at + trunk] for at in range(0, len(whole), trunk)]
    begun = [_branch(tree, chance) for tree in trunks for _ in range(branches)]
    grown = await pool.finish(begun, sample)
    return [each for number, tree in enumerate(trunks) for each in (*tree, *grown[number * branches : (number + 1) * branches])]


def _branch(tree: Sequence[Episode], chance: random.Random) -> Episode:
    inner = [(episode, at) for episode in tree for at in range(1, len(episode.steps))]
    if not inner:
        return Episode(tree[0].start)
    episode, at = chance.choice(inner)
    return episode.branch(at)


def step_values(tree: Sequence[Episode], returns: Sequence[float]) -> dict[EpisodeStep, float]:
    """Return the value of the state after each step, less that of the state before it.

    The value of a state is the mean over the steps that were drawn there; that of an end is the episode's return. The differences of an
    episode add up to its return less the value of the start.
    """
    differences = dict[EpisodeStep, float]()

    def value(rows: Sequence[int], depth: int) -> float:
        drawn = dict[EpisodeStep, list[int]]()
        for row in rows:
            if len(tree[row].steps) == depth:
                return returns[row]
            drawn.setdefault(tree[row].steps[depth], []).append(row)
        after = {step: value(below, depth + 1) for step, below in drawn.items()}
        here = fmean(after.values())
        differences.update({step: each - here for step, each in after.items()})
        return here

    value(range(len(tree)), 0)
    return differences


def token_credits(episodes: Sequence[Episode], returns: Sequence[float], size: int) -> list[list[float]]:
    """Return the advantage of each token of each row; 0 for the environment's tokens. Each `size` episodes are one tree.

    It is the step's value difference, divided by the deviation of the tree's returns and by the number of rows that share the step, so
    that a step counts once.
    """
    return [row for at in range(0, len(episodes), size) for row in _credits(episodes[at : at + size], returns[at : at + size])]


def _credits(tree: Sequence[Episode], returns: Sequence[float]) -> Iterator[list[float]]:
    values, scale = step_values(tree, returns), stdev(returns) + _LEAST
    shared = dict[EpisodeStep, int]()
    for episode in tree:
        for step in episode.steps:
            shared[step] = shared.get(step, 0) + 1
    for episode in tree:
        row = [0.0] * len(episode.completion_ids)
        for step in episode.steps:
            row[step.begins : step.ends] = [values[step] / scale / shared[step]] * (step.ends - step.begins)
        yield row
