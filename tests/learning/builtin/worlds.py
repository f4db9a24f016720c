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
    """The first click on the third picture lights a lamp. `Done` ends the episode, with success where it is lit, unless all fail."""

    actions = PAGE_ACTIONS

    def __init__(self, *, fails_by_turns: bool = False, fails: bool = False) -> None:
        self.lit, self.resets, self._by_turns, self._fails = False, 0, fails_by_turns, fails

    async def reset(self, task: Task) -> Observation:
        self.lit, self.resets = False, self.resets + 1
        return lamps(0)

    async def step(self, action: Action) -> Transition:
        if action.elements == ("5",):
            return Transition(observation=None, terminated=True)
        self.lit |= action.elements == ("3",)
        return Transition(observation=lamps(int(self.lit)))

    async def evaluate(self, outcome: Outcome) -> Score:
        good = self.lit and not self._fails and not (self._by_turns and self.resets % 2)
        return Score(value=float(good), success=good)


class Curtain(BaseEnvironment):
    """A field that is scrolled without a trace on the page. `Done` ends the episode, with success where it was scrolled down last."""

    actions = PAGE_ACTIONS

    def __init__(self) -> None:
        self.at, self.ends = "", 0

    def _seen(self) -> Observation:
        return page(("textbox", "Terms"), ("button", "Done"), instruction="Scroll to the end.")

    async def reset(self, task: Task) -> Observation:
        self.at = ""
        return self._seen()

    async def step(self, action: Action) -> Transition:
        if action.elements == ("2",):
            self.ends += 1
            return Transition(observation=None, terminated=True)
        if action.name == "scroll_in":
            self.at = str(action.args[1])
        return Transition(observation=self._seen())

    async def evaluate(self, outcome: Outcome) -> Score:
        return Score(value=float(self.at == "down"), success=self.at == "down")


def task(id: str = TASK) -> Task:
    return Task(id=id, instruction="")
