"""The content of a report as plain data, which the page's script reads as JSON.

All text in it is inert. A number that names a long text is its index in `Report.texts`; a picture is named by its blob. Values, priors and
scores lie in [0, 1]; times are seconds since the attempt began; money is in US dollars.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from exact.observation import Box

Status = Literal[
    "open", "terminal", "blocked", "no-op", "drifted", "refused", "failed", "exhausted", "pruned", "unlike", "unreached", "outcome"
]
"""Status of a state or an action. `blocked`: a write was blocked. `exhausted`: every action was tried. `pruned`: a viewer closed it.
`unlike`: the search had foreseen this state, and the committed step led to another one. `outcome`: a further one of a stochastic step."""

Mark = tuple[str, int, int, int, int]
"""An element: id, x, y, width and height in pixels."""

Ending = Literal["solved", "unsolved", "judged", "failed", "stopped", "unfinished"]


class ReportPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all report data."""


class Fact(ReportPart, frozen=True, kw_only=True):
    """Figure of the head."""

    label: str
    value: str
    note: str = ""


class Write(ReportPart, frozen=True, kw_only=True):
    """Request that may have changed the outside."""

    request: str
    words: str
    """Action that sent it."""
    node: int
    fate: str
    """Statement that it stands or was undone."""
    undone: bool
    fields: tuple[str, ...] = ()
    """Names of the fields that it sent."""


class Cost(ReportPart, frozen=True, kw_only=True):
    """Cost of one role's model calls."""

    role: str
    calls: int
    input_tokens: int
    output_tokens: int
    money: float
    """US dollars of the calls whose price is known."""
    known: bool = True
    """Flag: the price of every call was known."""
    seconds: float = 0.0
    unused: int = 0
    """Number of calls whose answer the search did not use: failed, late, or abandoned."""
    unused_money: float = 0.0


class WrongStep(ReportPart, frozen=True, kw_only=True):
    """Committed step at which an attempt went wrong, as far as its journal shows."""

    step: int
    why: str


class Head(ReportPart, frozen=True, kw_only=True):
    """Summary of the attempt."""

    task: str
    instruction: str
    agent: str
    ending: Ending
    headline: str
    sentence: str
    """Why the attempt ended, and who found the outcome."""
    brief: str = ""
    """Actions, time and money in one line."""
    answer: str | None = None
    """Answer of the attempt; None if it gave none."""
    reason: str = ""
    """Reason that the evaluator gave."""
    stopped: str = ""
    """Cause of a failure, as it was recorded."""
    began: bool = True
    """Flag: the start of the task was reached. If it was not, there is nothing to show but the reason."""
    way_on: Literal["", "resume", "new run", "allow"] = ""
    """Way to continue after a failure, once its cause is fixed, or after a write that was blocked."""
    labels: tuple[str, ...] = ()
    """Labels that a reader needs before any number: `built-in agent, not a language model`, `oracle values`."""
    facts: tuple[Fact, ...] = ()
    setting: tuple[Fact, ...] = ()
    """Algorithm, policy and value function, with their settings."""
    warnings: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    """Signs that the search could not help."""
    committed: tuple[Write, ...] = ()
    simulated: tuple[Write, ...] = ()
    """Writes that left the sandbox: of committed actions, and of the search."""
    contained: tuple[Write, ...] = ()
    """Writes that stayed in the sandbox, or were answered from recorded traffic."""
    blocked: tuple[Write, ...] = ()
    refused: tuple[Write, ...] = ()
    """Writes that were blocked: of the search, and of committed actions."""
    outside: int = 0
    """Number of writes that were sent to a server outside."""
    unknown: bool = False
    """Flag: for some writes the journal does not record whether they left the sandbox."""
    costs: tuple[Cost, ...] = ()
    waste: tuple[str, ...] = ()
    """Sentences about results that were paid for and not used."""
    wrong: WrongStep | None = None


class Trace(ReportPart, frozen=True, kw_only=True):
    """Side effect, with its place and time."""

    kind: str
    method: str
    url: str
    status: int
    detail: str
    write: bool
    what: str
    """Outcome in words: `sent outside`, `sent in the sandbox`, `blocked`."""
    phase: Literal["committed", "simulated", "replayed"]
    node: int
    """Node that the step led to, or at which it happened."""


class DebateArgument(ReportPart, frozen=True, kw_only=True):
    """DebateArgument of one debater."""

    side: str
    round: int
    text: int | None


class StateEvaluation(ReportPart, frozen=True, kw_only=True):
    """Evaluation of a state."""

    value: float
    disagreement: float
    samples: tuple[float, ...] = ()
    rationale: int | None = None
    order_effect: float = 0.0
    within: float = 0.0
    between: float = 0.0
    """Disagreement between judges, as in exact.context.Evaluation."""
    arguments: tuple[DebateArgument, ...] = ()
    """Arguments in their order."""
    judges: tuple[str, ...] = ()
    """Evaluation by each judge."""


class ProposedAction(ReportPart, frozen=True, kw_only=True):
    """Proposed action of a state."""

    action: str
    words: str
    prior: float
    visits: int
    value: float | None
    rationale: int | None = None
    child: int | None = None
    status: Status = "open"
    reason: str = ""
    futile: bool = False
    boxes: tuple[Box, ...] = ()
    """Boxes of the elements that it names, in pixels of the state's picture."""
    grew: tuple[int, ...] = ()
    """Iteration, N and 10,000 Q, repeated: how its figures grew."""


class ArrivalRoute(ReportPart, frozen=True, kw_only=True):
    """ArrivalRoute by which a simulation environment reached a state."""

    node: int
    """TreeState that the route led to: this one, or the one before, from which the action was then taken."""
    route: str
    match: str
    transitions: int = 0
    resets: int = 0
    reason: str = ""
    seconds: float = 0.0


class ReflectionRecord(ReportPart, frozen=True, kw_only=True):
    """Reflection with its provenance."""

    kind: str
    text: str
    action: str
    expected: str
    real: str
    surprise: float
    source: str
    """Task, site, run, node, author and outcome in one line."""
    tainted: bool


class RetrievedReflections(ReportPart, frozen=True, kw_only=True):
    """Reflections that were retrieved in a state."""

    kind: str
    memory: str
    reflections: tuple[ReflectionRecord, ...]


class RecalledReflection(ReportPart, frozen=True, kw_only=True):
    """Earlier reflection that this attempt was shown."""

    reflection: ReflectionRecord
    nodes: tuple[int, ...]
    """States in which it was shown."""
    ending: str


class PromptTurn(ReportPart, frozen=True, kw_only=True):
    """Turn of a prompt, or an answer."""

    role: str
    text: int | None = None


class ModelCall(ReportPart, frozen=True, kw_only=True):
    """Answered model call."""

    role: str
    model: str
    prompt: str
    attempt: int
    sampling: str
    usage: str
    seconds: float
    request: tuple[PromptTurn, ...] = ()
    answers: tuple[PromptTurn, ...] = ()
    raw: int | None = None


class TreeState(ReportPart, frozen=True, kw_only=True):
    """Node of the tree."""

    id: int
    parent: int | None
    via: int
    """Index of the choice at `parent` that leads here."""
    depth: int
    born: float
    """Time at which it was first reached."""
    iteration: int
    """Number of iterations before it was first reached."""
    status: Status
    reason: str = ""
    committed: bool = False
    """Flag: the live environment was in this state."""
    stood: int = 0
    """Number of iterations before the live environment first was."""
    current: bool = False
    """Flag: this is the live environment's present state."""
    pending: bool = False
    visits: int = 0
    value: float | None = None
    """V: the first evaluation."""
    mean: float | None = None
    """Mean of all values backed up here and below."""
    evaluation: StateEvaluation | None = None
    title: str = ""
    url: str = ""
    observation: int | None = None
    picture: str = ""
    choices: tuple[ProposedAction, ...] = ()
    routes: tuple[ArrivalRoute, ...] = ()
    traces: tuple[Trace, ...] = ()
    note: str = ""
    """Further notes on the step that led here."""
    marks: tuple[str, ...] = ()
    """Findings of the injection detector in the observation."""
    shown: tuple[RetrievedReflections, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    failures: tuple[str, ...] = ()
    seconds: float | None = None
    """Seconds that the step that led here took."""
    spent: str = ""
    """Text about the cost of the model calls in this state."""
    commands: tuple[str, ...] = ()
    """Commands of viewers about it."""


class ComparedAction(ReportPart, frozen=True, kw_only=True):
    """Statistics of one action at a decision."""

    words: str
    visits: int
    value: float | None
    chosen: bool = False
    child: int | None = None
    """TreeState to which the search saw it lead."""


class CommittedStep(ReportPart, frozen=True, kw_only=True):
    """Committed action."""

    number: int
    node: int
    """TreeState in which it was taken."""
    child: int | None
    """TreeState that it led to; None if the action was refused or its result is not journalled."""
    words: str
    name: str
    """The words without the ids of elements."""
    key: str
    """Place in the tree: a state, or `state.action` for an action that leads to none."""
    rationale: str
    """Reason that the policy gave for proposing it."""
    why: str
    """Reason why it was chosen among the alternatives."""
    seconds: float
    money: float
    """US dollars of model calls since the decision before it, as `seconds` since the commit before it."""
    value: float | None
    """Q at the decision."""
    came: float | None
    """V of the resulting state."""
    outcome: str
    """Text about its outcome."""
    trouble: bool = False
    alternatives: tuple[ComparedAction, ...] = ()


class TimelinePoint(ReportPart, frozen=True, kw_only=True):
    """Figures of a search after one iteration."""

    t: float
    iteration: int
    root: int
    nodes: int
    spent: dict[str, float] = {}
    """Usage by kind of budget."""
    edges: tuple[tuple[int, int, float], ...] = ()
    """Index, N and Q of each action of the root that had a value."""
    step: int | None = None
    """Number of the commit that followed directly."""


class Picture(ReportPart, frozen=True, kw_only=True):
    """Screenshot."""

    src: str
    """`data:` URL."""
    width: int
    height: int
    """Height in pixels of the original, in which boxes are given."""


class PersonPart(ReportPart, frozen=True, kw_only=True):
    """One question to a person with its answer, or one command of theirs."""

    seconds: float
    """Seconds since the attempt began."""
    by: str
    """Who it was, in a few words; empty without an answer."""
    words: str
    outcome: str
    """The answer, or the reason for its refusal; empty for a command that was done."""
    touched: bool
    """Whether it changed the agent's actions, so that the attempt has no score."""


class Report(ReportPart, frozen=True, kw_only=True):
    """Report of one attempt at one task."""

    head: Head
    nodes: tuple[TreeState, ...]
    steps: tuple[CommittedStep, ...]
    trouble: tuple[tuple[int, str, int], ...]
    """Failures and drifts: node, reason, count."""
    reflections: tuple[ReflectionRecord, ...]
    """Reflections written in this attempt."""
    remembered: tuple[RecalledReflection, ...]
    """Reflections shown in this attempt, in order."""
    timeline: tuple[TimelinePoint, ...]
    limits: dict[str, float]
    """Limits of the task's budget by kind; kinds without a limit are left out."""
    marks: dict[int, tuple[Mark, ...]]
    """Elements with a box, by the number of a state's observation."""
    texts: tuple[str, ...]
    pictures: dict[str, Picture]
    people: tuple[PersonPart, ...] = ()
    """The part that people took, in order."""
