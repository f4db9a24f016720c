"""What to achieve, and how it ended."""

from __future__ import annotations

import msgspec

Scalar = str | int | float | bool | None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to achieve in one environment."""

    id: str
    """Unique name with the seed in it, e.g. `miniwob/click-test?seed=3`."""
    instruction: str
    """The goal in words. Empty where only the environment knows it: then `reset` reports it in the observation."""
    start: str = ""
    """Where the environment begins: a URL for browsers."""
    seed: int = 0
    origins: tuple[str, ...] = ()
    """Origins (`scheme://host[:port]`) the task may navigate to, besides that of `start`."""
    images: tuple[str, ...] = ()
    """Pictures that belong to the instruction: paths of files, `data:` URLs, or addresses, which are fetched when first shown."""
    files: tuple[str, ...] = ()
    """Paths of files that an agent may upload, by the last part of the path."""
    metadata: dict[str, Scalar] = {}
    """What else a suite says of it; agents see it."""
    private: dict[str, Scalar] = {}
    """What set-up and evaluators need to know and agents never see, above all how an attempt is judged."""

    @property
    def shown(self) -> Task:
        """What agents see of it."""
        return msgspec.structs.replace(self, private={})


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended, as the environment's evaluator gets it."""

    actions: tuple[str, ...]
    """The committed actions in canonical text, in order."""
    answer: str | None = None
    """The text of the final `stop`, if there was one."""
    task: Task | None = None
    """What was attempted, where the environment that is asked knows it."""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmark's verdict on an Outcome. Search never sees one."""

    value: float
    """In [0, 1]; 1 is success."""
    success: bool
    raw: float | None = None
    """The benchmark's own figure, on its own scale."""
    reason: str = ""
    unanswered: bool = False
    """Whether it is 0 because the task asks for a final answer and none was given."""
