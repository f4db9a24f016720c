"""Episodes of a policy in the environments of an OpenEnv server, exact in token ids.

An episode is one conversation. Its row is the first prompt's ids, then the ids that were sampled and those that the environment added
between them, in their order, with a mask that tells them apart: each sampled token is scored later in the context in which it was drawn.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exact.errors import UsageError
from exact.learning.masks import CHATML, Encode
from exact.learning.train.pictures import ShownPicture
from exact.learning.train.sessions import SessionClient, asked
from exact.views.labels import label_first

NOOP = "noop()"
_CALL = re.compile(r"\b[a-z_]+\((?:[^()'\"]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")*\)")
_LABELLED = re.compile(r'"(?:[^"\\]|\\.)*"\s+[A-Za-z][\w-]*\s+(\[[\w:.-]+\])')
_WRITTEN = re.compile(r"^\s*(?:Action:\s*)?(?P<action>[a-z_]+(?: .+)?)$", re.M)


class EpisodeStart(NamedTuple):
    """Start of an episode."""

    task: str
    """Name of the task; empty: the server's default."""
    seed: int


class Sampled(NamedTuple):
    """One sampled answer."""

    ids: list[int]
    logprobs: list[float]
    text: str
    """The answer without the end of the turn."""
    ended: bool
    """Whether the model ended its turn, so that the last id is that of the end."""


Sample = Callable[[list[list[int]], list[list[ShownPicture]]], list[Sampled]]
"""Draws one answer to each of several prompts, given as token ids, with the pictures that stand in each."""


@dataclass(frozen=True, eq=False)
class EpisodeStep:
    """One answer and its reward. Episodes that share a step share the object."""

    action: str
    reward: float
    begins: int
    """Position of the answer's first token in `completion_ids`."""
    ends: int
    """Position after its last token."""


@dataclass
class Episode:
    """One row: the observations of a policy, its answers, and its reward."""

    start: EpisodeStart
    prompt_ids: list[int] = field(default_factory=list)
    completion_ids: list[int] = field(default_factory=list)
    env_mask: list[int] = field(default_factory=list)
    """1 for each sampled token, 0 for those of the environment."""
    logprobs: list[float] = field(default_factory=list)
    """Log-probability of each sampled token; 0 for those of the environment."""
    steps: list[EpisodeStep] = field(default_factory=list)
    pictures: list[ShownPicture] = field(default_factory=list)
    """Screenshots that the row has placeholders of, in their order."""
    done: bool = False

    @property
    def rewards(self) -> list[float]:
        """Reward of each step."""
        return [step.reward for step in self.steps]

    @property
    def actions(self) -> list[str]:
        """Action of each step."""
        return [step.action for step in self.steps]

    def branch(self, at: int) -> Episode:
        """Return an unfinished episode that shares the first `at` steps, and the page that they led to."""
        ends = self.steps[at].begins
        shared = (self.completion_ids[:ends], self.env_mask[:ends], self.logprobs[:ends])
        return Episode(self.start, list(self.prompt_ids), *shared, self.steps[:at], self.pictures[: at + 1])

    def show(self, ids: Sequence[int], pictures: Sequence[ShownPicture] = ()) -> None:
        """Append tokens of the environment, with the pictures that they have placeholders of."""
        self.pictures += pictures
        if not self.completion_ids:
            self.prompt_ids += ids
            return
        self.completion_ids += ids
        self.env_mask += [0] * len(ids)
        self.logprobs += [0.0] * len(ids)

    def say(self, sampled: Sampled) -> None:
        """Append sampled tokens. Raises UsageError for an answer without tokens, or whose log-probabilities do not fit."""
        if not sampled.ids or len(sampled.ids) != len(sampled.logprobs):
            raise UsageError(
                f"an answer has {len(sampled.ids)} tokens and {len(sampled.logprobs)} log-probabilities: the sampler is at fault"
            )
        self.completion_ids += sampled.ids
        self.env_mask += [1] * len(sampled.ids)
        self.logprobs += sampled.logprobs


class EpisodePool:
    """ClientSessions of a server that play episodes side by side."""

    def __init__(
        self, clients: Sequence[SessionClient], encode: Encode, *, max_steps: int, characters: int, system: str = "", history: int = 0,
        look: Callable[[Any], ShownPicture] | None = None,
    ) -> None:  # fmt: skip
        """Configure the pool. look: reads the screenshot of an observation; None: screenshots are not shown."""
        self._clients, self._encode, self._look = list(clients), encode, look
        self._max_steps, self._characters, self._system, self._history = max_steps, characters, system, history

    async def play(self, starts: Sequence[EpisodeStart], sample: Sample) -> list[Episode]:
        """Return one episode for each start, in order. Raises EnvironmentFailure, UsageError for a reward that is not a number."""
        return await self.finish([Episode(start) for start in starts], sample)

    async def finish(self, begun: Sequence[Episode], sample: Sample) -> list[Episode]:
        """Return each episode, played to its end. Raises as `play`.

        An episode that has steps continues from the page to which they lead. If the same actions lead to another page, an episode from the
        start takes its place.
        """
        found = list[Episode]()
        for at in range(0, len(begun), len(self._clients)):
            found += await self._together(begun[at : at + len(self._clients)], sample)
        return found

    async def _together(self, begun: Sequence[Episode], sample: Sample) -> list[Episode]:
        episodes = await asyncio.gather(*(self._begin(*each) for each in zip(begun, self._clients, strict=False)))
        while True:
            pairs = zip(episodes, self._clients, strict=False)
            active = [(each, client) for each, client in pairs if not each.done and len(each.steps) < self._max_steps]
            if not active:
                return episodes
            prompts = [episode.prompt_ids + episode.completion_ids for episode, _ in active]
            answers = await asyncio.to_thread(sample, prompts, [episode.pictures for episode, _ in active])
            await asyncio.gather(*(self._step(*each, answer) for each, answer in zip(active, answers, strict=True)))

    async def _begin(self, episode: Episode, client: SessionClient) -> Episode:
        options = {"task_name": episode.start.task} if episode.start.task else {}
        options |= {"screenshot_format": "png"} if self._look else {}
        result = await asked(client.reset(seed=episode.start.seed, **options))
        if episode.steps:
            for action in episode.actions:
                result = await asked(client.step({"action_str": action}))
                if result.done:
                    break
            page, _ = self._turn(episode, result.observation)  # pixels may differ, such as those of a cursor that blinks
            if not result.done and episode.completion_ids[-len(page) :] == page:
                return episode
            return await self._begin(Episode(episode.start), client)
        if self._system:
            episode.show(self._encode(CHATML.begin.format(role="system") + self._system + CHATML.end + CHATML.after))
        episode.show(*self._turn(episode, result.observation))
        return episode

    async def _step(self, episode: Episode, client: SessionClient, answer: Sampled) -> None:
        begins = len(episode.completion_ids)
        episode.say(answer)
        action = first_action(answer.text)
        result = await asked(client.step({"action_str": action}))
        reward = float(result.reward or 0.0)
        if not math.isfinite(reward):
            raise UsageError(f"the server gave the reward {reward} for {action}: a reward is a finite number; correct the environment")
        episode.steps.append(EpisodeStep(action, reward, begins, begins + len(answer.ids)))
        episode.done = bool(result.done)
        if not episode.done and len(episode.steps) < self._max_steps:
            between = ("" if answer.ended else CHATML.end) + CHATML.after
            episode.show(*self._turn(episode, result.observation, between))

    def _turn(self, episode: Episode, observation: dict[str, Any], before: str = "") -> tuple[Sequence[int], list[ShownPicture]]:
        pictures = [self._look(observation.get("screenshot"))] if self._look else []
        marks = "".join(each.mark for each in pictures)
        earlier = episode.actions[-self._history :] if self._history else []
        text = page_text(observation, self._characters, goal=not episode.steps, earlier=earlier)
        whole = CHATML.begin.format(role="user") + marks + text + CHATML.end + CHATML.after + CHATML.begin.format(role="assistant")
        return self._encode(before + whole), pictures


def first_action(text: str) -> str:
    """Return the first action in an answer: a call such as `click('12')`, or a line such as `click [12]`. `noop()` if there is none."""
    if call := _CALL.search(text):
        return call[0]
    if line := _WRITTEN.search(text):
        return _LABELLED.sub(r"\1", line["action"]).strip()
    return NOOP


def page_text(observation: dict[str, Any], characters: int, *, goal: bool = False, earlier: Sequence[str] = ()) -> str:
    """Return the text of an observation that a policy is shown: the goal, the earlier actions, an error, the page with labels first."""
    text = label_first(str(observation.get("text") or observation.get("axtree_txt") or ""))
    lines = [f"Goal: {observation.get('goal', '')}"] if goal else []
    lines += [f"Earlier actions: {'; '.join(' '.join(each.split()) for each in earlier)}"] if earlier else []
    lines += [f"Error: {observation['error']}"] if observation.get("error") else []
    return "\n".join([*lines, f"Page:\n{text[:characters]}"]).replace("<|", "< |")  # a page writes no token of turns or pictures
