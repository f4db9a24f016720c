"""The events of a journal: everything that happened in one attempt at one task, in order.

Two kinds. *Facts* cost something to make and are never made twice: `Called`, `Acted`, `RolledStep`, `Arrived`, `Recalled`, `Late`,
`Scored`. *Moves* change the search: `Asked`, `Told`, `Released`, `Commanded`, `Decided`, `Committed`. The state of a search is a fold
over both.
A fact is on disk before its result is used. A fact names the selection that it was made for, whose budget it counts in; -1: none.
Names of blobs are hex SHA-256 of their content.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from exact.context import Evaluation, Reflection
from exact.environments.base import Fidelity, SideEffect
from exact.environments.restore import ArrivalMatch, RouteName
from exact.models.base import Sampling, Usage
from exact.search.base import Decision, Diverged, Done, Result, Selection, Wait
from exact.task import Score, Task

SCHEMA = 6
"""2: facts name their selection; several pieces of work at once; plans; promoted environments. 3: what was kept, prepared, commanded, and
what calls nobody accounts for. 4: what an outage closed is opened again; work that takes more than it may fails of `budget`.
5: what cannot be read fails of `answer`; it was an outage. 6: the field's names: see aliases.py."""
OLDEST = 2
"""Of which nothing is missing that is needed."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """Base. `t`: seconds since the journal was opened first, by its clock."""

    t: float = 0.0


class Opened(Event, frozen=True, kw_only=True, tag="opened"):
    """First line."""

    schema: int
    task: Task
    seed: int
    config: str
    """Hex digest of the resolved configuration, which lies in the run's config.yaml."""
    versions: dict[str, str] = {}
    """exact, commit, python, playwright, ..."""
    memory: str = ""
    """Version of the reflection memory at the start."""


class Reset(Event, frozen=True, kw_only=True, tag="reset"):
    """The live environment stands at the task's start: the first root."""

    instruction: str
    fingerprint: str
    observation: str
    screenshot: str = ""
    effects: tuple[SideEffect, ...] = ()


class Asked(Event, frozen=True, kw_only=True, tag="asked"):
    """The algorithm's answer to one ask."""

    answer: Selection | Wait | Done


class Arrived(Event, frozen=True, kw_only=True, tag="arrived"):
    """A speculative environment was brought to a node."""

    node: int
    route: RouteName
    """See exact/environments/restore/routes.py."""
    verdict: ArrivalMatch
    transitions: int = 0
    """Environment steps replayed."""
    resets: int = 0
    effects: tuple[SideEffect, ...] = ()
    reason: str = ""
    failed: tuple[RouteName, ...] = ()
    """Routes that did not lead there, before the one named."""
    diverged: Diverged | None = None
    """Where the environment went instead."""
    environments: int = 0
    """How many were open then, the live one included."""
    prepared: bool = False
    """Whether it was brought there in the background, before anybody asked."""
    selection: int = -1
    seconds: float = 0.0


class Kept(Event, frozen=True, kw_only=True, tag="kept"):
    """A snapshot was taken. It is lost with the process: nothing hangs on it."""

    node: int
    edge: int | None = None
    """Of what this edge of the node led to, where that was kept as soon as it was reached; else of the node."""
    fidelity: Fidelity
    bytes: int = 0
    """Of all snapshots that are kept; 0 where nobody counts them."""
    seconds: float = 0.0
    severed: str = ""
    """What a return finds cut off: see Snapshot."""


class Prepared(Event, frozen=True, kw_only=True, tag="prepared"):
    """A spare environment was brought to a node in the background. Nothing hangs on it but the count of steps."""

    node: int
    route: RouteName
    verdict: ArrivalMatch
    transitions: int = 0
    """Environment steps replayed."""
    reason: str = ""
    seconds: float = 0.0


class Acted(Event, frozen=True, kw_only=True, tag="acted"):
    """A speculative step: the first time this edge was taken in an environment."""

    node: int
    edge: int
    action: str
    fingerprint: str = ""
    terminated: bool = False
    observation: str = ""
    screenshot: str = ""
    effects: tuple[SideEffect, ...] = ()
    info: dict[str, str] = {}
    """As in Transition."""
    refused: str = ""
    """The ActionError's text; empty where the step was carried out."""
    wrote: str = ""
    """Where it wrote, or would have: the action with its element's role and name in place of the id."""
    seconds: float = 0.0
    selection: int = -1


class RolledStep(Event, frozen=True, kw_only=True, tag="rolled_step"):
    """One step of a rollout."""

    node: int
    """Where the rollout began."""
    draw: int
    """The how-manieth rollout from there."""
    policy: int = 0
    index: int
    """Of the step, from 0."""
    action: str
    rationale: str = ""
    fingerprint: str = ""
    terminated: bool = False
    observation: str = ""
    screenshot: str = ""
    effects: tuple[SideEffect, ...] = ()
    info: dict[str, str] = {}
    refused: str = ""
    seconds: float = 0.0
    selection: int = -1


class Called(Event, frozen=True, kw_only=True, tag="called"):
    """A model answered."""

    key: str
    """Hex digest of the request with role, node, draw and attempt; one answer for each."""
    role: str
    node: int
    attempt: int
    draw: int = 0
    prompt: str
    model: str
    sampling: Sampling
    request: str
    """Blob: the messages as JSON, images by blob name."""
    form: dict[str, Any] | None = None
    """The JSON schema that the answer was asked to keep to, if one was."""
    answer: str
    """Blob: the ChatAnswer as JSON, with the server's raw answer, token ids and log-probabilities where given."""
    usage: Usage
    reserved: float = 0.0
    """US dollars held back for it; they count as spent where the server told no usage."""
    reserved_tokens: int = 0
    """Tokens held back for it; as above."""
    replayed: int = 0
    """How many of its choices come from the cache and took nothing."""
    left_out: tuple[str, ...] = ()
    """What of the state is not in the request for want of room."""
    notes: tuple[str, ...] = ()
    """What was asked for and left out, because the server does not take it."""
    seconds: float = 0.0
    selection: int = -1


class Unaccounted(Event, frozen=True, kw_only=True, tag="unaccounted"):
    """Requests to a model's server that no `Called` accounts for."""

    role: str
    node: int
    model: str
    lost: tuple[str, ...] = ()
    """Why each was given up on; what those took is not known."""
    usage: Usage = Usage()
    """What the answers took that came for a call which failed in the end."""
    selection: int = -1


class Failed(Event, frozen=True, kw_only=True, tag="failed"):
    """A call or an environment broke. Counted and retried, never a value."""

    what: Literal["model", "environment", "answer", "reflection", "budget"]
    """`answer`: a model answered, but with nothing that could be read. `budget`: that of one piece of work was used up."""
    node: int
    reason: str
    transitions: int = 0
    """Steps taken in the environment that broke."""
    selection: int = -1


class Recalled(Event, frozen=True, kw_only=True, tag="recalled"):
    """Reflections shown at a node; none, where memory had nothing to say."""

    node: int
    kind: Literal["policy", "value"]
    memory: str
    """The memory's version."""
    reflections: tuple[Reflection, ...]


class Told(Event, frozen=True, kw_only=True, tag="told"):
    """A result was handed to the algorithm."""

    selection: int
    result: Result
    key: str = ""
    """Digest of what the agent was shown: an equal question has this answer."""
    reused: bool = False
    """Whether it is the answer to an equal question asked before: nothing was spent on it."""


class Late(Event, frozen=True, kw_only=True, tag="late"):
    """A result for a selection that is not open any more: paid for, kept for equal questions, not told."""

    selection: int
    result: Result
    key: str = ""


class Released(Event, frozen=True, kw_only=True, tag="released"):
    """A reservation was given back."""

    selection: int


class Commanded(Event, frozen=True, kw_only=True, tag="commanded"):
    """Somebody who watches told the search what to do: see exact/runs/journal/commands.py."""

    id: str
    command: Literal["pause", "resume", "stop", "expand", "prune"]
    node: int = -1
    by: str = ""
    refused: str = ""
    """Why it was not obeyed; empty where it was."""


class Decided(Event, frozen=True, kw_only=True, tag="decided"):
    """Intent: first phase of a commit."""

    step: int
    """Number of the commit, from 0."""
    action: str
    decision: Decision
    stopped: str = ""
    """Why the search before it ended; where a plan goes on, that it does."""


class Committed(Event, frozen=True, kw_only=True, tag="committed"):
    """Done: second phase of a commit, in the live environment."""

    step: int
    edge: int
    action: str
    fingerprint: str = ""
    terminated: bool = False
    observation: str = ""
    screenshot: str = ""
    effects: tuple[SideEffect, ...] = ()
    info: dict[str, str] = {}
    refused: str = ""
    agrees: bool | None = None
    """Whether the state is the one the search had seen; None where it had seen none."""
    promoted: bool = False
    """Whether the searched environment became the live one; else the action was carried out in the live environment."""
    wrote: str = ""
    """As in Acted."""
    seconds: float = 0.0


class Rebuilt(Event, frozen=True, kw_only=True, tag="rebuilt"):
    """After a crash, the live environment was made again by reset and the committed actions."""

    transitions: int
    effects: tuple[SideEffect, ...] = ()


class Judged(Event, frozen=True, kw_only=True, tag="judged"):
    """The agent's own verdict on the end of its attempt."""

    evaluation: Evaluation
    bought: bool = False
    """Whether it was asked for now; else the search had it already."""


class Ended(Event, frozen=True, kw_only=True, tag="ended"):
    """No further action will be committed."""

    reason: str
    answer: str | None = None


class Scored(Event, frozen=True, kw_only=True, tag="scored"):
    """The benchmark's verdict. Nothing before this line depends on it."""

    score: Score


class Reflected(Event, frozen=True, kw_only=True, tag="reflected"):
    """A lesson was written to memory."""

    reflection: Reflection


class Resumed(Event, frozen=True, kw_only=True, tag="resumed"):
    """The attempt went on after an interruption."""

    versions: dict[str, str] = {}
    mended: bool = False
    """Whether it had failed: what models and environments that failed had closed in its tree is open again."""


class Finished(Event, frozen=True, kw_only=True, tag="finished"):
    """Last line."""

    status: Literal["scored", "judged", "failed", "stopped"]
    reason: str = ""
    missing: str = ""
    """As `Line.missing`, of what failed."""


AnyEvent = (
    Opened | Reset | Asked | Arrived | Acted | RolledStep | Called | Unaccounted | Failed | Recalled | Told | Late | Released | Commanded
    | Decided | Committed | Kept | Prepared | Rebuilt | Judged | Ended | Scored | Reflected | Resumed | Finished
)  # fmt: skip
