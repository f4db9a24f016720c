"""What agents are shown, and what they say: the vocabulary between search, policies, value functions and memory."""

from __future__ import annotations

from typing import Literal

import msgspec

from exact.action import Action
from exact.observation import Observation
from exact.task import Task


class Proposal(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One action that a policy would take in a state."""

    action: Action
    prior: float
    """Probability in (0, 1]; those of one state sum to 1."""
    rationale: str = ""
    writes: bool = False
    """Whether it is presumed to change the outside."""


class Argument(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one debater said."""

    side: Literal["for", "against"]
    text: str
    round: int = 0
    """From 0."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An estimate of the probability that the task succeeds from a state, and where its opinions part.

    The parts of the disagreement are of different kinds: an order effect says that the judge heeds what it reads last, a spread within
    a judge that it is unsure, a spread between judges that what is known admits several readings.
    """

    value: float
    """In [0, 1]."""
    rationale: str = ""
    samples: tuple[float, ...] = ()
    """The single opinions behind `value`, each in [0, 1]."""
    disagreement: float = 0.0
    """Standard deviation of the opinions, in [0, 0.5]."""
    order_effect: float = 0.0
    """In [-1, 1]: mean of the opinions that read the argument for success first, less that of those that read it last."""
    within: float = 0.0
    """Standard deviation of one judge's opinions in one order, pooled; in [0, 0.5]."""
    between: float = 0.0
    """Standard deviation of the judges' means, in [0, 0.5]."""
    arguments: tuple[Argument, ...] = ()
    """Of a debate, in the order in which they were made."""
    judges: tuple[str, ...] = ()
    """What each judge held, one entry each, where there are several; of a debate every verdict, with its order of reading and reasons."""
    told: bool = False
    """Whether the benchmark's own verdict is in it: an oracle's alone."""


class Reflection(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson from an expectation that was wrong, with its provenance."""

    id: str
    kind: Literal["policy", "value"]
    text: str
    """The lesson: the condition in which it holds and what to do instead. At most 100 words."""
    instruction: str
    """Of the task it came from."""
    state: str
    """Text of the observation in which the action was taken, shortened."""
    fingerprint: str = ""
    """Of that observation, whole: what told its state apart. Empty in lessons of before and in those written by hand."""
    action: str
    """Canonical text of the action that surprised."""
    action_label: str = ""
    """The same action with the element's role and name in place of its id: what it means in another state."""
    expected: str = ""
    real: str = ""
    surprise: float = 0.0
    """Signed, in [-1, 1]: what came minus what was expected."""
    task: str = ""
    """Id of the task it came from, with its seed."""
    template: str = ""
    """Of the template that the task was made from, where the benchmark names one."""
    site: str = ""
    run: str = ""
    node: int = -1
    outcome: float | None = None
    """How the attempt ended, in [0, 1]."""
    outcome_source: Literal["judge", "evaluator", ""] = ""
    """Who says so; empty in a lesson that no attempt stands behind, such as one written by hand."""
    signal: str = ""
    """Which expectation was wrong: see exact.reflection.contrast."""
    model: str = ""
    prompt: str = ""
    """Name, version and hash of the prompt that wrote it; empty for the builtin reflector."""
    created: float = 0.0
    """Unix seconds."""
    tainted: bool = True
    """Whether text of a page went into it."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One past step on the way to a state."""

    observation: Observation
    """The state in which it was taken."""
    action: Action
    rationale: str = ""
    error: str = ""
    """What the environment refused it with; empty where it was carried out."""
    note: str = ""
    """What else came of it: see exact.environments.base.REPORTED_INFO."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """All that a policy or a value function may look at."""

    task: Task
    instruction: str
    """The goal: the task's, or where that is empty the environment's."""
    observation: Observation
    """The state to act in or to judge; for a terminated node the last one before it."""
    history: tuple[Taken, ...] = ()
    """From the task's start, oldest first; for a terminated node its last action is the last entry."""
    terminated: bool = False
    """Whether the last action ended the episode. Nothing after it is visible."""
    reflections: tuple[Reflection, ...] = ()
    tried: tuple[Taken, ...] = ()
    """Actions of this very state that were refused, with their errors."""
    steps_left: int | None = None
    """How many more actions may be committed from here."""
    node: int = 0
    """The node in the search; calls are keyed by it."""
    seed: int = 0
    """The run's seed; draws are keyed by (seed, node, draw)."""
    draw: int = 0
    """How many judgements or samples of this state were asked for before."""
    confirms: bool = False
    """Whether a judgement must be independent of those before it, because it is to confirm them."""

    @property
    def answer(self) -> str:
        """What the attempt answered by the `stop` that ended it; empty where it goes on, or ended otherwise."""
        last = self.history[-1].action if self.terminated and self.history else None
        return " ".join(map(str, last.args)) if last is not None and last.name == "stop" else ""
