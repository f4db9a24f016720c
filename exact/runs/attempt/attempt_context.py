"""The parts of one attempt that all of its modules share.

The caps on time of an attempt, by the journal's clock.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

import msgspec

from exact.action import Action
from exact.agents.agent import Agent
from exact.config import Config
from exact.context import Context, Reflection
from exact.environments.base import EnvironmentFactory, Snapshot
from exact.environments.restore.waypoint import Arrival
from exact.errors import ActionError, AnswerError, BudgetExceeded, ModelError
from exact.parts import awaited, calling, expect_all
from exact.reflection.base import Kind, Memory
from exact.reflection.record import marks
from exact.runs.attempt.guide import Guide
from exact.runs.attempt.live import BY_PERSON, LiveEnvironment
from exact.runs.attempt.memory import version_of
from exact.runs.attempt.observations import agent_context, ancestry
from exact.runs.attempt.person import Ask, AttemptPerson, Signal
from exact.runs.journal import events as ev
from exact.runs.journal.commands import Command, Mailbox, mailbox
from exact.runs.journal.file import Journal
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
from exact.runs.way import Way
from exact.search.inspect.health import CHANCE
from exact.search.intervention import obstacle
from exact.search.tree import Node
from exact.task import Task


@dataclass(kw_only=True)
class AttemptContext:
    """One agent at one task, with its journal and the state that the journal folds to."""

    task: Task
    config: Config
    agent: Agent
    environments: EnvironmentFactory
    state: AttemptState
    journal: Journal
    blobs: Blobs
    memory: Memory | None = None
    ask: Ask | None = None
    """A callback that asks a person; None where only viewers answer."""
    way: Way | None = None
    """The way of an earlier run, which is followed as far as possible; None for none."""
    guide: Guide | None = field(init=False)
    person: AttemptPerson = field(init=False)
    live: LiveEnvironment = field(init=False)
    mailbox: Mailbox = field(init=False)
    """Commands from viewers."""
    moves: int = field(init=False, default=0)
    """Number of events that changed the search from outside. While it stays the same, an algorithm that waits is not asked again."""
    changed: Signal = field(init=False, default_factory=Signal)
    """Fires with every event but an ask, and when viewers have sent commands."""
    _recalling: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _examining: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.blobs = self.blobs.with_marks(self.state.search.marked)
        self.mailbox = Mailbox(mailbox(self.journal.path), self.state.people.commanded)
        self.guide = Guide(self, self.way) if self.way is not None else None
        self.person = AttemptPerson(
            self.state, self.config.browser, self.record, self.blobs, ask=self.ask, take_commands=self.take_commands,
            changed=self.changed, now=lambda: self.journal.now, grants=self.guide.grants if self.guide else None,
        )  # fmt: skip
        self.live = LiveEnvironment(
            self.environments, self.task, self.state, self.record, self.blobs, lambda: self.journal.now, self.person
        )

    def record(self, event: ev.AnyEvent) -> None:
        """Write an event to the journal, then apply it to the state. Raises JournalError."""
        tree = self.state.search.tree
        knew = tree.stochastic
        self.state.apply(self.journal.write(event))
        if tree.presumed and tree.stochastic and not knew:
            logging.getLogger("exact").warning("%s: %s", self.task.id, CHANCE)
        self.moves += isinstance(event, ev.MOVES)
        self.changed.fire()

    def record_snapshot(self, snapshot: Snapshot, node: Node, edge: int | None = None, *, since: float) -> None:
        """Journal a snapshot of a node, or of what one of its edges led to.

        `since`: when it was begun, in seconds of the journal's clock.
        """
        seconds, retained = round(self.journal.now - since, 6), getattr(self.environments, "bytes", 0)
        self.record(
            ev.SnapshotTaken(node=node.id, edge=edge, fidelity=snapshot.fidelity, bytes=retained, seconds=seconds, severed=snapshot.severed)
        )

    def record_passed(self, arrival: Arrival, node: Node) -> None:
        """Journal the snapshots that were taken on the way to a node."""
        for passed in arrival.snapshots:
            self.record_snapshot(passed.snapshot, ancestry(node)[passed.waypoint], since=self.journal.now - passed.seconds)

    def take_commands(self) -> None:
        """Journal and apply what viewers have sent since the last call. A command that cannot be done is journalled with the reason."""
        for command in self.mailbox.new():
            action, refused = self._checked(command)
            self.record(
                ev.Commanded(
                    id=command.id, command=command.name, node=command.node, by=command.by, question=command.question, text=command.text,
                    action=action, refused=refused,
                )
            )  # fmt: skip

    def _checked(self, command: Command) -> tuple[Action | None, str]:
        """Return the action that a command names, and why the command cannot be done; empty where it can."""
        match command.name:
            case "expand" | "prune":
                return None, obstacle(self.state.search.algorithm, self.state.search.tree, command.node, prune=command.name == "prune")
            case "allow" | "refuse" | "answer" if command.question not in self.state.people.questions:
                return None, "this question is answered already"
            case "instruct" if not command.text.strip():
                return None, "the instruction is empty"
            case "act" | "take" if (
                self.state.live.decided is not None or self.state.search.tree.root.terminated or not self.state.live.started
            ):
                return None, "an action is being committed, or the episode is over"
            case "act":
                try:
                    return self.live.space.parse(command.text), ""
                except ActionError as error:
                    return None, str(error)
            case "take":
                seen = (self.config.browser.headed or self.config.browser.cdp_url) and self.live.shows
                return (
                    (BY_PERSON, "")
                    if seen
                    else (None, "nobody can see this browser: run with --watch, or in your own browser (browser.cdp_url)")
                )
        return None, ""

    async def context(self, node: Node, kind: Kind, *, selection: int = -1, draw: int = 0, confirms: bool = False) -> Context:
        """Return the context that an agent is shown at a node, with the reflections that memory recalls for it."""
        await self._examine(node, selection)
        seen = self.bare_context(node, selection=selection)
        if self.memory is not None:
            seen = await self._with_reflections(seen, kind)
        return msgspec.structs.replace(seen, draw=draw, confirms=confirms)

    def bare_context(self, node: Node, *, selection: int = -1) -> Context:
        """Return the context of a node without reflections."""
        return agent_context(self.state, self.blobs, self.task, node, self.state.search.moment(selection, node), selection)

    async def _examine(self, node: Node, selection: int) -> None:
        """Let the detectors look at a node's observation before an agent is shown it, once. Raises ModelError, BudgetExceeded.

        A detector that gives no answer is a failure of its model, never an evaluation of the state.
        """
        name, detector = node.observation, self.agent.detector
        if not name:
            return
        async with self._examining:
            if name in self.state.search.marked:
                return
            seen = self.blobs.get_observation(name)
            found = None
            if detector is not None:
                try:
                    with calling("detector.marks", detector):
                        found = await awaited(detector.marks(seen, node=node.id, seed=self.state.search.tree.seed, selection=selection))
                except AnswerError as error:
                    raise ModelError(f"the detector of injections gave no answer that can be read: {error}") from error
            rules = marks(seen)
            if rules or found is not None:
                self.record(ev.Marked(node=node.id, observation=name, rules=rules, model=found))

    async def _with_reflections(self, seen: Context, kind: Kind) -> Context:
        """Add the reflections that memory holds for a node. Memory is asked once for each node and kind."""
        async with self._recalling:
            if (seen.node, kind) not in self.state.search.recalled:
                with calling("memory.retrieve", self.memory):
                    found, version = await asyncio.to_thread(self._recall, seen, kind)
                    found = expect_all(found, Reflection)
                self.record(ev.Recalled(node=seen.node, kind=kind, memory=version, reflections=found))
        return msgspec.structs.replace(seen, reflections=self.state.search.recalled[seen.node, kind].reflections)

    def _recall(self, seen: Context, kind: Kind) -> tuple[tuple[Reflection, ...], str]:
        """Return the reflections that memory holds for a context, and the memory's version right after."""
        assert self.memory is not None
        settings = self.config.reflection
        k = settings.value_k if kind == "value" and settings.value_k is not None else settings.k
        found = self.memory.retrieve(
            seen, kind, k=k, threshold=settings.similarity, exclude_task=self.task.id if settings.exclude_same_task else None,
            confidence=settings.confidence,
        )  # fmt: skip
        return found, version_of(self.memory)


def deadline(attempt: AttemptContext) -> BudgetExceeded | None:
    """Return the error of the scope, task or search, whose time runs out first; None where neither is capped.

    Its `remaining` is the number of seconds left, 0 where none are.
    """
    now, config = attempt.journal.now, attempt.config
    scopes = (("task", config.limits.seconds, now), ("search", config.search.limits.seconds, now - attempt.state.spending.search_began))
    ends = [BudgetExceeded(scope, "seconds", limit, usage=used) for scope, limit, used in scopes if limit is not None]
    return min(ends, key=lambda each: each.remaining, default=None)


def is_past_deadline(attempt: AttemptContext) -> bool:
    """Return True where the time of the task or of the search is used up."""
    end = deadline(attempt)
    return end is not None and end.remaining <= 0
