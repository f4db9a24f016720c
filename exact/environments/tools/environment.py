"""Environments whose agent has tools beside the environment's own actions.

What a tool returns is text from outside, as a page is: it stands at the beginning of the observation, on lines that begin with `| `, and
belongs to the state. A tool that reads is called once for equal arguments in a state, whichever environment asks. One that writes is
called in the live environment alone; while searching it is a write that was held back. On the way back to a state no tool is called:
results are remembered, and those of an earlier process come from the journal.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import msgspec

from exact.action import Action, ActionSpace
from exact.environments.base import (
    TOOL,
    Capabilities,
    Environment,
    EnvironmentFactory,
    Fork,
    ForkableFactory,
    Person,
    PersonQuestion,
    SideEffect,
    Snapshot,
    StateChanged,
    Transition,
)
from exact.environments.tools.schema import one_line
from exact.environments.tools.tool import Tool, ToolTimeout, called
from exact.errors import ActionError, EnvironmentFailure, SecretRefused, ToolError, UncertainCommit, UsageError
from exact.observation import Observation, without_hash
from exact.parts import name_of
from exact.task import Outcome, Score, Task

RESULT = "result"
"""Key of `Transition.info` that holds the result of a tool."""
SHOWN = 8000
"""Characters of results that an observation shows, the newest first."""
LONGEST_FIELD = 200
"""Characters of an argument that a person is shown."""
LONGEST_CALL = 300
"""Characters of a call above its result."""
ResultKey = tuple[str, str]
"""A state, by its fingerprint without keyed hashes, and the text of an action in it."""


def result_key(fingerprint: str, action: str) -> ResultKey:
    """Return the key of a call of a tool in a state."""
    return without_hash(fingerprint), action


class SecretCheck(NamedTuple):
    """What is known of secrets, for arguments and results."""

    find: Callable[[str], str] = lambda text: ""
    """Returns the placeholder of a secret that stands in a text, in whatever form; empty if none does."""
    mask: Callable[[str], str] = lambda text: text
    """Returns a text with placeholders in place of secrets."""


class ToolResult(NamedTuple):
    """What a tool returned, as a state remembers it."""

    action: str
    text: str


def tools_factory(
    environments: EnvironmentFactory,
    tools: Sequence[Tool],
    *,
    secrets: SecretCheck = SecretCheck(),  # noqa: B008 (immutable)
    confirms: bool = False,
    results: Mapping[ResultKey, str] | None = None,
) -> EnvironmentFactory:
    """Return a factory of environments with tools. It forks if the given one does.

    Args:
        environments: The environments.
        tools: The tools. Without any, the environments are returned as they are.
        secrets: What must not get to a tool.
        confirms: Whether a person is asked before each call of a tool that writes, also of one that does not ask for it.
        results: Results of an earlier process, which are not fetched again.
    """
    if not tools:
        return environments
    shared = _Shared({each.name: each for each in tools}, secrets, confirms, dict(results or {}))
    return _ForkableFactory(environments, shared) if isinstance(environments, ForkableFactory) else _Factory(environments, shared)


class _Shared:
    """What all environments of one attempt share."""

    def __init__(self, tools: Mapping[str, Tool], secrets: SecretCheck, confirms: bool, results: dict[ResultKey, str]) -> None:
        self.tools, self.secrets, self.confirms, self.results = tools, secrets, confirms, results
        self.verbs = tuple(each.verb for each in tools.values())
        self.snapshots: dict[str, tuple[Snapshot, tuple[ToolResult, ...]]] = {}
        """Snapshots of the environments themselves, with the results that their states hold, by id."""
        self._calls = defaultdict[ResultKey, asyncio.Lock](asyncio.Lock)

    def inner(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot of the environment itself. Raises EnvironmentFailure for one that was dropped."""
        if snapshot.id not in self.snapshots:
            raise EnvironmentFailure(f"the snapshot {snapshot.id} is gone")
        return self.snapshots[snapshot.id][0]

    async def read(self, tool: Tool, action: Action, key: ResultKey) -> str:
        """Return the result of a tool that reads: it is called once for equal arguments in a state. Raises ActionError."""
        async with self._calls[key]:
            if key not in self.results:
                self.results[key] = await called(tool, str(action.args[0]), self.secrets.mask)
        return self.results[key]

    async def write(self, tool: Tool, action: Action, key: ResultKey) -> str:
        """Call a tool that writes, and return its result; one that raises may have written, so its error is the result.

        Raises ActionError if the tool says that nothing was done, UncertainCommit if it gave no answer in time.
        """
        try:
            self.results[key] = await called(tool, str(action.args[0]), self.secrets.mask)
        except ToolTimeout as error:
            raise UncertainCommit(
                f"{error}, and may have written: look at what it writes to: if {action.key} was not done, `exact resume "
                "--repeat-uncertain` with the folder of this run does it; if it was, start a new run"
            ) from error
        except ToolError as error:
            self.results[key] = self.secrets.mask(f"failed, after it may have written: {error}")
        return self.results[key]


class _Factory:
    """Factory of environments with tools."""

    def __init__(self, inner: EnvironmentFactory, shared: _Shared) -> None:
        self._inner, self._shared = inner, shared

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """Open a fresh environment."""
        async with self._inner.open(simulation=simulation) as environment:
            yield EquippedEnvironment(environment, self._shared, simulation=simulation)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the factory, such as `bytes`."""
        return getattr(self._inner, name)


class _ForkableFactory(_Factory):
    """Forkable factory of environments with tools."""

    _inner: ForkableFactory

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[Fork]:
        """Open a fork of a snapshot."""
        async with self._inner.fork(self._shared.inner(snapshot), simulation=simulation) as fork:
            yield _EquippedFork(fork, self._shared, simulation=simulation, told=self._shared.snapshots[snapshot.id][1])

    def has(self, snapshot: Snapshot) -> bool:
        return snapshot.id in self._shared.snapshots and self._inner.has(self._shared.inner(snapshot))

    def drop(self, snapshot: Snapshot) -> None:
        if known := self._shared.snapshots.pop(snapshot.id, None):
            self._inner.drop(known[0])


class EquippedEnvironment:
    """An environment with tools."""

    def __init__(self, inner: Environment, shared: _Shared, *, simulation: bool) -> None:
        """Wrap an environment."""
        self._inner, self._shared, self._simulation, self.__name__ = inner, shared, simulation, name_of(inner)
        self._told: tuple[ToolResult, ...] = ()
        self._seen: Observation | None = None
        """The last observation of the environment itself. None before a reset and after the end."""
        self._person: Person | None = None
        self._rebuilding = False

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        """The environment's actions, and one for each tool. Raises UsageError if a tool has the name of another action."""
        own = self._inner.actions
        if taken := own.verbs.keys() & self._shared.tools.keys():
            raise UsageError(f"the tool {min(taken)} has the name of an action of the environment: give it another one")
        return ActionSpace((*own.verbs.values(), *self._shared.verbs))

    @property
    def repeatable(self) -> Mapping[str, bool]:
        """Whether each tool may be called again after a crash in the middle of a call."""
        return {name: each.reads for name, each in self._shared.tools.items()}

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """Take steps again, inside the context, that were committed before: no tool is called."""
        self._rebuilding = True
        try:
            yield
        finally:
            self._rebuilding = False

    def attend(self, person: Person) -> None:
        """Ask this person before a call that needs a yes, and let the environment ask them too."""
        self._person = person
        if attend := getattr(self._inner, "attend", None):
            attend(person)

    async def reset(self, task: Task) -> Observation:
        self._told = ()
        return self._shown(await self._inner.reset(task))

    async def step(self, action: Action) -> Transition:
        """Carry out an action, or call a tool. Raises ActionError, EnvironmentFailure, UncertainCommit."""
        if (tool := self._shared.tools.get(action.name)) is not None:
            return await self._use(tool, action)
        try:
            return self._with_results(await self._inner.step(action))
        except StateChanged as changed:
            raise StateChanged(str(changed), self._with_results(changed.came)) from changed

    async def changes(self, ids: Collection[str] = ()) -> Transition | None:
        """Return the transition to the present state if it has changed by itself. None if not, or if the environment cannot tell."""
        if (changes := getattr(self._inner, "changes", None)) is None or (came := await changes(ids)) is None:
            return None
        return self._with_results(came)

    async def snapshot(self) -> Snapshot:
        """Take a snapshot, which remembers the results of tools too."""
        taken = await self._inner.snapshot()
        self._shared.snapshots[taken.id] = (taken, self._told)
        return msgspec.structs.replace(taken, fingerprint=fingerprint_with(taken.fingerprint, self._told))

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to the state of a snapshot, and to the results of tools in it."""
        observation = await self._inner.restore(self._shared.inner(snapshot))
        self._told = self._shared.snapshots[snapshot.id][1]
        return self._shown(observation)

    async def evaluate(self, outcome: Outcome) -> Score:
        return await self._inner.evaluate(outcome)

    async def close(self) -> None:
        await self._inner.close()

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the environment, such as `obstacle` or `processor`."""
        found = getattr(self._inner, name)
        if name != "look":
            return found

        async def look() -> Transition:
            return self._with_results(await found())

        return look

    async def _use(self, tool: Tool, action: Action) -> Transition:
        """Call a tool, or remember what it returned in this state. Raises ActionError, UncertainCommit, EnvironmentFailure."""
        if self._seen is None:
            raise ActionError("the episode has ended, or has not begun: nothing can be done in it")
        key = result_key(fingerprint_with(self._seen.fingerprint, self._told), action.key)
        known = self._shared.results.get(key) if tool.reads or self._simulation or self._rebuilding else None
        if known is None and self._rebuilding:
            raise EnvironmentFailure(f"{action.name} is not called twice, and its result is not in the journal: start a new run").final()
        if known is None and (name := self._shared.secrets.find(str(action.args[0]))):
            raise SecretRefused(f"{name} is a secret, which no tool gets: call {action.name} without it")
        if known is None and not tool.reads and self._simulation:
            return Transition(observation=self._shown(self._seen), effects=(_effect(action, "blocked"),))
        if known is None and (why := await self._declined(tool, action)):
            return Transition(observation=self._shown(self._seen), info={"declined": why})
        effects: tuple[SideEffect, ...] = ()
        if known is None and not tool.reads:
            known, effects = await self._shared.write(tool, action, key), (_effect(action, "request"),)
        text = await self._shared.read(tool, action, key) if known is None else known
        self._told = (*self._told, ToolResult(action.key, text))
        return Transition(observation=self._shown(self._seen), effects=effects, info={RESULT: text})

    async def _declined(self, tool: Tool, action: Action) -> str:
        """Return the reason why a person does not let a tool be called; empty if it may be."""
        if tool.reads or not (tool.settings.confirm or self._shared.confirms):
            return ""
        if self._person is None:
            return f"{tool.name} needs a person's yes, and nobody can be asked"
        question = PersonQuestion(
            kind="write", text=action.key, method=TOOL, url=f"tool:{tool.name}", fields=_fields(action, self._shared.secrets.mask),
            digest=hashlib.sha256(action.key.encode()).hexdigest(),
        )  # fmt: skip
        return await self._person.allows(question)

    def _with_results(self, came: Transition) -> Transition:
        """Return a transition of the environment itself with the results of tools in its observation."""
        if came.observation is None:
            self._seen = None
            return came
        shown = self._shown(came.observation)
        self._seen = None if came.terminated else self._seen
        return msgspec.structs.replace(came, observation=shown)

    def _shown(self, seen: Observation) -> Observation:
        """Remember an observation of the environment itself, and return it with the results of tools."""
        self._seen = seen
        if not self._told:
            return seen
        lines = result_lines(self._told)
        return msgspec.structs.replace(
            seen, text="\n".join((*lines, seen.text)), results=len(lines), fingerprint=fingerprint_with(seen.fingerprint, self._told)
        )


class _EquippedFork(EquippedEnvironment):
    """A fork with tools."""

    _inner: Fork

    def __init__(self, inner: Fork, shared: _Shared, *, simulation: bool, told: tuple[ToolResult, ...]) -> None:
        super().__init__(inner, shared, simulation=simulation)
        self._told, self._seen = told, inner.observation

    @property
    def observation(self) -> Observation:
        return self._shown(self._inner.observation)


def result_lines(told: Sequence[ToolResult]) -> list[str]:
    """Return the results of tools as lines of an observation, the newest first, as many as fit; each line of a result after `| `."""
    lines, left = list[str](), SHOWN
    for number, each in enumerate(reversed(told)):
        if len(each.text) > left:
            return [*lines, f"({len(told) - number} earlier results are not shown)"]
        left -= len(each.text)
        lines += [f"Result of {one_line(each.action, LONGEST_CALL)}:", *(f"| {line}" for line in each.text.splitlines() or [""])]
    return lines


def fingerprint_with(fingerprint: str, told: Sequence[ToolResult]) -> str:
    """Return the fingerprint of a state in which tools have returned something. The keyed hash behind its dot stays."""
    if not told:
        return fingerprint
    digest = hashlib.blake2b(without_hash(fingerprint).encode(), digest_size=16)
    for each in told:
        for part in each:
            digest.update(f"\0{len(part)}\0{part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest() + fingerprint.removeprefix(without_hash(fingerprint))


def _fields(action: Action, mask: Callable[[str], str]) -> dict[str, str]:
    """Return the arguments of a call as a person sees them: secrets masked, long ones cut."""
    found = msgspec.json.decode(str(action.args[0]), type=dict[str, Any])
    shown = {name: each if isinstance(each, str) else msgspec.json.encode(each).decode() for name, each in found.items()}
    return {name: cut if len(cut := mask(each)) <= LONGEST_FIELD else f"{cut[:LONGEST_FIELD]}..." for name, each in shown.items()}


def _effect(action: Action, kind: Any) -> SideEffect:
    names = tuple(msgspec.json.decode(str(action.args[0]), type=dict[str, Any]))
    reach: Any = "outside" if kind == "request" else ""
    return SideEffect(kind=kind, method=TOOL, url=f"tool:{action.name}", fields=names, reach=reach, write=True)
