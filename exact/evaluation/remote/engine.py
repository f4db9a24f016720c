"""The engine that runs attempts on Ray: one Ray task a search, on any node that holds the resources that the search needs.

Nothing but this process writes the benchmark's folder. An attempt's journal arrives here while it runs, so that an attempt whose node was
lost continues elsewhere from the last event that arrived.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from exact.errors import InfrastructureError, JournalError
from exact.evaluation.engine import Hung
from exact.evaluation.folder import BenchFolder, Replay
from exact.evaluation.local import set_aside
from exact.evaluation.remote.cluster import ray_module
from exact.evaluation.remote.delivery import CarriedMemory, Incoming, carried_memories, items_of
from exact.evaluation.remote.mailbox import AttemptMailbox, Batch, RateCounter, checked_line, checked_replay, decoded
from exact.evaluation.remote.parcel import Cargo, Parcel, What
from exact.evaluation.remote.preflight import preflight
from exact.evaluation.remote.worker import Outcome, raised, work
from exact.runs.journal.store import ResultLine
from exact.task import Task
from exact.text import inert

LOOK, GRACE = 1.0, 20.0
"""Seconds between two checks of whether an attempt is heard of; seconds in which the last items of an ended attempt must arrive."""
MOST_OUTCOME = 64 << 20
"""Most bytes of a result."""
HEAD = {"node:__internal_head__": 0.001}
"""Resource of the head node only, which holds the mailbox."""
Needs = Callable[[Task], Mapping[str, float]]
"""Returns the share of a node that an attempt at a task takes: amounts of `cpu`, `gpu` and of resources that nodes declare, such as
`browser`."""


@dataclass(eq=False)
class _Delivery:
    """Items received from one attempt."""

    incoming: Incoming | None
    batches: int = 0
    """Number of batches that were written."""
    heard: float | None = None
    """Time of the last batch; None while the attempt waits for a node."""
    node: str = ""
    failed: InfrastructureError | None = None
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, number: object, sent: object) -> None:
        """Write a batch, in another thread."""
        if self.failed is not None:
            return
        try:
            if number != self.batches:
                raise InfrastructureError(f"sent part {str(number)[:20]} of its journal where {self.batches} was expected")
            items = items_of(sent)
            self.node = next((inert(item.name, 100) for item in items if item.kind == "begun"), self.node)
            if self.incoming is not None:
                self.incoming.take(items)
            self.batches += 1
        except JournalError as error:
            self.failed = error
        except InfrastructureError as error:
            self.failed = InfrastructureError(f"a process of Ray{self.where} {error}")

    @property
    def where(self) -> str:
        return f" on {self.node}" if self.node else ""


class RayEngine:
    """An async context manager that runs attempts as tasks of Ray. Raises UsageError if Ray is not installed."""

    def __init__(
        self,
        folder: Path,
        *,
        hang: float | None,
        make: str,
        arguments: tuple[object, ...] = (),
        key: Callable[[Task], str] = lambda task: task.id,
        needs: Needs = lambda task: {},
    ) -> None:
        """Initialize an engine on a benchmark, for a Ray that this process is connected to.

        `make` is the `module:function` that makes a local engine there from a BenchFolder and `arguments`. `key` is equal for tasks that
        share environments. `hang`: seconds of silence; None for no limit.
        """
        self._folder, self._hang, self._key, self._needs = BenchFolder(folder.resolve()), hang, key, needs
        self._make, self._arguments = make, arguments
        self._persists: dict[tuple[str, str], bool] = {}
        self._deliveries: dict[str, _Delivery] = {}
        """By tokens that no other attempt can guess."""
        self._receiving: asyncio.Future[None] | None = None
        self._stack = AsyncExitStack()
        self._memories: Mapping[str, CarriedMemory] = {}
        self._cargo: Any = None
        self._mailbox: Any = None
        self._counter: Any = None
        self._ray = ray_module()

    async def __aenter__(self) -> RayEngine:
        async with AsyncExitStack() as stack:
            self._memories = await stack.enter_async_context(carried_memories(self._folder))
            cargo = Cargo.of(self._folder, make=self._make, arguments=self._arguments, carried=self._memories)
            self._cargo = self._ray.put(msgspec.msgpack.encode(cargo))
            self._mailbox, self._counter = (self._actor(program, stack) for program in (AttemptMailbox, RateCounter))
            self._receiving = asyncio.ensure_future(self._receive())
            self._receiving.add_done_callback(self._wake)
            stack.push_async_callback(_cancelled, self._receiving)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def _actor(self, program: type, stack: AsyncExitStack) -> Any:
        """Start an actor on the head node, which ends with the engine."""
        actor = self._ray.remote(program).options(num_cpus=0, resources=HEAD, max_concurrency=10_000).remote()
        stack.callback(self._ray.kill, actor)
        return actor

    async def faults(self, needs: Collection[Mapping[str, float]]) -> list[str]:
        """Return the faults that would keep attempts off the nodes, a line each. `needs`: resources that attempts take of a node."""
        return await preflight(self._ray, self._cargo, needs)

    async def persists(self, agent: str, task: Task) -> bool:
        """Implement Engine. A site that each process starts for itself counts like one that all share."""
        kind = agent, self._key(task)
        if kind not in self._persists:
            self._persists[kind] = decoded(await self._call("persists", agent, task), bool)
        return self._persists[kind]

    async def attempt(self, agent: str, task: Task) -> ResultLine:
        """Implement Engine."""
        line = checked_line(await self._call("attempt", agent, task), task)
        if (memory := self._memories.get(agent)) is not None:
            await memory.learn(task)
        return line

    async def replay(self, agent: str, task: Task) -> Replay:
        """Implement Engine."""
        return checked_replay(await self._call("replay", agent, task), task)

    async def _call(self, what: What, agent: str, task: Task) -> bytes:
        """Make a call on a node. Raises Hung after ending it, InfrastructureError if it was lost, and the errors raised there."""
        run, config = self._folder.agent(agent)
        if what == "attempt":
            await asyncio.to_thread(set_aside, run, config, task)
        memory = self._memories.get(agent) if what == "attempt" else None
        parcel = await asyncio.to_thread(Parcel.of, what, run, agent, task, memory=await memory.copy(task) if memory else b"")
        delivery = _Delivery(Incoming(run, task) if what == "attempt" else None)
        token = secrets.token_hex(16)
        self._deliveries[token] = delivery
        wanted = dict(self._needs(task))
        options = {"num_cpus": wanted.pop("cpu", 0), "num_gpus": wanted.pop("gpu", 0), "resources": wanted, "max_retries": 0}
        sent = msgspec.msgpack.encode(parcel)
        reference = self._ray.remote(work).options(**options).remote(self._cargo, sent, token, self._mailbox, self._counter)
        answer = asyncio.ensure_future(_awaited(reference))
        try:
            await self._watched(answer, delivery)
            kind, data, batches = _outcome(answer.result(), delivery)
            await self._arrived(delivery, batches)
        except self._ray.exceptions.RayError as error:
            cause = error.cause if isinstance(error, self._ray.exceptions.RayTaskError) else None
            if isinstance(cause, Exception):
                raise cause from error  # raised by a user's code, which would raise it again
            raise InfrastructureError(f"a process of Ray was lost{delivery.where}: {' '.join(str(error).split())[:200]}") from error
        finally:
            if not answer.done():
                self._ray.cancel(reference, force=True)
                await _cancelled(answer)
            del self._deliveries[token]
            if delivery.incoming is not None:
                delivery.incoming.close()
        if kind != "done":
            raise raised(kind, data)
        return data

    async def _watched(self, answer: asyncio.Future[Any], delivery: _Delivery) -> None:
        """Wait for an answer while the attempt is heard of. Raises Hung if it is silent, JournalError if nothing can be written."""
        loop = asyncio.get_running_loop()
        while not (await asyncio.wait({answer}, timeout=LOOK))[0]:
            self._raise_failed(delivery)
            if self._hang is not None and delivery.heard is not None and loop.time() - delivery.heard > self._hang:
                raise Hung(self._hang)

    async def _arrived(self, delivery: _Delivery, batches: int) -> None:
        """Wait until all that was sent is written. Raises InfrastructureError if it does not come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while delivery.batches < batches:
                    self._raise_failed(delivery)
                    delivery.came.clear()
                    await delivery.came.wait()
        self._raise_failed(delivery)
        if delivery.batches != batches:
            raise InfrastructureError(f"of {batches} parts of an attempt {delivery.batches} arrived: it is run again")

    def _wake(self, receiving: asyncio.Future[None]) -> None:
        """Let all who wait for parts of an attempt see that nothing is received any more."""
        for delivery in self._deliveries.values():
            delivery.came.set()

    def _raise_failed(self, delivery: _Delivery) -> None:
        """Raise the failure of an attempt, and JournalError if nothing is received any more."""
        if delivery.failed is not None:
            raise delivery.failed
        if self._receiving is not None and self._receiving.done():
            error = self._receiving.exception()
            raise JournalError(f"what attempts on Ray write is not received any more: {inert(str(error), 200)}: resume") from error

    async def _receive(self) -> None:
        """Write the batches that arrive, those of each attempt in their order."""
        while True:
            came = dict[str, list[Batch]]()
            for batch in await _awaited(self._mailbox.take.remote()):
                if isinstance(batch[0], str) and batch[0] in self._deliveries:  # other attempts have ended, or never were
                    came.setdefault(batch[0], []).append(batch)
            await asyncio.gather(*(self._take(self._deliveries[token], batches) for token, batches in came.items()))

    async def _take(self, delivery: _Delivery, batches: list[Batch]) -> None:
        for _, number, items in batches:
            await asyncio.to_thread(delivery.take, number, items)
        delivery.heard = asyncio.get_running_loop().time()
        delivery.came.set()


def _outcome(answer: object, delivery: _Delivery) -> Outcome:
    """Return the outcome that a process answered. Raises InfrastructureError if it is not an outcome."""
    with suppress(msgspec.ValidationError):
        found: Outcome = msgspec.convert(answer, Outcome, builtin_types=(bytes,))
        if len(found[1]) <= MOST_OUTCOME:
            return found
    raise InfrastructureError(f"a process of Ray{delivery.where} answered something else than the outcome of an attempt")


async def _awaited(reference: Any) -> Any:
    return await reference


async def _cancelled(work: asyncio.Future[Any]) -> None:
    work.cancel()
    await asyncio.wait({work})
