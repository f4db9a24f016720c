"""A small environment that is named as a training task."""

from __future__ import annotations

from exact.action import Action
from exact.environments.base import BaseEnvironment, Transition
from exact.environments.browser.act.grammar import PAGE_ACTIONS
from exact.observation import Observation
from exact.task import Outcome, Score, Task
from tests.agents.builtin.pages import page

TASK = "miniwob/click-test-2?seed=10000"


def lamps(lit: int) -> Observation:
    return page(*(("image", f"lamp {n}") for n in range(4)), ("button", "Done"), fingerprint=f"lit {lit}", instruction="Finish.")


class Lamps(BaseEnvironment):
    """The first click on the third picture lights a lamp. `Done` ends the episode, with success where it is lit."""

    actions = PAGE_ACTIONS

    def __init__(self, *, fails_by_turns: bool = False) -> None:
        self.lit, self.resets, self._by_turns = False, 0, fails_by_turns

    async def reset(self, task: Task) -> Observation:
        self.lit, self.resets = False, self.resets + 1
        return lamps(0)

    async def step(self, action: Action) -> Transition:
        if action.elements == ("5",):
            return Transition(observation=None, terminated=True)
        self.lit |= action.elements == ("3",)
        return Transition(observation=lamps(int(self.lit)))

    async def evaluate(self, outcome: Outcome) -> Score:
        good = self.lit and not (self._by_turns and self.resets % 2)
        return Score(value=float(good), success=good)


def task(id: str = TASK) -> Task:
    return Task(id=id, instruction="")
