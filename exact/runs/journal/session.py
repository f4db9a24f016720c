"""The journal of a session: which goals were given in one live environment, and what the user did between them.

`session.jsonl` stands in the run folder, one event a line. Each goal has an attempt's journal beside it. The goals that led to the present
state are a fold over these events: a return to a point takes back those that were given since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from exact.task import Task

FILE = "session.jsonl"


class SessionEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """Base of the events."""


class GoalGiven(SessionEvent, frozen=True, kw_only=True, tag="goal"):
    """`goal`: a goal was given. Its attempt begins in the present state."""

    instruction: str
    answer: str = ""
    """JSON schema of the object that the answer is put into; empty for none."""


class PointTaken(SessionEvent, frozen=True, kw_only=True, tag="point"):
    """`point`: a snapshot was taken, to which the user may return while the process runs."""

    id: int
    """Number of the point, from 0."""


class Returned(SessionEvent, frozen=True, kw_only=True, tag="returned"):
    """`returned`: the environment was brought back to a point."""

    point: int


class HandedOver(SessionEvent, frozen=True, kw_only=True, tag="handed_over"):
    """`handed_over`: the user got the page to act in. Nothing of that can be done again by itself."""


class OpenedAgain(SessionEvent, frozen=True, kw_only=True, tag="opened_again"):
    """`opened_again`: the live environment was gone and was opened anew, at the place where the session stood as far as a way led there."""

    url: str
    lost: str = ""
    """What could not be had again, in a sentence; empty if nothing is known to be lost."""


AnySessionEvent = GoalGiven | PointTaken | Returned | HandedOver | OpenedAgain


class Moment(NamedTuple):
    """A moment of a session: what led to its state."""

    goals: tuple[int, ...] = ()
    """Numbers of the goals, from 0, without those that a return took back."""
    handed_over: int = 0
    """Times that the user got the page to act in, likewise."""


@dataclass
class SessionState:
    """The state that a session's events lead to."""

    goals: list[GoalGiven] = field(default_factory=list)
    present: Moment = field(default_factory=Moment)
    points: dict[int, Moment] = field(default_factory=dict)
    handed_over: int = 0
    """Times that the user got the page to act in, at all."""

    def apply(self, event: AnySessionEvent) -> None:
        """Apply one event."""
        goals, handed_over = self.present
        match event:
            case GoalGiven():
                self.present = Moment((*goals, len(self.goals)), handed_over)
                self.goals.append(event)
            case PointTaken():
                self.points[event.id] = self.present
            case Returned():
                self.present = self.points.get(event.point, self.present)
            case HandedOver():
                self.handed_over += 1
                self.present = Moment(goals, handed_over + 1)


def tasks_of(start: Task, events: Iterable[SessionEvent]) -> tuple[Task, ...]:
    """Return the tasks of a session's goals. `start`: its first state, as a task without an instruction."""
    given = (each for each in events if isinstance(each, GoalGiven))
    return tuple(
        msgspec.structs.replace(start, id=f"{start.id}#{number}", instruction=each.instruction, answer=each.answer)
        for number, each in enumerate(given, 1)
    )
