"""The events of a journal: everything that happened in one attempt at one task, in order. This file is the reference of journal.jsonl.

A line is one event as a JSON object. `event` is its tag, given in each class below; fields that have their default are omitted.

There are two kinds. *Facts* cost something to make and are never made twice: `called`, `acted`, `rolled_step`, `arrived`, `recalled`,
`late`, `scored`. *Moves* change the search: `asked`, `told`, `released`, `commanded`, `decided`, `committed`. The state of an attempt is a
fold over both: see state.py. A fact is on disk before its result is used. It names the selection for which it was made, in whose budget it
counts; -1 where it was made for none.

Nodes are named by their id in the search tree, edges by their index at the node. Blobs are named by the hex SHA-256 of their content.
Durations are seconds.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from exact.action import Action
from exact.context import EarlierGoal, Evaluation, Reflection
from exact.environments.base import Fidelity, PersonQuestion, SideEffect
from exact.environments.restore.routes import RouteName
from exact.environments.restore.waypoint import ArrivalMatch
from exact.models.base import Sampling, Usage
from exact.runs.journal.commands import Name
from exact.search.base import Decision, Diverged, Done, Result, Selection, Wait
from exact.task import Score, Task

SCHEMA = 8
"""Version of the events.

2: facts name their selection; several pieces of work in flight; plans; promoted environments. 3: snapshots, preparations, commands, and
requests that no call accounts for. 4: what an outage closed is opened again; work that exceeds its own budget fails as `budget`. 5: an
answer that does not parse fails as `answer`; before, it was an outage. 6: renamed fields and values, see aliases.py. 7: questions to a
person and their answers, commands with a text, and answers as objects. 8: `guided`, by the way of an earlier run.
"""
OLDEST = 2
"""Oldest schema that still reads: its journals hold all that the fold needs."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """Base of all events."""

    t: float = 0.0
    """Seconds since the journal was first opened. A resumed journal counts on from its last event."""


class Opened(Event, frozen=True, kw_only=True, tag="opened"):
    """`opened`: the attempt began. First line of a journal."""

    schema: int
    """Version of the events: see SCHEMA."""
    task: Task
    seed: int
    """Seed of the run, by which everything random in the search is drawn."""
    config: str
    """Hex digest of the resolved configuration, which is in the run's config.yaml."""
    versions: dict[str, str] = {}
    """Versions of exact, its commit, Python, Playwright and the like, by name."""
    memory: str = ""
    """Version of the reflection memory at the start; empty without a memory."""
    fences: str = ""
    """Random key, as hex digits, under which the marks of this attempt's prompts are drawn. Empty in journals before it was recorded."""
    earlier: tuple[EarlierGoal, ...] = ()
    """Earlier goals of the session, oldest first. Empty outside of one."""
    spent: dict[str, float] = {}
    """Calls, tokens and US dollars that they took, which count in the caps of this attempt too."""


class Reset(Event, frozen=True, kw_only=True, tag="reset"):
    """`reset`: the live environment is at the task's start, which becomes the first root."""

    instruction: str
    """Goal of the task, as the task or the environment gives it."""
    fingerprint: str
    """Identity of the state, by what an agent can see."""
    observation: str
    """Blob of the observation, without its screenshot."""
    screenshot: str = ""
    """Blob of the screenshot; empty where there is none."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the reset."""
    isolated: bool | None = None
    """Whether a reset of the environment undoes every side effect; None where that was not recorded."""
    kept: bool = False
    """Whether nothing was reset: a session goes on in its present state, to which no reset leads."""
    deterministic: Literal["", "yes", "no", "presumed"] = ""
    """Whether equal actions lead to equal states, by the environment's capability; empty where that was not recorded."""


class Asked(Event, frozen=True, kw_only=True, tag="asked"):
    """`asked`: the algorithm was asked for work."""

    answer: Selection | Wait | Done
    """Work that is reserved in the tree; or nothing for now; or the end of the search with its reason."""


class Arrived(Event, frozen=True, kw_only=True, tag="arrived"):
    """`arrived`: a simulated environment was brought to a node, and the arrival was verified."""

    node: int
    route: RouteName
    """Route that was taken last: see exact/environments/restore/routes.py."""
    match: ArrivalMatch
    """Match of the state with the node's: see exact/environments/restore/waypoint.py."""
    transitions: int = 0
    """Environment steps that were replayed, on all routes."""
    resets: int = 0
    """Resets on all routes."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the replayed steps."""
    reason: str = ""
    """Reason for a drift; empty where the environment arrived."""
    failed: tuple[RouteName, ...] = ()
    """Routes that did not lead to the node, tried before `route`."""
    diverged: Diverged | None = None
    """Other outcome of an edge on the path, where the environment met one."""
    environments: int = 0
    """Number of open environments at that time, the live one included."""
    prepared: bool = False
    """Whether the environment had been brought there in the background before a worker needed it."""
    stochastic: bool = False
    """Whether this was the first sign that equal actions may lead to different states."""
    selection: int = -1
    """Selection that needed it; -1 for a commit."""
    seconds: float = 0.0


class SnapshotTaken(Event, frozen=True, kw_only=True, tag="kept"):
    """`kept`: a snapshot was taken and retained. It ends with the process, so the fold does not use it."""

    node: int
    edge: int | None = None
    """Edge of the node whose outcome the snapshot is of, where it was taken right after the step; None for the node itself."""
    fidelity: Fidelity
    """State that the snapshot recovers."""
    bytes: int = 0
    """Size of all retained snapshots; 0 where the environment does not count it."""
    seconds: float = 0.0
    severed: str = ""
    """Connections that a restore finds cut: see `Snapshot.severed`."""


class Prepared(Event, frozen=True, kw_only=True, tag="prepared"):
    """`prepared`: a spare environment was brought to a node in the background. Only its steps are counted."""

    node: int
    route: RouteName
    """Route that was taken last."""
    match: ArrivalMatch
    """Match of the state with the node's."""
    transitions: int = 0
    """Environment steps that were replayed."""
    reason: str = ""
    """Reason for a drift."""
    seconds: float = 0.0
    ahead: int = -1
    """Edge along which it then took a step before the search asked for it; -1 for none."""


class Acted(Event, frozen=True, kw_only=True, tag="acted"):
    """`acted`: a simulated step: the first along an edge of the tree, or a later one if the environment is stochastic."""

    node: int
    edge: int
    action: str
    """Text of the action, with the ids of elements in the node's observation."""
    fingerprint: str = ""
    """Identity of the state that followed; empty where there is none to observe."""
    terminated: bool = False
    """Whether the step ended the episode."""
    observation: str = ""
    """Blob of the observation; empty where there is none."""
    screenshot: str = ""
    """Blob of the screenshot; empty where there is none."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the step."""
    info: dict[str, str] = {}
    """Further facts about the step: see `Transition.info`."""
    refused: str = ""
    """Text of the ActionError; empty where the action was carried out."""
    wrote: str = ""
    """Label of an action that wrote, or would have if it had not been blocked: with the element's role and name in place of its id."""
    seconds: float = 0.0
    """Seconds that the search waited for it."""
    ahead: bool = False
    """Whether a spare environment took it before the search asked for it. A `prepared` event counts it."""
    selection: int = -1


class RolledStep(Event, frozen=True, kw_only=True, tag="rolled_step"):
    """`rolled_step`: one step of a rollout."""

    node: int
    """Node at which the rollout began."""
    draw: int
    """Number of the rollout at the node, from 0."""
    policy: int = 0
    """Index of the agent's policy that acts."""
    index: int
    """Number of the step in the rollout, from 0."""
    action: str
    """Text of the action."""
    rationale: str = ""
    """The policy's reason for it."""
    fingerprint: str = ""
    """Identity of the state that followed."""
    terminated: bool = False
    """Whether the step ended the episode."""
    observation: str = ""
    """Blob of the observation."""
    screenshot: str = ""
    """Blob of the screenshot."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the step."""
    info: dict[str, str] = {}
    """Further facts about the step."""
    refused: str = ""
    """Text of the ActionError; empty where the action was carried out."""
    seconds: float = 0.0
    selection: int = -1


class Called(Event, frozen=True, kw_only=True, tag="called"):
    """`called`: a model answered."""

    key: str
    """Hex digest of the request with role, node, draw and attempt. A request with a key that is journalled is not sent again."""
    role: str
    """Part that the model plays: `policy`, `value`, `reflection`, ..."""
    node: int
    attempt: int
    """Number of the request in its exchange, from 0. Above 0 the model was shown why its answer before did not parse."""
    draw: int = 0
    """Number of requests of this kind for the node before."""
    prompt: str
    """Name, version and digest of the prompt template."""
    model: str
    """Name of the model, as the server gives it."""
    sampling: Sampling
    """Temperature, number of choices and the like."""
    request: str
    """Blob of the messages as JSON, with images by blob name."""
    form: dict[str, Any] | None = None
    """JSON schema that constrained the answer; None where none did."""
    answer: str
    """Blob of the ChatAnswer as JSON: the server's raw answer, token ids and log-probabilities where given."""
    usage: Usage
    """Tokens, and US dollars where the price is known."""
    reserved: float = 0.0
    """US dollars reserved for the call. They count as spent where the server reports no usage."""
    reserved_tokens: int = 0
    """Tokens reserved for the call. They count as spent where the server reports no usage."""
    replayed: int = 0
    """Number of choices that came from the cache of answers, at no cost."""
    left_out: tuple[str, ...] = ()
    """Parts of the state that were left out of the request to fit the context window."""
    notes: tuple[str, ...] = ()
    """Parameters that were dropped from the request because the server does not accept them."""
    seconds: float = 0.0
    selection: int = -1


class Unaccounted(Event, frozen=True, kw_only=True, tag="unaccounted"):
    """`unaccounted`: requests to a model's server that no `called` accounts for."""

    role: str
    node: int
    model: str
    lost: tuple[str, ...] = ()
    """Reason why each request was given up on. What those cost is not known."""
    usage: Usage = Usage()
    """Usage of the answers that came for a call which failed in the end."""
    selection: int = -1


class Failed(Event, frozen=True, kw_only=True, tag="failed"):
    """`failed`: a call or an environment failed. It is counted and retried, and never becomes a value."""

    what: Literal["model", "environment", "answer", "reflection", "budget"]
    """Kind of the failure. `answer`: a model's answer did not parse. `budget`: one piece of work used up its own budget."""
    node: int
    reason: str
    transitions: int = 0
    """Steps taken in the environment that failed."""
    resumable: bool = True
    """Whether resuming the run may help: see `ResultLine.resumable`."""
    selection: int = -1


class Recalled(Event, frozen=True, kw_only=True, tag="recalled"):
    """`recalled`: memory was asked for reflections at a node, once for each kind."""

    node: int
    kind: Literal["policy", "value"]
    """Part of the agent that is shown them."""
    memory: str
    """Version of the memory."""
    reflections: tuple[Reflection, ...]
    """Reflections in the order in which they are shown; empty where memory had none."""


class Marked(Event, frozen=True, kw_only=True, tag="marked"):
    """`marked`: what the detectors of injections found in an observation, before an agent was shown it. Once for each observation."""

    node: int
    """Node at which it was first shown."""
    observation: str
    """Name of the observation's blob."""
    rules: tuple[str, ...] = ()
    """Marks by the rules of exact/text.py."""
    model: tuple[str, ...] | None = None
    """Marks by the model `models.detector`; None where there is none."""


class Told(Event, frozen=True, kw_only=True, tag="told"):
    """`told`: a result was told to the algorithm."""

    selection: int
    result: Result
    key: str = ""
    """Digest of what the agent was shown, by which an equal question gets this answer; empty where it is asked anew."""
    reused: bool = False
    """Whether the result answers an equal question asked before, so that nothing was spent."""


class Late(Event, frozen=True, kw_only=True, tag="late"):
    """`late`: a result came for a selection that is closed. It is paid for and kept for equal questions, but not told."""

    selection: int
    result: Result
    key: str = ""
    """Digest of what the agent was shown."""


class Released(Event, frozen=True, kw_only=True, tag="released"):
    """`released`: a selection was given back to the algorithm without a result."""

    selection: int


class Commanded(Event, frozen=True, kw_only=True, tag="commanded"):
    """`commanded`: a viewer's command was taken: see exact/runs/journal/commands.py."""

    id: str
    """Id of the command. A command that is journalled is not taken again."""
    command: Name
    node: int = -1
    """Node to expand or prune; -1 for the other commands."""
    question: str = ""
    """Id of the question that is answered."""
    text: str = ""
    """Answer to the agent's question, or the new instruction."""
    action: Action | None = None
    """Action to commit next."""
    by: str = ""
    """Sender, in a few words."""
    refused: str = ""
    """Reason why it was not carried out; empty where it was."""

    @property
    def touches(self) -> bool:
        """Whether it changes what the agent does, so that the attempt has no benchmark score."""
        return not self.refused and self.command in ("expand", "prune", "instruct", "act", "take")


class PersonAsked(Event, frozen=True, kw_only=True, tag="person_asked"):
    """`person_asked`: a person was asked whether a write or an action may be done, or a question of the agent."""

    id: str
    question: PersonQuestion


class PersonAnswered(Event, frozen=True, kw_only=True, tag="person_answered"):
    """`person_answered`: a person answered, or did not in time."""

    id: str
    """Id of the question."""
    answer: str | None = None
    """`yes` or `no`, or the text of an answer; None where none came in time."""
    by: str = ""
    """Who answered, in a few words."""
    touched: bool = False
    """Whether it changes what the agent does, so that the attempt has no benchmark score: all but a plain yes."""
    seconds: float = 0.0


Guidance = Literal["same", "alike", "found", "agreed", "left"]
"""What an earlier run's way says in a state. `same`: the state is one of the way. `alike`: the page differs, and the element of the way's
next action is there. `found`: the search found an action that leads back to the way, or does what its action did. `agreed`: the policy's
first choice is the way's action. `left`: none of these, so the search begins."""


class Guided(Event, frozen=True, kw_only=True, tag="guided"):
    """`guided`: the way of an earlier run said what is committed next, or could not: see exact/runs/way.py."""

    match: Guidance
    step: int = -1
    """Index of the step of the way that the action stands for; -1 for an action between two of its steps."""
    action: Action | None = None
    """Action to commit next; None where the way was left."""
    reason: str = ""
    """Difference between the page and the one of the earlier run; empty for none."""


class Decided(Event, frozen=True, kw_only=True, tag="decided"):
    """`decided`: the intent to commit an action, the first of the two phases of a commit."""

    step: int
    """Number of the commit, from 0."""
    action: str
    """Text of the action."""
    decision: Decision
    """Edges to take, with the alternatives as they were."""
    stopped: str = ""
    """Reason why the search before it ended, or that a plan continues."""
    marks: tuple[str, ...] = ()
    """What the detector of injections found in the observation in which the action is taken: see exact/text.py."""


class Committed(Event, frozen=True, kw_only=True, tag="committed"):
    """`committed`: the outcome in the live environment, the second phase of a commit.

    A `decided` without it at the end of a journal is uncertain: the action may have been carried out.
    """

    step: int
    """Number of the commit, from 0."""
    edge: int
    """Edge that was taken at the root."""
    action: str
    """Text of the action."""
    fingerprint: str = ""
    """Identity of the state that followed."""
    terminated: bool = False
    """Whether the step ended the episode."""
    observation: str = ""
    """Blob of the observation."""
    screenshot: str = ""
    """Blob of the screenshot."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the step."""
    info: dict[str, str] = {}
    """Further facts about the step."""
    refused: str = ""
    """Text of the ActionError; empty where the action was carried out."""
    agrees: bool | None = None
    """Whether the state is one that the search had seen behind this edge; None where it had seen none."""
    promoted: bool = False
    """Whether a fork that had taken the action became the live environment; else the action was replayed on live."""
    wrote: str = ""
    """Label of an action that wrote: see `Acted.wrote`."""
    changed: bool = False
    """Whether the state had changed by itself: of a refused action that this was the cause, and of the `wait` after it that nobody decided
    on it. Neither is one of the agent's actions, so neither counts as one, unless it happens too often."""
    kept: tuple[int, ...] = ()
    """Edges of the state before such a `wait` whose elements are still there: they are actions of the new state too."""
    seconds: float = 0.0


class Rebuilt(Event, frozen=True, kw_only=True, tag="rebuilt"):
    """`rebuilt`: after a crash, the live environment was made again by a reset and the committed actions."""

    transitions: int
    """Number of committed actions that were repeated."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the repeated actions."""


class Judged(Event, frozen=True, kw_only=True, tag="judged"):
    """`judged`: the agent evaluated the final state itself."""

    evaluation: Evaluation
    bought: bool = False
    """Whether the value function was asked for it at the end; False where the search had evaluated the state before."""


class Ended(Event, frozen=True, kw_only=True, tag="ended"):
    """`ended`: no further action will be committed."""

    reason: str
    answer: str | None = None
    """Text of the final `stop`; None where none was committed."""


class Scored(Event, frozen=True, kw_only=True, tag="scored"):
    """`scored`: the benchmark scored the attempt. No event before this line depends on it."""

    score: Score


class Reflected(Event, frozen=True, kw_only=True, tag="reflected"):
    """`reflected`: a reflection was written to memory."""

    reflection: Reflection


class Resumed(Event, frozen=True, kw_only=True, tag="resumed"):
    """`resumed`: the attempt continued after an interruption or a failure."""

    versions: dict[str, str] = {}
    """Versions of exact, its commit, Python and the like that continue it."""
    repaired: bool = False
    """Whether the attempt had failed: what failing models and environments had closed in its tree is open again."""


class Extracted(Event, frozen=True, kw_only=True, tag="extracted"):
    """`extracted`: the final answer was put into the object that the task asks for."""

    data: str = ""
    """The object as JSON; empty where none fits the schema."""
    partial: bool = False
    """Whether the attempt ended before the agent had answered, or not all could be read, so that the object holds what was there."""
    error: str = ""
    """Reason why there is no object, or why it is partial."""


class Finished(Event, frozen=True, kw_only=True, tag="finished"):
    """`finished`: the attempt came to an end. Last line of a journal that is not resumed."""

    status: Literal["scored", "judged", "failed", "stopped", "needs_user"]
    """Kind of the end: see `ResultLine.status`."""
    reason: str = ""
    missing: str = ""
    """Part that did not answer in a failed attempt: see `ResultLine.missing`."""
    resumable: bool = True
    """Whether resuming may finish a failed attempt: see `ResultLine.resumable`."""
    stretched: float = 1.0
    """Factor by which limits of time grew on average since the attempt began or was resumed, because the machine was busy."""


AnyEvent = (
    Opened | Reset | Asked | Arrived | Acted | RolledStep | Called | Unaccounted | Failed | Recalled | Marked | Told | Late | Released |
    Commanded | PersonAsked | PersonAnswered | Guided | Decided | Committed | SnapshotTaken | Prepared | Rebuilt | Judged | Ended | Scored |
    Reflected | Extracted | Resumed | Finished
)  # fmt: skip

MOVES = Reset | Told | Released | Commanded | Decided | Committed
"""Events that change the search from outside, so that its algorithm may answer the next ask otherwise."""
