"""Attempts on Ray: lanes in processes of their own, on this machine or on any other that can read the benchmark's folder.

A lane is an actor that holds a local engine. A lane that hangs is killed with its process and replaced.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

import msgspec

from exact.errors import (
    AnswerError,
    EnvironmentFailure,
    ExactError,
    InfrastructureError,
    JournalError,
    ModelError,
    UncertainCommit,
    UsageError,
)
from exact.evaluation.engine import Hung
from exact.evaluation.folder import BenchFolder, Replay
from exact.runs.journal.file import is_being_written
from exact.runs.journal.store import ResultLine
from exact.task import Task

LOOK, GRACE = 1.0, 20.0
"""Seconds between two checks of whether an attempt's journal grows; seconds that lanes have to close their environments."""
_KINDS: dict[str, type[ExactError]] = {
    kind.__name__: kind
    for kind in (UsageError, UncertainCommit, InfrastructureError, EnvironmentFailure, ModelError, AnswerError, JournalError, Hung)
}
"""Errors that keep their type on the way from a lane, by name."""


class RayEngine:
    """An async context manager that runs attempts in lanes. Raises UsageError where Ray is not installed."""

    def __init__(
        self,
        folder: Path,
        *,
        lanes: int,
        hang: float | None,
        make: str,
        arguments: tuple[object, ...] = (),
        key: Callable[[Task], str] = lambda task: task.id,
    ) -> None:
        """Initialize an engine of `lanes` actors.

        `make` is the `module:function` that makes a lane's local engine from a BenchFolder and `arguments`. `key` is equal for tasks that
        share environments. `hang`: seconds; None for no limit.
        """
        self._folder, self._lanes, self._hang, self._key = folder.resolve(), lanes, hang, key
        self._make, self._arguments = make, arguments
        self._persists: dict[tuple[str, str], bool] = {}
        self._idle: asyncio.Queue[Any] = asyncio.Queue()
        self._all: list[Any] = []
        self._ray = _ray()
        self._mine = False

    async def __aenter__(self) -> RayEngine:
        if not self._ray.is_initialized():
            self._ray.init(include_dashboard=False, log_to_driver=False)
            self._mine = True
        for _ in range(self._lanes):
            self._idle.put_nowait(self._lane())
        return self

    async def __aexit__(self, *exc: object) -> None:
        closing = [asyncio.ensure_future(_awaited(lane.close.remote())) for lane in self._all]
        if closing:
            await asyncio.wait(closing, timeout=GRACE)
        for lane in self._all:
            self._ray.kill(lane)
        if self._mine:
            self._ray.shutdown()

    async def persists(self, agent: str, task: Task) -> bool:
        """Implement Engine. A site that each lane starts for itself counts like one that all lanes share."""
        kind = agent, self._key(task)
        if kind not in self._persists:
            self._persists[kind] = msgspec.json.decode(await self._call("persists", agent, task, None), type=bool)
        return self._persists[kind]

    async def attempt(self, agent: str, task: Task) -> ResultLine:
        """Implement Engine."""
        journal = BenchFolder(self._folder).agent(agent)[0].task_folder(task) / "journal.jsonl"
        return msgspec.json.decode(await self._call("attempt", agent, task, journal), type=ResultLine)

    async def replay(self, agent: str, task: Task) -> Replay:
        """Implement Engine."""
        return msgspec.json.decode(await self._call("replay", agent, task, None), type=Replay)

    async def _call(self, what: str, agent: str, task: Task, journal: Path | None) -> bytes:
        """Call an idle lane. Raises Hung after killing it, InfrastructureError where it died, and the errors raised in it."""
        lane = await self._idle.get()
        answer = asyncio.ensure_future(_awaited(getattr(lane, what).remote(agent, msgspec.json.encode(task))))
        try:
            await self._watched(answer, journal)
            kind, data = answer.result()
        except self._ray.exceptions.RayError as error:
            lane = self._replaced(lane)
            await _journal_released(journal)
            if isinstance(error, self._ray.exceptions.RayTaskError):
                raise error.cause from error  # raised by a user's code, which would raise it again
            raise InfrastructureError(f"a lane of Ray died: {' '.join(str(error).split())[:200]}") from error
        except Hung:
            lane = self._replaced(lane)
            await _journal_released(journal)
            raise
        finally:
            if not answer.done():
                answer.cancel()
            self._idle.put_nowait(lane)
        if kind != "done":
            raise raised(kind, data.decode())
        return bytes(data)

    async def _watched(self, answer: asyncio.Future[Any], journal: Path | None) -> None:
        """Wait for an answer while the attempt's journal grows. Raises Hung where it stops growing."""
        loop = asyncio.get_running_loop()
        grew_at, size = loop.time(), _size(journal)
        while not (await asyncio.wait({answer}, timeout=LOOK))[0]:
            now = _size(journal)
            if now != size:
                grew_at, size = loop.time(), now
            if self._hang is not None and loop.time() - grew_at > self._hang:
                raise Hung(self._hang)

    def _lane(self) -> Any:
        lane = (
            self._ray.remote(Lane)
            .options(num_cpus=0, max_concurrency=2, scheduling_strategy="SPREAD")
            .remote(str(self._folder), self._make, *self._arguments)
        )
        self._all.append(lane)
        return lane

    def _replaced(self, lane: Any) -> Any:
        self._ray.kill(lane)
        self._all.remove(lane)
        return self._lane()


class Lane:
    """The program of an actor: it runs attempts one after the other."""

    def __init__(self, folder: str, make: str, *arguments: object) -> None:
        self._folder, self._make, self._arguments = BenchFolder(Path(folder)), make, arguments
        self._life: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[tuple[Any, Context]] | None = None
        self._end = asyncio.Event()

    async def persists(self, agent: str, task: bytes) -> tuple[str, bytes]:
        """Return `done` and a JSON boolean, or the name and text of the error raised."""
        return await self._outcome("persists", agent, task)

    async def attempt(self, agent: str, task: bytes) -> tuple[str, bytes]:
        """Return `done` and a ResultLine as JSON, or the name and text of the error raised."""
        return await self._outcome("attempt", agent, task)

    async def replay(self, agent: str, task: bytes) -> tuple[str, bytes]:
        """Return `done` and a Replay as JSON, or the name and text of the error raised."""
        return await self._outcome("replay", agent, task)

    async def close(self) -> None:
        """Close the environments."""
        self._end.set()
        if self._life is not None:
            await self._life

    async def _outcome(self, what: str, agent: str, task: bytes) -> tuple[str, bytes]:
        try:
            engine, context = await self._opened()
            method: Callable[[str, Task], Coroutine[Any, Any, ResultLine | Replay | bool]] = getattr(engine, what)
            call = method(agent, msgspec.json.decode(task, type=Task))
            return "done", msgspec.json.encode(await asyncio.get_running_loop().create_task(call, context=context))
        except ExactError as error:
            known = (kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
            return next(known, InfrastructureError.__name__), str(error).encode()

    async def _opened(self) -> tuple[Any, Context]:
        """Return the engine and the context that it was opened in: Ray runs each call of an actor in a context of its own."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._life = asyncio.create_task(self._live(self._ready))
        return await asyncio.shield(self._ready)

    async def _live(self, ready: asyncio.Future[tuple[Any, Context]]) -> None:
        module, _, function = self._make.partition(":")
        try:
            async with getattr(importlib.import_module(module), function)(self._folder, *self._arguments) as engine:
                ready.set_result((engine, copy_context()))
                await self._end.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)


def raised(kind: str, text: str) -> ExactError:
    """Return the error that a lane reported, with its text but without its other attributes."""
    return _KINDS[kind].__new__(_KINDS[kind], text)


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise UsageError("Ray is not installed: run `pip install 'exact-agent[ray]'`, or use the local engine") from error
    return ray


async def _journal_released(journal: Path | None) -> None:
    """Wait until a killed process has released its journal: Ray does not report when the process has ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            while journal is not None and is_being_written(journal):  # noqa: ASYNC110 (no event reports it)
                await asyncio.sleep(0.05)


def _size(journal: Path | None) -> int:
    return journal.stat().st_size if journal is not None and journal.exists() else -1


async def _awaited(reference: Any) -> Any:
    return await reference
