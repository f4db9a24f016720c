"""Tree rollouts, without torch: what episodes share, and what their steps were worth."""

from __future__ import annotations

import random
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.errors import UsageError
from exact.learning.train import grpo
from exact.learning.train.episodes import Episode, EpisodePool, EpisodeStart, EpisodeStep, Sampled
from exact.learning.train.grpo import play_trees, step_values, token_credits
from exact.learning.train.settings import GRPOSettings

RESETS = count()


class Digits:
    """A session whose page lists the actions so far; the episode ends after `length` of them, with their share of ones as reward."""

    def __init__(self, length: int = 4, drifts: bool = False) -> None:
        self.length, self.drifts, self.taken, self.resets = length, drifts, list[str](), 0

    def _shown(self) -> Any:
        done, ones = len(self.taken) == self.length, self.taken.count("press one") / self.length
        page = f"{self.taken} {self.resets if self.drifts else ''}"
        return SimpleNamespace(observation={"goal": "Ones.", "text": page}, reward=ones if done else 0.0, done=done)

    async def reset(self, **options: Any) -> Any:
        self.taken, self.resets = [], next(RESETS)
        return self._shown()

    async def step(self, action: dict[str, str]) -> Any:
        self.taken.append(action["action_str"])
        return self._shown()


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def sampler(chance: random.Random) -> Any:
    def sample(prompts: list[list[int]], pictures: list[list[Any]]) -> list[Sampled]:
        said = [chance.choice(("press one", "press two")) for _ in prompts]
        return [Sampled([*letters(text), 0], [-0.5] * (len(text) + 1), text, True) for text in said]

    return sample


async def grown(seed: int, size: int, branches: int, *, drifts: bool = False, length: int = 4, history: int = 0) -> list[Episode]:
    chance = random.Random(seed)
    pool = EpisodePool([Digits(length, drifts) for _ in range(3)], letters, max_steps=4, characters=200, history=history)
    starts = [EpisodeStart("ones", number) for number in range(2) for _ in range(size)]
    return await play_trees(pool, starts, sampler(chance), size=size, branches=branches, chance=chance)


@given(st.integers(0, 99), st.integers(2, 6), st.integers(0, 2), st.data())
async def test_branches_share_tokens_and_steps_of_another_episode_and_end_by_themselves(
    seed: int, size: int, history: int, data: st.DataObject
) -> None:
    branches = data.draw(st.integers(1, size - 1))
    episodes = await grown(seed, size, branches, history=history)
    assert [each.start.seed for each in episodes] == [0] * size + [1] * size
    for at in (0, size):
        tree = episodes[at : at + size]
        for branch in tree[size - branches :]:
            trunk = next(each for each in tree[: size - branches] if each.steps[0] is branch.steps[0])
            same = sum(a is b for a, b in zip(trunk.steps, branch.steps, strict=False))
            begins = branch.steps[same].begins
            assert 0 < same < 4 and len(branch.steps) == 4 and branch.done
            assert branch.completion_ids[:begins] == trunk.completion_ids[:begins] and branch.prompt_ids == trunk.prompt_ids
            assert len(branch.completion_ids) == len(branch.env_mask) == len(branch.logprobs)
            for step in branch.steps:
                assert "".join(map(chr, branch.completion_ids[step.begins : step.ends - 1])) == step.action


@given(st.integers(0, 99), st.integers(2, 6), st.data())
async def test_value_differences_of_an_episode_add_up_to_its_return_less_the_starts_value(
    seed: int, size: int, data: st.DataObject
) -> None:
    tree = (await grown(seed, size, data.draw(st.integers(0, size - 1))))[:size]
    returns = [sum(each.rewards) for each in tree]
    values = step_values(tree, returns)
    starts = {round(gain - sum(values[step] for step in each.steps), 9) for each, gain in zip(tree, returns, strict=True)}
    assert len(starts) == 1 and min(returns) - 1e-9 <= starts.pop() <= max(returns) + 1e-9


def test_a_step_is_worth_what_its_branches_came_to() -> None:
    first, left, right = (EpisodeStep(name, 0.0, at, at + 2) for name, at in (("first", 0), ("left", 3), ("right", 3)))
    other = EpisodeStep("other", 0.0, 0, 2)
    tree = [
        Episode(EpisodeStart("", 0), [1], [5] * 5, [1, 1, 0, 1, 1], [0.0] * 5, steps) for steps in ([first, left], [other], [first, right])
    ]
    assert step_values(tree, [1.0, 0.0, 0.0]) == {first: 0.25, left: 0.5, right: -0.5, other: -0.25}
    credits = token_credits(tree, [1.0, 0.0, 0.0], 3)
    assert credits[0][2] == 0.0 and credits[0][0] == credits[2][0] == pytest.approx(0.125 / 0.57745, rel=1e-3)  # two rows share the step
    assert credits[0][3] == -credits[2][3] == pytest.approx(0.5 / 0.57745, rel=1e-3)
    assert token_credits(tree, [1.0] * 3, 3) == [[0.0] * 5] * 3


async def test_where_the_same_actions_lead_elsewhere_an_episode_begins_at_the_start() -> None:
    episodes = await grown(0, 4, 2, drifts=True)
    assert all(len(each.steps) == 4 and each.done for each in episodes)
    assert len({step for each in episodes for step in each.steps}) == 4 * len(episodes)


async def test_episodes_of_one_step_have_no_inside_to_branch_at() -> None:
    episodes = await grown(0, 4, 3, length=1)
    assert len({step for each in episodes for step in each.steps}) == len(episodes) == 8


@pytest.mark.parametrize(
    ("more", "words"),
    [({"credit": "step"}, "needs branches"), ({"branches": 8}, "at least one episode"), ({"report_to": ("wandb",)}, "pip install wandb")],
)
def test_settings_that_cannot_be_met_are_refused_at_once(more: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "datasets", "transformers"):
        monkeypatch.setitem(__import__("sys").modules, name, SimpleNamespace(Dataset=None, set_seed=None))
    with pytest.raises(UsageError, match=words):
        grpo.train(GRPOSettings(model="tiny", out="out", server="http://server", **more))
