"""A state as the embedded agent sees it, and what it thinks of an action in it.

Part of the embedded agent, which is not a language model.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exact.agents.builtin import instruction as instructions
from exact.agents.builtin import page as pages
from exact.agents.builtin.page import Page
from exact.agents.builtin.parts import Goal
from exact.agents.builtin.progress import Progress, assess
from exact.context import Taken
from exact.observation import Observation


class Verdict(msgspec.Struct, frozen=True):
    """A judgement on an action."""

    score: float
    """In [0, 1]: how surely it is the right thing to do now."""
    why: str
    guess: bool = False
    """Whether it is only worth a look: nothing says that it does what is asked."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A state as the embedded agent sees it."""

    goal: Goal
    moved: bool
    """Whether another page came before this one."""
    page: Page
    progress: Progress
    fingerprint: str
    history: tuple[Taken, ...]
    tried: tuple[Taken, ...]

    @property
    def pending(self) -> bool:
        """Whether the last action was on a menu and changed nothing yet: menus open late."""
        last = self.history[-1] if self.history else None
        item = self.page.by_id.get(last.action.elements[0]) if last and last.action.elements else None
        return last is not None and last.observation.fingerprint == self.fingerprint and item is not None and item.role == "menuitem"

    @property
    def sought(self) -> bool:
        """Whether an open part's element is not in sight."""
        return any(not s.done and s.best < 0.6 for s in self.progress.statuses)


def situation(instruction: str, observation: Observation, history: Sequence[Taken], tried: Sequence[Taken] = ()) -> Situation:
    """The reading of a state that was reached by `history`."""
    goal = instructions.read(instruction)
    page = pages.read(observation, instruction)
    return Situation(
        goal=goal,
        moved=any(step.observation.url != observation.url for step in history),
        page=page,
        progress=assess(goal, page, history),
        fingerprint=observation.fingerprint,
        history=tuple(history),
        tried=tuple(tried),
    )
