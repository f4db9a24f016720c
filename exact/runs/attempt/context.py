"""What one attempt is made of: shared by all that takes part in it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from exact.agents.agent import Agent
from exact.config import Config
from exact.context import Context, Reflection
from exact.environments.base import EnvironmentFactory, Snapshot
from exact.reflection.base import Kind, Memory
from exact.runs.attempt.live import Live
from exact.runs.attempt.observations import context
from exact.runs.attempt.signal import Signal
from exact.runs.journal import events as ev
from exact.runs.journal.commands import Mailbox, mailbox
from exact.runs.journal.file import Journal
from exact.runs.journal.state import State
from exact.runs.journal.store import Blobs
from exact.search.intervention import obstacle
from exact.search.tree import Node
from exact.task import Task

_MOVES = ev.Told | ev.Released | ev.Commanded | ev.Decided | ev.Committed


@dataclass(kw_only=True)
class Setting:
    """One agent at one task, with its journal and the state that it folds to."""

    task: Task
    config: Config
    agent: Agent
    environments: EnvironmentFactory
    state: State
    journal: Journal
    blobs: Blobs
    memory: Memory | None = None
    live: Live = field(init=False)
    mailbox: Mailbox = field(init=False)
    """What people who watch say."""
    moves: int = field(init=False, default=0)
    """How often the search was changed from outside: nothing new is to be asked for before it is again."""
    stirred: Signal = field(init=False, default_factory=Signal)
    """Fires with every event."""
    _remembering: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.mailbox = Mailbox(mailbox(self.journal.path), self.state.commanded)
        self.live = Live(self.environments, self.task, self.state, self.record, self.blobs, lambda: self.journal.now)

    def record(self, event: ev.AnyEvent) -> None:
        """Onto the disk, then into the state."""
        self.state.apply(self.journal.write(event))
        self.moves += isinstance(event, _MOVES)
        self.stirred.fire()

    def kept(self, snapshot: Snapshot, node: Node, edge: int | None = None, *, since: float) -> None:
        """Journal a snapshot that was begun at a time of the journal. `edge`: it is of what that edge of the node led to."""
        seconds, held = round(self.journal.now - since, 6), getattr(self.environments, "bytes", 0)
        self.record(ev.Kept(node=node.id, edge=edge, fidelity=snapshot.fidelity, bytes=held, seconds=seconds, severed=snapshot.severed))

    def obey(self) -> None:
        """Journal and take in what people have said since the last look; what cannot be done is journalled with the reason."""
        for command in self.mailbox.new():
            refused = ""
            if command.name in ("expand", "prune"):
                refused = obstacle(self.state.algorithm, self.state.tree, command.node, prune=command.name == "prune")
            self.record(ev.Commanded(id=command.id, command=command.name, node=command.node, by=command.by, refused=refused))

    async def context(self, node: Node, kind: Kind, *, selection: int = -1, draw: int = 0, confirms: bool = False) -> Context:
        """What an agent may look at in a node, with what memory has to say."""
        seen = self.seen(node, selection=selection)
        return msgspec.structs.replace(await self.reminded(seen, kind) if self.memory is not None else seen, draw=draw, confirms=confirms)

    def seen(self, node: Node, *, selection: int = -1) -> Context:
        """What may be looked at in a node, without what memory has to say."""
        return context(self.state, self.blobs, self.task, node, self.state.moment(selection, node))

    async def reminded(self, seen: Context, kind: Kind) -> Context:
        """A context with the reflections that memory holds for its node; looked up once for each node."""
        async with self._remembering:
            if (seen.node, kind) not in self.state.recalled:
                found, version = await asyncio.to_thread(self._recall, seen, kind)
                self.record(ev.Recalled(node=seen.node, kind=kind, memory=version, reflections=found))
        return msgspec.structs.replace(seen, reflections=self.state.recalled[seen.node, kind].reflections)

    def _recall(self, seen: Context, kind: Kind) -> tuple[tuple[Reflection, ...], str]:
        """What memory holds for a context, and the memory's version right after."""
        assert self.memory is not None
        settings = self.config.reflection
        k, threshold = settings.k, settings.similarity
        if kind == "value":
            k = k if settings.value_k is None else settings.value_k
            threshold = threshold if settings.value_similarity is None else settings.value_similarity
        found = self.memory.retrieve(
            seen, kind, k=k, threshold=threshold, exclude_task=self.task.id if settings.exclude_same_task else None,
            confidence=settings.confidence,
        )  # fmt: skip
        return found, self.memory.version
