"""Rows of episodes for any answers and any tokenizer, without torch: their lengths agree, and tokens stay in their order."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.errors import EnvironmentFailure, UsageError
from exact.learning.train.episodes import EpisodePool, EpisodeStart, Sampled, first_action
from exact.learning.train.grpo import REWARDS, episode_pool, rows
from exact.learning.train.pictures import ShownPicture
from exact.learning.train.settings import GRPOSettings, read_settings
from exact.learning.train.sft import encoder


class Counting:
    """A session in which a number has to be reached, one step at a time."""

    def __init__(self, length: int = 3, reward: float = 1.0) -> None:
        self.length, self.reward, self.actions = length, reward, list[str]()

    def _shown(self, reward: float) -> Any:
        done = len(self.actions) >= self.length
        return SimpleNamespace(observation={"goal": "Count.", "text": f'[{len(self.actions)}] button "Next"'}, reward=reward, done=done)

    async def reset(self, **options: Any) -> Any:
        self.options, self.actions = options, []
        return self._shown(0.0)

    async def step(self, action: dict[str, str]) -> Any:
        self.actions.append(action["action_str"])
        return self._shown(self.reward if len(self.actions) >= self.length else 0.0)


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def text_of(ids: list[int]) -> str:
    return "".join(map(chr, ids))


answers = st.lists(st.tuples(st.text(min_size=1, max_size=8), st.booleans()), min_size=1, max_size=12)


@given(answers, st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
async def test_a_row_is_what_was_shown_and_sampled_in_its_order(
    said: list[tuple[str, bool]], most: int, length: int, clients: int, history: int
) -> None:
    drawn, prompts = list[Sampled](), list[list[int]]()

    def sample(given: list[list[int]], pictures: list[list[ShownPicture]]) -> list[Sampled]:
        prompts.extend(given)
        found = []
        for _ in given:
            text, ended = said[len(drawn) % len(said)]
            ids = letters(text) + ([0] if ended else [])
            found.append(Sampled(ids, [-0.5] * len(ids), text, ended))
            drawn.append(found[-1])
        return found

    sessions = [Counting(length) for _ in range(clients)]
    pool = EpisodePool(sessions, letters, max_steps=most, characters=50, system="Count on.", history=history)
    episodes = await pool.play([EpisodeStart("count", seed) for seed in range(3)], sample)
    found = rows(episodes)
    for episode in episodes:
        whole = episode.prompt_ids + episode.completion_ids
        assert len(episode.completion_ids) == len(episode.env_mask) == len(episode.logprobs)
        assert text_of(episode.prompt_ids).startswith("<|im_start|>system\nCount on.<|im_end|>\n<|im_start|>user\nGoal: Count.\n")
        assert len(episode.actions) == len(episode.rewards) == min(most, length) and episode.env_mask[0] == 1 and episode.env_mask[-1] == 1
        assert all(chance == (-0.5 if learned else 0.0) for chance, learned in zip(episode.logprobs, episode.env_mask, strict=True))
        assert text_of(episode.completion_ids).count("\nEarlier actions: ") == (len(episode.actions) - 1 if history else 0)
        mine = [prompt for prompt in prompts if whole[: len(prompt)] == prompt]
        assert len(mine) >= len(episode.actions)  # each answer was drawn in the context in which its row scores it
    assert sum(sum(mask) for mask in found["env_mask"]) == sum(len(each.ids) for each in drawn)
    assert [len(value) for value in found.values()] == [3] * 5


@pytest.mark.parametrize(
    ("history", "listed"), [(0, []), (2, ["go [1]", "go [1]; click('2')", "click('2'); noop()"]), (9, ["go [1]; click('2'); noop()"])]
)
async def test_each_turn_lists_the_latest_actions_oldest_first(history: int, listed: list[str]) -> None:
    said = iter(["go [1]", "click('2')", "???", "go [4]"])

    def sample(given: list[list[int]], pictures: list[list[ShownPicture]]) -> list[Sampled]:
        text = next(said)
        return [Sampled(letters(text), [-1.0] * len(text), text, False)]

    pool = episode_pool(GRPOSettings(model="tiny", out="x", server="s", history=history), [Counting(4)], letters)
    episode = (await pool.play([EpisodeStart("", 0)], sample))[0]
    found = re.findall(r"Earlier actions: (.*)", text_of(episode.prompt_ids + episode.completion_ids))
    assert found[-len(listed) :] == listed if listed else not found


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
async def test_a_reward_that_is_no_number_is_an_error(reward: float) -> None:
    pool = EpisodePool([Counting(1, reward)], letters, max_steps=2, characters=50)
    with pytest.raises(UsageError, match="a reward is a finite number"):
        await pool.play([EpisodeStart("", 0)], lambda given, pictures: [Sampled([1], [-1.0], "x", True) for _ in given])


@pytest.mark.parametrize("answer", [Sampled([], [], "", False), Sampled([1, 2], [-1.0], "x", True)])
async def test_an_answer_without_tokens_or_with_other_lengths_is_an_error(answer: Sampled) -> None:
    with pytest.raises(UsageError, match="the sampler is at fault"):
        await EpisodePool([Counting()], letters, max_steps=2, characters=50).play(
            [EpisodeStart("", 0)], lambda given, pictures: [answer for _ in given]
        )


async def test_a_server_that_is_gone_is_an_infrastructure_failure() -> None:
    class Gone(Counting):
        async def step(self, action: dict[str, str]) -> Any:
            raise ConnectionResetError("gone")

    with pytest.raises(EnvironmentFailure, match="is `exact serve` running"):
        await EpisodePool([Gone()], letters, max_steps=2, characters=50).play(
            [EpisodeStart("", 0)], lambda given, pictures: [Sampled([1], [-1.0], "x", True)]
        )


def test_a_tokenizer_without_the_marks_of_turns_is_refused() -> None:
    def plain(text: str, add_special_tokens: bool) -> Any:
        return SimpleNamespace(input_ids=letters(text))

    with pytest.raises(UsageError, match="has no token <|im_start|>: use a model whose turns are ChatML".replace("|", r"\|")):
        encoder(plain)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click('12')", "click('12')"),
        ("I think.\nfill('3', 'a (b)')\nclick('4')", "fill('3', 'a (b)')"),
        ('click "OK (now)" button [7]', "click [7]"),
        ('Action: fill "Name" textbox [3] "Ann"', 'fill [3] "Ann"'),
        ("scroll down", "scroll down"),
        ("???", "noop()"),
        ("", "noop()"),
    ],
)
def test_the_first_action_of_an_answer_is_taken(text: str, action: str) -> None:
    assert first_action(text) == action


def test_the_three_rewards_are_of_an_episodes_steps() -> None:
    steps = [[0.0, 0.5, 1.0], [], [-1.0]]
    assert [REWARDS[name](steps, step_rewards=steps) for name in ("sum", "mean", "max")] == [
        [1.5, 0.0, -1.0],
        [0.5, 0.0, -1.0],
        [1.0, 0.0, -1.0],
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model: tiny\nout: x\nserver: s\nsteeps: 3", "did you mean 'steps'"),
        ("model: tiny\nout: x\nserver: s\nsteps: 0", "steps"),
        ("model: tiny\nout: x\nserver: s\ngenerations: 1", "generations"),
        ("model: tiny\nout: x", "server"),
        ("- 1", "holds no settings"),
        ("model: [", "is not YAML"),
    ],
)
def test_settings_are_read_strictly(tmp_path: Any, text: str, words: str) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_settings(path, GRPOSettings)


def test_settings_are_set_on_the_command_line_too(tmp_path: Any) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text("model: tiny\nout: x\nserver: s\n")
    found = read_settings(path, GRPOSettings, ("steps=3", "rewards={max: 2.0}", "lora=null"))
    assert found.steps == 3 and found.rewards == {"max": 2.0} and found.lora is None


def test_a_rate_may_be_written_as_scientists_do(tmp_path: Any) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text("model: tiny\nout: x\nserver: s\nlearning_rate: 1e-4\n")  # a text, by YAML
    assert read_settings(path, GRPOSettings, ("beta=5e-2",)) == GRPOSettings(
        model="tiny", out="x", server="s", learning_rate=1e-4, beta=0.05
    )
