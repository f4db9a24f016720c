"""Inputs and outputs of agents: the vocabulary shared by search, policies, value functions and memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from exact.action import Action
from exact.observation import Observation
from exact.task import Task


class Proposal(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One action that a policy would take in a state."""

    action: Action
    prior: float
    """Probability in (0, 1]. The priors of one state sum to 1."""
    rationale: str = ""
    writes: bool = False
    """Whether the action is presumed to change something outside."""


class Argument(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One argument of a debater."""

    side: Literal["for", "against"]
    text: str
    round: int = 0
    """Round of the debate, from 0."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An estimate of the probability that the task succeeds from a state, and the disagreement among its samples.

    The parts of the disagreement differ in kind. An order effect means that the judge favours the text that it reads last. A spread within
    a judge means that it is unsure. A spread between judges means that the evidence admits several readings.
    """

    value: float
    """Estimated probability of success, in [0, 1]."""
    rationale: str = ""
    samples: tuple[float, ...] = ()
    """Single samples behind `value`, each in [0, 1]."""
    disagreement: float = 0.0
    """Standard deviation of the samples, in [0, 0.5]."""
    order_effect: float = 0.0
    """Mean of the samples that read the argument for success first, less the mean of those that read it last; in [-1, 1]."""
    within: float = 0.0
    """Pooled standard deviation of one judge's samples in one order, in [0, 0.5]."""
    between: float = 0.0
    """Standard deviation of the judges' means, in [0, 0.5]."""
    arguments: tuple[Argument, ...] = ()
    """Arguments of a debate, in the order in which they were made."""
    judges: tuple[str, ...] = ()
    """One entry for each judge, if there are several; for a debate one for each sample, with its reading order and reasons."""
    informed: bool = msgspec.field(name="told", default=False)
    """Whether the benchmark's score is part of the value, as in oracles. Journals call this field `told`."""
    unjudged: bool = False
    """Whether no answer of the value function could be read, so that `value` is that of the state before, or 0.5."""


class Reflection(msgspec.Struct, frozen=True, kw_only=True):
    """A reflection on an expectation that was wrong, with its provenance."""

    id: str
    kind: Literal["policy", "value"]
    text: str
    """The reflection: the condition in which it holds and the better action. At most 100 words."""
    instruction: str
    """Instruction of the task it came from."""
    state: str
    """Text of the observation in which the action was taken, shortened."""
    fingerprint: str = ""
    """Fingerprint of that observation. Empty in older reflections and in those written by hand."""
    action: str
    """Canonical text of the surprising action."""
    action_label: str = ""
    """The same action with the element's role and name in place of its id, which makes it readable in another state."""
    expected: str = ""
    real: str = ""
    surprise: float = 0.0
    """Observed less expected value, in [-1, 1]."""
    task: str = ""
    """Id of the task it came from, with its seed."""
    template: str = ""
    """Template that the task was made from, if the benchmark names one."""
    site: str = ""
    run: str = ""
    node: int = -1
    outcome: float | None = None
    """Score of the attempt, in [0, 1]."""
    outcome_source: Literal["judge", "evaluator", ""] = ""
    """Source of the outcome. Empty in a reflection without an attempt, such as one written by hand."""
    signal: str = ""
    """Expectation that was wrong: see exact.reflection.contrast."""
    model: str = ""
    prompt: str = ""
    """Name, version and hash of the prompt that wrote it. Empty for the built-in reflector."""
    created: float = 0.0
    """Unix time in seconds."""
    tainted: bool = True
    """Whether the text of a page contributed to it."""
    marks: tuple[str, ...] = ()
    """What the detector found in the observations that it was drawn from: see exact/text.py."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One past step on the path to a state."""

    observation: Observation
    """Observation of the state in which the action was taken."""
    action: Action
    rationale: str = ""
    error: str = ""
    """Error of the environment that refused the action. Empty if the action was carried out."""
    note: str = ""
    """Further result of the step: see exact.environments.base.REPORTED_INFO."""


class EarlierGoal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A goal that was worked at before in the same environment, as a later one is told of it. Texts of pages may stand in it."""

    instruction: str
    end: str
    """Reason of its end."""
    answer: str = ""
    """Text of its answer; empty without one."""
    actions: tuple[str, ...] = ()
    """Its actions that were carried out, with the names of elements."""
    undone: bool = False
    """Whether the environment was brought back since to a state before it."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a policy or a value function may see."""

    task: Task
    instruction: str
    """The goal: the task's, or the environment's if that is empty."""
    observation: Observation
    """Observation of the state to act in or to evaluate; for a terminated or unseen node the last one before it."""
    history: tuple[Taken, ...] = ()
    """Steps from the task's start, oldest first. For a terminated or unseen node its last action is the last entry."""
    terminated: bool = False
    """Whether the last action ended the episode."""
    end: Observation | None = None
    """Observation that the environment gave with the end of the episode. None: it gave none, so equal ends of one action look the same."""
    data: str = ""
    """Final answer as the object that the task asks for, in JSON. Empty before the end and without such an object."""
    unseen: bool = False
    """Whether the last action was not carried out, or its write was blocked, so that its result is unknown. It ended nothing."""
    reflections: tuple[Reflection, ...] = ()
    tried: tuple[Taken, ...] = ()
    """Refused actions of this state, with their errors."""
    earlier: tuple[EarlierGoal, ...] = ()
    """Earlier goals of the session, oldest first. Empty outside of one."""
    steps_left: int | None = None
    """Number of further actions that may be committed from here. None without a limit."""
    node: int = 0
    """Id of the node in the search. Model calls are keyed by it."""
    seed: int = 0
    """Seed of the run. Draws are keyed by (seed, node, draw)."""
    draw: int = 0
    """Number of evaluations or samples of this state asked for before."""
    selection: int = -1
    """Id of the search's piece of work that the question is for, whose budget pays for it; -1 for the task's own budget."""
    confirms: bool = False
    """Whether the evaluation must be independent of the earlier ones, because it is to confirm them."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a model copies from: those of `copied_texts`, lessons, and earlier goals with their answers and actions."""
        shown = copied_texts(self.instruction, (self.observation, *(taken.observation for taken in self.history)))
        lessons = (text for each in self.reflections for text in (each.text, each.instruction, each.action, each.action_label))
        before = (text for each in self.earlier for text in (each.instruction, each.end, each.answer, *each.actions))
        return (*shown, *lessons, *before)

    @property
    def answer(self) -> str:
        """The answer of the `stop` that ended the attempt. Empty if it has not ended, or ended otherwise."""
        last = self.history[-1].action if self.terminated and self.history else None
        return " ".join(map(str, last.args)) if last is not None and last.name == "stop" else ""


def copied_texts(instruction: str, observations: Iterable[Observation]) -> tuple[str, ...]:
    """Return the texts that a model copies from: the goal, and what it was shown of each observation."""
    return (instruction, *(text for each in observations for text in (each.text, each.html, each.url, each.title)))
