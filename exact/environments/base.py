"""The contract of environments, on which search, runs and users' environments agree.

Write one class with the methods of `Environment` to bring an application under search, and an `EnvironmentFactory` that opens it. If whole
environments can be copied, implement `ForkableFactory` too. `exact check` tests an implementation against this contract.

Questions of an environment to the person who watches it: whether a write may be sent, and questions of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Literal, Protocol, runtime_checkable

import msgspec

from exact.action import Action, ActionSpace
from exact.deprecated import RenamedFields
from exact.errors import ActionError, EnvironmentFailure, InfrastructureError
from exact.observation import Observation, same_state
from exact.task import Outcome, Score, Task

Fidelity = Literal["full", "client", "page", "replay"]
"""How much state a restore recovers. `full`: client and server state, such as a whole sandbox. `client`: the whole client, such as a
browser with its memory; the server's state stays as it is. `page`: URL, storage, form values and scroll positions of a page. `replay`:
none; a state is reached by reset and replay."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""HTTP methods that do not write."""
TOOL = "TOOL"
"""Stands for the method of a call of a tool in side effects and questions. The address is `tool:` and its name."""
SECRET = "SECRET"
"""Stands for the method in a person's question whether an origin may get what may hold a typed secret."""


class SideEffect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a step did, or tried to do, outside the page."""

    kind: Literal["request", "blocked", "download", "dialog", "tab"]
    """Kind of the effect. `request`: a write that was sent. `blocked`: a request that was aborted and recorded."""
    method: str = ""
    """HTTP method of a request."""
    url: str = ""
    """Address of the request, download or tab."""
    status: int = 0
    """HTTP status of the response. 0 if there was none when the step ended."""
    detail: str = ""
    """Description in words, such as the text of a dialog."""
    fields: tuple[str, ...] = ()
    """Names of the fields in the request's body, without their values."""
    reach: Literal["", "sandbox", "recording", "outside"] = ""
    """Place in which a sent request was answered: by a server in the sandbox, from recorded traffic, or outside. Empty if unknown."""
    size: int = 0
    """Bytes of a download."""
    digest: str = ""
    """Hex SHA-256 of a download."""
    write: bool | None = None
    """Whether a request counts as a write of the agent. None: by its method. False: a page sends it by itself, or a site declares it
    harmless, or it is never sent, at a commit neither. True: a GET that writes."""
    late: bool = False
    """Whether an earlier action caused it, whose step had ended by then: a form that saves itself a while after it was filled in. In the
    state of an attempt it belongs to that action."""

    @property
    def is_write(self) -> bool:
        """Return whether a write was sent: by default a request with a method other than GET, HEAD or OPTIONS."""
        return self.kind == "request" and (self.method not in SAFE_METHODS if self.write is None else self.write)

    @property
    def is_repeated(self) -> bool:
        """Return whether taking the step again would send a write again. A tool is not called again: its result is journalled."""
        return self.is_write and self.method != TOOL

    @property
    def is_blocked(self) -> bool:
        """Return whether a write of this step was blocked that a commit sends, so that its result is unknown."""
        unsafe = bool(self.method) and self.method not in SAFE_METHODS
        return self.kind == "blocked" and not self.late and (unsafe if self.write is None else self.write)


REPORTED_INFO = ("refused", "declined", "answer", "download", "unsettled", "moved", "holds", "changed")
"""Keys of `Transition.info` that are reported to agents. `refused`: the reason why the action was not fully carried out. `declined`: the
reason why a person did not let it write. `answer`: the person's answer. `download`: the reason why a file was not saved. `unsettled`: that
the page was still changing. `moved`: what was redrawn elsewhere while all text stayed equal. `holds`: the content of a field if it differs
from the typed text. `changed`: the elements that came and went while nothing was done."""


def reported_info(info: Mapping[str, str]) -> str:
    """Return the part of a transition's `info` that agents are given, as one line. Empty if there is none."""
    return "; ".join(info[name] for name in REPORTED_INFO if info.get(name))


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one step. It has no reward: search never sees the benchmark's score."""

    observation: Observation | None
    """Observation after the step. None if the step ended the episode and left nothing to see. An end that depends on chance gives one,
    which the value function finds in `Context.end`."""
    terminated: bool = False
    """Whether the step ended the episode."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the step, in order."""
    info: dict[str, str] = {}
    """Further facts, written to the journal. Agents are given those whose key is in REPORTED_INFO."""


class StateChanged(ActionError):
    """An action that was refused because the state had changed by itself since it was observed. Nothing was done.

    `came` is the present state, in which the next action is taken.
    """

    def __init__(self, message: str, came: Transition) -> None:
        super().__init__(message)
        self.came = came


async def step_in(environment: Environment, action: Action, fingerprint: str) -> Transition:
    """Carry out an action in a state. If the environment has drawn that very state anew meanwhile, carry it out there.

    Raises the errors of `step`.
    """
    try:
        return await environment.step(action)
    except StateChanged as changed:
        now = changed.came
        if now.observation is None or not same_state(now.observation.fingerprint, fingerprint):
            raise
        came = await environment.step(action)
        return msgspec.structs.replace(came, effects=(*now.effects, *came.effects))


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Handle by which an environment can return to a state."""

    id: str
    """Identifier, unique among the snapshots of one factory."""
    fidelity: Fidelity
    """State that a restore recovers. May be lower than that of the environment: see `severed`."""
    fingerprint: str
    """Fingerprint of the observation at the state."""
    severed: str = ""
    """Connection that a restore finds cut off, in words, if that lowers the fidelity. Empty if there is none."""


class Capabilities(msgspec.Struct, metaclass=RenamedFields, frozen=True, kw_only=True):
    """Properties of an environment, constant for its lifetime."""

    RENAMED: ClassVar = {"sealed": "isolated"}
    RENAMED_VALUES: ClassVar = {"fidelity": {"world": "full"}}

    fidelity: Fidelity
    """Fidelity of its snapshots. With `replay` it takes none, and states are reached by reset and replay (see `restore/`)."""
    isolated: bool
    """Whether `reset` undoes every side effect: no server or account outside retains a step's effects. Search may then send writes."""
    deterministic: bool | None = None
    """Whether equal actions after equal resets lead to equal fingerprints. False: stochastic, so that a search repeats steps and values an
    action by the mean over its outcomes. None: presumed to be so, until equal actions have led to different states."""
    concurrent: bool = True
    """Whether several environments may be open and act at once. If False, one worker steps at a time."""
    screenshots: bool = False
    """Whether observations have screenshots."""
    evaluates: bool = True
    """Whether `evaluate` has an evaluator. If False, the run is not scored and ends with the agent's own evaluation."""
    call_seconds: float = 30.0
    """Seconds after which a call counts as hung for `exact check`. Resets and steps that are known to be slow state more."""


class Environment(Protocol):
    """One environment in which an agent acts.

    Calls do not overlap: each method is awaited before the next one is called. Five attributes are optional. `obstacle` (str): the reason
    why no snapshot can be taken now, empty if there is none. `processor` (float): CPU seconds used so far. `changes(ids)` (coroutine):
    returns the transition to the present state if it has changed by itself since it was last observed, None if not. Parts that always
    change do not count. `info["still"]` has those of the element ids, separated by spaces, that mean the same elements as before.
    `repeatable` (mapping): whether a verb may be carried out again after a crash in the middle of it; that of other verbs follows from
    `isolated`. `rebuilding()` (context manager): inside it, steps are taken again that were committed before.
    `go_on()` (coroutine): observes the present state, after an end of the episode too, and lets the next goal of a session begin there.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Properties of this environment."""
        ...

    @property
    def actions(self) -> ActionSpace:
        """Grammar of this environment's actions."""
        ...

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the start of a task and return the first observation.

        Raises EnvironmentFailure if the environment broke.
        """
        ...

    async def step(self, action: Action) -> Transition:
        """Carry out one action, wait until the environment has settled, and return the result.

        Raises ActionError if the action does not fit the present state, or the episode has ended; the action has then done nothing, and the
        error's text goes to the policy. It is a StateChanged if the state had changed by itself. Raises EnvironmentFailure if the
        environment broke. An action that changes nothing visible is legal.
        """
        ...

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the present state; the environment continues.

        Raises EnvironmentFailure if the fidelity is `replay`, or if no snapshot can be taken now.
        """
        ...

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to the state of a snapshot of this environment and observe it.

        Raises EnvironmentFailure if the snapshot is gone.
        """
        ...

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the benchmark's score for the environment's present state.

        Called once, after the committed actions only. `outcome` has those actions and the agent's answer. `Score.value` is in [0, 1].
        """
        ...

    async def close(self) -> None:
        """Release all resources. Never raises, and may be called twice."""
        ...


@runtime_checkable
class RewardSource(Protocol):
    """An environment that gives a reward for each step, as environments of reinforcement learning do.

    Training reads it, and the value function of kind `reward`. No search reads it otherwise, and a run never reads it on the tasks of a
    benchmark.
    """

    def reward(self) -> float:
        """Return the reward of the last step, on the environment's scale. 0 right after `reset` and `restore`.

        Raises UsageError if the environment gives none, which only its first step may show.
        """
        ...


class BaseEnvironment:
    """Base class of your own environments. A class needs `actions`, `reset` and `step`; the rest has defaults.

        class Number(exact.BaseEnvironment):
            actions = exact.ActionSpace(["double", "add_three"])

            async def reset(self, task): ...
            async def step(self, action): ...

    The methods are those of `Environment`.
    """

    actions: ActionSpace
    """Grammar of this environment's actions."""
    capabilities: Capabilities = Capabilities(fidelity="replay", isolated=False, evaluates=False)
    """Properties of this environment. Default: no snapshots, not isolated, and evaluated if the class has an evaluator."""

    def __init_subclass__(cls) -> None:
        """State whether the class has an evaluator. Capabilities that it states itself do not claim one that is not there."""
        super().__init_subclass__()
        lacks, stated = cls.evaluate is BaseEnvironment.evaluate, cls.capabilities
        if isinstance(stated, Capabilities) and (lacks or ("capabilities" not in vars(cls) and "evaluate" in vars(cls))):
            cls.capabilities = msgspec.structs.replace(stated, evaluates=not lacks)

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the start of a task and return the first observation."""
        raise NotImplementedError(f"{type(self).__name__} has no reset")

    async def step(self, action: Action) -> Transition:
        """Carry out one action and return the result."""
        raise NotImplementedError(f"{type(self).__name__} has no step")

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the present state. Raises EnvironmentFailure: there are none."""
        raise EnvironmentFailure(f"{type(self).__name__} takes no snapshots")

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to the state of a snapshot. Raises EnvironmentFailure: there are none."""
        raise EnvironmentFailure(f"{type(self).__name__} takes no snapshots")

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the score of the environment's present state. Raises EnvironmentFailure for lack of an evaluator."""
        raise EnvironmentFailure(f"{type(self).__name__} has no evaluator")

    async def close(self) -> None:
        """Release nothing."""


class EnvironmentFactory(Protocol):
    """Opens environments of one kind. Several may be open at once if `Capabilities.concurrent` is set."""

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[Environment]:
        """Open a fresh environment for the time of an `async with` block.

        `simulation`: the environment is used by search and must not change the outside. Unless it is isolated, it aborts every write and
        records it as a SideEffect of kind `blocked`. Otherwise it is the live environment, in which actions are committed.
        """
        ...


class Fork(Environment, Protocol):
    """An environment made from a snapshot."""

    @property
    def observation(self) -> Observation:
        """Last observation. Right after the fork it is that of the snapshot's state."""
        ...


@runtime_checkable
class ForkableFactory(EnvironmentFactory, Protocol):
    """A factory whose snapshots can be forked: any number of environments made from one snapshot exist side by side."""

    def fork(self, snapshot: Snapshot, *, simulation: bool) -> AbstractAsyncContextManager[Fork]:
        """Open another environment at the state of a snapshot, whichever environment took it.

        `simulation`: as for `open`. Raises EnvironmentFailure on entering if the snapshot is gone.
        """
        ...

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be restored or forked."""
        ...

    def drop(self, snapshot: Snapshot) -> None:
        """Release a snapshot that will not be used again."""
        ...


async def evaluate_outcome(environment: Environment, task: Task, outcome: Outcome) -> Score:
    """Return the score of an environment's evaluator. Raises InfrastructureError if its value is not in [0, 1]."""
    score = await environment.evaluate(outcome)
    if not 0 <= score.value <= 1:  # nor NaN
        raise InfrastructureError(f"the evaluator of {task.id} gave {score.value}: a score is in [0, 1]")
    return score


class PersonQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a person."""

    kind: Literal["write", "action", "question", "way"]
    """`write`: may this request be sent? `action`: may this action be carried out? `question`: what does the person answer the agent?
    `way`: may the writes of an earlier run be sent again, once each? They are the lines of the text."""
    text: str
    """The action, or the agent's question. Secrets are masked."""
    method: str = ""
    """HTTP method of the request."""
    url: str = ""
    """Address of the request, with secrets masked."""
    fields: dict[str, str] = {}
    """Fields of the request's body, with secrets masked and long values cut."""
    digest: str = ""
    """Hex SHA-256 of method, address and whole body, to which an answer is bound."""


class Person(Protocol):
    """A person who can be asked. The attribute `confirms_writes` is optional: whether each write outside needs a yes in any case."""

    async def allows(self, question: PersonQuestion) -> str:
        """Return the reason if a write or an action is not allowed; empty if it is. Without an answer in time it is not."""
        ...

    async def answer(self, question: PersonQuestion) -> str | None:
        """Return the answer to an agent's question; None if none came in time."""
        ...
