"""What a report shows, as plain data: the page's script reads it as JSON.

All text in it is inert. A number that names a long text is its place in `Report.texts`; a picture is named by its blob. Values,
priors and scores lie in [0, 1]; times are seconds since the attempt began; money is US dollars.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from exact.observation import Box

Status = Literal["open", "terminal", "held", "no-op", "drifted", "refused", "failed", "exhausted", "pruned", "unlike"]
"""Of a state or an action. `held`: a write was held back. `exhausted`: every action was tried. `pruned`: somebody who watched closed it.
`unlike`: the search had foreseen this state, and the committed step led to another one."""

Mark = tuple[str, int, int, int, int]
"""An element: id, x, y, width and height in pixels."""

Ending = Literal["solved", "unsolved", "judged", "failed", "stopped", "unfinished"]


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base."""


class Fact(Part, frozen=True, kw_only=True):
    """One figure of the head."""

    label: str
    value: str
    note: str = ""


class Write(Part, frozen=True, kw_only=True):
    """A request that may have changed the outside."""

    request: str
    words: str
    """The action that sent it."""
    node: int
    fate: str
    """Whether it stands or was undone, in words."""
    undone: bool


class Cost(Part, frozen=True, kw_only=True):
    """What the model calls of one role took."""

    role: str
    calls: int
    input_tokens: int
    output_tokens: int
    money: float
    """US dollars of the calls whose price is known."""
    known: bool = True
    """Whether the price of all was known."""
    seconds: float = 0.0
    unused: int = 0
    """Calls of which the search took no answer: they failed, came too late, or were given up on."""
    unused_money: float = 0.0


class Wrong(Part, frozen=True, kw_only=True):
    """The committed step at which an attempt went wrong, as far as its journal tells."""

    step: int
    node: int
    words: str
    why: str


class Head(Part, frozen=True, kw_only=True):
    """The attempt in plain words."""

    task: str
    instruction: str
    agent: str
    ending: Ending
    headline: str
    """`Solved`, `Judged 0.84`, ..."""
    sentence: str
    """By whom, and why it stopped."""
    labels: tuple[str, ...] = ()
    """What a reader must know before believing a number: `built-in agent, not a language model`, `oracle values`."""
    facts: tuple[Fact, ...] = ()
    setting: tuple[Fact, ...] = ()
    """Who searched, proposed and judged, and with what."""
    warnings: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    """Signs that the search could not help."""
    committed: tuple[Write, ...] = ()
    """Writes of committed actions."""
    simulated: tuple[Write, ...] = ()
    """Writes that were sent while searching."""
    held: int = 0
    """How many writes were held back."""
    costs: tuple[Cost, ...] = ()
    waste: tuple[str, ...] = ()
    """What was made and never used, a sentence each."""
    wrong: Wrong | None = None


class Trace(Part, frozen=True, kw_only=True):
    """Something done to the outside."""

    kind: str
    method: str
    url: str
    status: int
    detail: str
    write: bool
    phase: Literal["committed", "simulated", "replayed"]
    node: int
    """The node it led to or was done at."""


class Argument(Part, frozen=True, kw_only=True):
    """What one debater said."""

    side: str
    round: int
    text: int | None


class Opinion(Part, frozen=True, kw_only=True):
    """A judgement."""

    value: float
    disagreement: float
    samples: tuple[float, ...] = ()
    rationale: int | None = None
    order_effect: float = 0.0
    within: float = 0.0
    between: float = 0.0
    """See exact.context.Evaluation."""
    arguments: tuple[Argument, ...] = ()
    """In the order in which they were made."""
    judges: tuple[str, ...] = ()
    """What each judge held."""


class Choice(Part, frozen=True, kw_only=True):
    """One proposed action of a state."""

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
    """Of the elements it names, in pixels of the state's picture."""
    grew: tuple[int, ...] = ()
    """Iteration, N and 1,000 Q, again and again: how its figures grew."""


class Route(Part, frozen=True, kw_only=True):
    """How a speculative environment was brought to a state."""

    node: int
    """The state it was brought to: this one, or the one before, from which the action was then taken."""
    route: str
    verdict: str
    transitions: int = 0
    resets: int = 0
    reason: str = ""
    seconds: float = 0.0


class Lesson(Part, frozen=True, kw_only=True):
    """A reflection with its provenance."""

    kind: str
    text: str
    action: str
    expected: str
    real: str
    surprise: float
    source: str
    """Task, site, run, node, author and outcome in one line."""
    tainted: bool


class Shown(Part, frozen=True, kw_only=True):
    """Reflections recalled in a state."""

    kind: str
    memory: str
    lessons: tuple[Lesson, ...]


class Remembered(Part, frozen=True, kw_only=True):
    """A reflection from before that this attempt was shown."""

    lesson: Lesson
    nodes: tuple[int, ...]
    """The states it was shown in."""
    ending: str
    """How the attempt ended."""


class Said(Part, frozen=True, kw_only=True):
    """One turn of a prompt, or one answer."""

    role: str
    text: int | None = None


class Call(Part, frozen=True, kw_only=True):
    """One answered call of a model."""

    role: str
    model: str
    prompt: str
    attempt: int
    sampling: str
    usage: str
    seconds: float
    request: tuple[Said, ...] = ()
    answers: tuple[Said, ...] = ()
    raw: int | None = None


class State(Part, frozen=True, kw_only=True):
    """One node of the tree."""

    id: int
    parent: int | None
    via: int
    """Index of the choice at `parent` that leads here."""
    depth: int
    born: float
    """When it was first reached."""
    iteration: int
    """After how many iterations that was."""
    status: Status
    reason: str = ""
    committed: bool = False
    """Whether the real environment stood here."""
    stood: int = 0
    """After how many iterations it first did."""
    current: bool = False
    """Whether it is the last of those."""
    pending: bool = False
    visits: int = 0
    value: float | None = None
    """V: the first judgement."""
    mean: float | None = None
    """Of all values backed up here and below."""
    opinion: Opinion | None = None
    title: str = ""
    url: str = ""
    observation: int | None = None
    picture: str = ""
    choices: tuple[Choice, ...] = ()
    routes: tuple[Route, ...] = ()
    traces: tuple[Trace, ...] = ()
    note: str = ""
    """What else came of the step that led here."""
    shown: tuple[Shown, ...] = ()
    calls: tuple[Call, ...] = ()
    failures: tuple[str, ...] = ()
    seconds: float | None = None
    """How long the step that led here took."""
    spent: str = ""
    """What the model calls in this state took, in words."""
    told: tuple[str, ...] = ()
    """What people who watched said about it."""


class Alternative(Part, frozen=True, kw_only=True):
    """How one action stood at a decision."""

    words: str
    prior: float
    visits: int
    value: float | None
    chosen: bool = False


class Step(Part, frozen=True, kw_only=True):
    """One committed action."""

    number: int
    node: int
    """The state it was taken in."""
    child: int | None
    """Where it led; None where it was refused or its end is not journalled."""
    words: str
    reason: str
    stopped: str
    value: float | None
    """Q when it was decided."""
    came: float | None
    """V of what came."""
    outcome: str
    """In words."""
    trouble: bool = False
    alternatives: tuple[Alternative, ...] = ()


class Moment(Part, frozen=True, kw_only=True):
    """How a search stood after one iteration."""

    t: float
    iteration: int
    root: int
    nodes: int
    spent: dict[str, float] = {}
    """By kind of budget."""
    edges: tuple[tuple[int, int, float], ...] = ()
    """Index, N and Q of each of the root's actions that had a value."""
    step: int | None = None
    """The number of the commit that came right after it."""


class Picture(Part, frozen=True, kw_only=True):
    """A screenshot."""

    src: str
    """A data: URL."""
    width: int
    height: int
    """In pixels of the original, in which boxes are given."""


class Report(Part, frozen=True, kw_only=True):
    """One attempt at one task."""

    head: Head
    nodes: tuple[State, ...]
    steps: tuple[Step, ...]
    traces: tuple[Trace, ...]
    """All writes that were sent and all that was blocked."""
    trouble: tuple[tuple[int, str, int], ...]
    """What broke or drifted: node, reason, how often."""
    lessons: tuple[Lesson, ...]
    """Written in this attempt."""
    remembered: tuple[Remembered, ...]
    """Shown in this attempt, in the order in which they were."""
    timeline: tuple[Moment, ...]
    limits: dict[str, float]
    """Of the task's budget, by kind; what is not limited is left out."""
    marks: dict[int, tuple[Mark, ...]]
    """By the number of a state's observation: its elements that have a box."""
    texts: tuple[str, ...]
    pictures: dict[str, Picture]
