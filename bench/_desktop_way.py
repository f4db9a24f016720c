"""A guided agent for bench/desktop_tasks.py, which knows each task's reference solution: see _known_way.py."""

from __future__ import annotations

from collections.abc import Sequence

from _known_way import KnownWay

from exact.action import Action, ActionSpace
from exact.benchmarks.desktop.problem import resolved
from exact.benchmarks.desktop.suite import DesktopSuite
from exact.errors import ActionError
from exact.observation import Observation

SUITE = DesktopSuite()
DONE = 'stop ""'


class DesktopWay(KnownWay[str]):
    """The reference, and `stop` after its end. The right action is proposed first, so that ReAct takes it."""

    prior = 0.5

    def steps(self, task: str) -> Sequence[str]:
        return (*SUITE.problem(task).reference, DONE)

    def meant(self, step: str, seen: Observation, actions: ActionSpace) -> Action | None:
        try:
            return actions.parse(resolved(step, seen))
        except ActionError:
            return None


guided = DesktopWay.agent
