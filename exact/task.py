"""Tasks, the outcome of an attempt, and its score."""

from __future__ import annotations

import msgspec

Scalar = str | int | float | bool | None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task in one environment."""

    id: str
    """Unique name with the seed in it, e.g. `miniwob/click-test?seed=3`."""
    instruction: str
    """The goal in words. Empty if only the environment knows it; `reset` then reports it in the observation."""
    start: str = ""
    """Start of the environment: a URL for browsers."""
    seed: int = 0
    origins: tuple[str, ...] = ()
    """Origins (`scheme://host[:port]`) the task may navigate to, besides that of `start`."""
    images: tuple[str, ...] = ()
    """Images that belong to the instruction: file paths, `data:` URLs, or web addresses, which are fetched when first shown."""
    files: tuple[str, ...] = ()
    """Paths of files that an agent may upload, named by the last part of the path."""
    metadata: dict[str, Scalar] = {}
    """Further facts from the suite, which agents see."""
    private: dict[str, Scalar] = {}
    """Facts for set-up and evaluators that agents never see, above all how an attempt is scored."""
    answer: str = ""
    """JSON schema of the object that the final answer is put into. Empty: the answer is a text."""
    after: tuple[str, ...] = ()
    """Ids, without seeds, of tasks whose attempts with the same seed end before this one begins, if a run or benchmark has them."""

    @property
    def shown(self) -> Task:
        """The task without its private facts, as agents see it."""
        return msgspec.structs.replace(self, private={})


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an attempt, as the environment's evaluator receives it."""

    actions: tuple[str, ...]
    """Canonical texts of the committed actions, in order."""
    answer: str | None = None
    """Text of the final `stop`, if there was one."""
    task: Task | None = None
    """The attempted task, if the environment knows it."""
    revealed: tuple[str, ...] = ()
    """Placeholders in whose place secrets stand in `answer`. No model may read it then."""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmark's score of an Outcome. Search never sees one."""

    value: float
    """Score in [0, 1]; 1 is success."""
    success: bool
    raw: float | None = None
    """The benchmark's own figure, on its own scale."""
    reason: str = ""
    unanswered: bool = False
    """Whether the score is 0 because the task asks for a final answer and none was given."""
