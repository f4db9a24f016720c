"""A stand-in for Ray in this process, whose nodes run attempts truly until they are told to lie."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from exact.evaluation.remote.delivery import DeliveryItem
from exact.evaluation.remote.parcel import Cargo, Parcel
from exact.evaluation.remote.worker import OpenedBench, Outcome

Put = Callable[[Any, Any, Any], Awaitable[object]]
Lie = Callable[["LyingNode"], Coroutine[Any, Any, object]]
"""Says what a node does in place of an attempt. What it returns stands for the outcome."""


class LyingNode:
    """What a node has of one attempt."""

    def __init__(self, cargo: bytes, parcel: bytes, token: Any, put: Put, others: list[Any]) -> None:
        self.cargo, self.parcel, self.token, self.put, self.others = cargo, msgspec.msgpack.decode(parcel, type=Parcel), token, put, others
        """`others`: tokens of the other attempts."""

    async def true(self, change: Callable[[int, Sequence[DeliveryItem]], Awaitable[None]] | None = None) -> Outcome:
        """Run the attempt. `change`: sends a batch in place of this."""
        loop = asyncio.get_running_loop()
        sent = 0

        async def put(number: int, items: Sequence[DeliveryItem]) -> None:
            await (self.put(self.token, number, items) if change is None else change(number, items))

        async def send(items: Sequence[DeliveryItem]) -> None:
            nonlocal sent
            number, sent = sent, sent + 1
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(put(number, items), loop))

        def call() -> Outcome:
            bench = OpenedBench(msgspec.msgpack.decode(self.cargo, type=Cargo), b"")
            try:
                return bench.call(self.parcel, send)
            finally:
                bench.close()

        return await asyncio.to_thread(call)


class LyingRay:
    """What an engine uses of Ray. The first attempts at some tasks are lies."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        pass

    def __init__(self, lies: dict[str, Lie]) -> None:
        """`lies`: those that are left, by task."""
        self.exceptions = SimpleNamespace(RayError=self.RayError, RayTaskError=self.RayTaskError)
        self.lies = lies
        self._tokens = list[Any]()

    def put(self, data: bytes) -> bytes:
        return data

    def kill(self, actor: object) -> None:
        pass

    def cancel(self, reference: asyncio.Future[Any], *, force: bool) -> None:
        reference.cancel()

    def remote(self, program: Any) -> Any:
        made = (lambda: _Actor(program())) if isinstance(program, type) else self._work
        return SimpleNamespace(options=lambda **given: SimpleNamespace(remote=made))

    def _work(self, cargo: bytes, parcel: bytes, token: Any, mailbox: Any, counter: Any) -> asyncio.Future[Any]:
        node = LyingNode(cargo, parcel, token, mailbox.put.remote, [each for each in self._tokens if each != token])
        self._tokens.append(token)
        lie = self.lies.pop(node.parcel.task, None) if node.parcel.what == "attempt" else None
        return asyncio.ensure_future(node.true() if lie is None else lie(node))


class _Actor:
    def __init__(self, program: Any) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._program, name)
        return SimpleNamespace(remote=lambda *given: asyncio.ensure_future(method(*given)))
