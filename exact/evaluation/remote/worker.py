"""The program of a Ray task: one call of a local engine, whose journal and blobs are sent while it runs.

A process keeps the engine of its last benchmark open, with environments and models, for the next task that Ray gives it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hashlib
import importlib
import itertools
import shutil
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any

import msgspec

from exact.errors import (
    AnswerError,
    EnvironmentFailure,
    ExactError,
    InfrastructureError,
    ModelError,
    UncertainCommit,
    UsageError,
)
from exact.evaluation.engine import Hung
from exact.evaluation.folder import Replay
from exact.evaluation.remote.delivery import DeliveryItem, Outgoing, batches
from exact.evaluation.remote.mailbox import RayRates
from exact.evaluation.remote.parcel import Cargo, Parcel
from exact.machine import ScratchFolder
from exact.models.rate_limiter import use_shared_rates
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Task
from exact.text import inert

LOOK = 0.5
"""Seconds between two looks at an attempt's new files."""
_KINDS: dict[str, type[ExactError]] = {
    kind.__name__: kind for kind in (UsageError, UncertainCommit, InfrastructureError, EnvironmentFailure, ModelError, AnswerError, Hung)
}
"""Errors that keep their type on the way back, by name."""

_LONGEST = 2000
"""Characters of an error's text."""

Send = Callable[[Sequence[DeliveryItem]], Awaitable[object]]
"""Sends items to the process that runs the benchmark, and waits until they are in its mailbox."""
Outcome = tuple[str, bytes, int]
"""`done` and the result as JSON, or the name and the text of an error; and the number of batches that were sent."""


def work(cargo: bytes, parcel: bytes, token: str, mailbox: Any, counter: Any) -> Outcome:
    """Make the call of a parcel in this process. `token`: marks the batches of this attempt. `counter`: counts used rates."""
    use_shared_rates(RayRates(counter))
    numbers = itertools.count()

    async def send(items: Sequence[DeliveryItem]) -> None:
        await mailbox.put.remote(token, next(numbers), items)

    return opened(cargo).call(msgspec.msgpack.decode(parcel, type=Parcel), send)


def opened(cargo: bytes) -> OpenedBench:
    """Return the benchmark of a cargo, which stays open in this process until another one is asked for."""
    global _opened
    digest = hashlib.sha256(cargo).digest()
    if _opened is None or _opened.digest != digest:
        close_opened()
        atexit.unregister(close_opened)
        atexit.register(close_opened)  # Ray ends processes that are idle; a killed one leaves its folder to the next process
        _opened = OpenedBench(msgspec.msgpack.decode(cargo, type=Cargo), digest)
    return _opened


def close_opened() -> None:
    """Close the benchmark that is open in this process, if any."""
    global _opened
    found, _opened = _opened, None
    if found is not None:
        found.close()


class OpenedBench:
    """A benchmark whose folder was unpacked in this process, and its engine."""

    def __init__(self, cargo: Cargo, digest: bytes) -> None:
        """Unpack the cargo. Raises UsageError, EnvironmentFailure."""
        self.digest, self._cargo = digest, cargo
        self._scratch = ScratchFolder("ray")
        self._folder = cargo.unpack(self._scratch.folder("files"))
        self._tasks = {given.id: task for given, task in zip(cargo.plan.tasks, self._folder.plan.tasks, strict=True)}
        self._runner, self._context = asyncio.Runner(), copy_context()
        self._stack: contextlib.AsyncExitStack | None = None
        self._engine: Any = None

    def call(self, parcel: Parcel, send: Send) -> Outcome:
        """Make one call. Errors of this package are part of the outcome; those of a user's code are raised."""
        outcome: Outcome = self._run(self._call(parcel, send))
        return outcome

    def close(self) -> None:
        """Close the engine, with its environments, and remove the folder."""
        self._run(self._close_engine())
        self._runner.close()
        self._scratch.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work, context=self._context)  # one context, in which the engine was opened

    async def _call(self, parcel: Parcel, send: Send) -> Outcome:
        sent = 0

        async def post(items: Sequence[DeliveryItem]) -> None:
            nonlocal sent
            for batch in batches(items):
                await send(batch)
                sent += 1

        await post([DeliveryItem("begun", socket.gethostname())])
        try:
            result = await self._attended(parcel, post)
        except ExactError as error:
            known = (kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
            return next(known, InfrastructureError.__name__), str(error).encode(), sent
        return "done", msgspec.json.encode(result), sent

    async def _attended(self, parcel: Parcel, post: Callable[[Sequence[DeliveryItem]], Awaitable[None]]) -> ResultLine | Replay | bool:
        """Make the call, and post its new files until it has ended."""
        task, run = self._tasks[parcel.task], RunFolder(self._folder.agent_path(parcel.agent))
        self._clear(run, task)
        if parcel.memory:  # it comes anew with each attempt
            await self._close_engine()
        parcel.unpack(run, task)
        outgoing = Outgoing(run, task)
        engine = await self._opened_engine()
        call = asyncio.ensure_future(getattr(engine, parcel.what)(parcel.agent, task))
        try:
            while not (await asyncio.wait({call}, timeout=LOOK))[0]:
                await post(outgoing.new())
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait({call})
            await post(outgoing.rest())
            self._clear(run, task)
        result: ResultLine | Replay | bool = call.result()
        return result

    def _clear(self, run: RunFolder, task: Task) -> None:
        """Remove the files of an earlier attempt: a process has one attempt at a time."""
        shutil.rmtree(run.task_folder(task), ignore_errors=True)
        shutil.rmtree(run.blobs.folder, ignore_errors=True)

    async def _opened_engine(self) -> Any:
        if self._engine is None:
            module, _, function = self._cargo.make.partition(":")
            made = getattr(importlib.import_module(module), function)(self._folder, *self._cargo.arguments)
            async with contextlib.AsyncExitStack() as stack:
                self._engine = await stack.enter_async_context(made)
                self._stack = stack.pop_all()
        return self._engine

    async def _close_engine(self) -> None:
        stack, self._stack, self._engine = self._stack, None, None
        if stack is not None:
            await stack.aclose()


_opened: OpenedBench | None = None
"""The benchmark that is open in this process."""


def raised(kind: str, text: bytes) -> ExactError:
    """Return the error that an outcome names, with its text but without its other attributes.

    An unknown one becomes an InfrastructureError, and so is a JournalError, which is about the journal there.
    """
    type = _KINDS.get(kind, InfrastructureError)
    return type.__new__(type, inert(text.decode(errors="replace"), _LONGEST))
