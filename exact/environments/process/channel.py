"""Calls and replies over a pair of streams to a process, however it was started. `guest.py` describes the frames."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from exact.environments.process.guest import LIMIT, MAGIC, SIZES, pack_frame
from exact.errors import ActionError, EnvironmentFailure, ExactError, UsageError

_LONGEST = 500
"""Characters of a guest's message that are repeated in ours."""


class RemoteError(Exception):
    """Exception raised in the guest, as the cause of the caller's error."""

    def __init__(self, type: str, message: str, traceback: str) -> None:
        super().__init__(f"\n{traceback}")
        self.type, self.message, self.traceback = type, message, traceback


class _Raised(msgspec.Struct):
    type: str
    kinds: list[str]
    message: str
    traceback: str


class _BinaryPart(msgspec.Struct):
    at: list[str]
    bytes: int


class _Reply(msgspec.Struct):
    id: int
    value: Any = None
    error: _Raised | None = None
    binary: list[_BinaryPart] = []


class Channel:
    """Connection to one guest. Replies come in the order of the calls, because the guest carries them out one at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limit: int = LIMIT) -> None:
        """Start reading replies. `limit`: largest frame in bytes."""
        self.lost = ""
        """Reason why no further reply will come. Empty while the channel works."""
        self._reader, self._writer, self._limit = reader, writer, limit
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[_Reply]] = {}
        self._abandoned: set[int] = set()
        self._reading = asyncio.ensure_future(self._read())

    @property
    def busy(self) -> bool:
        """Return whether a call, cancelled ones included, is unanswered."""
        return bool(self._waiting or self._abandoned)

    async def call(self, op: str, arguments: Mapping[str, object]) -> object:
        """Call an operation of the guest and return its result as plain data.

        A cancelled call continues in the guest, and its reply is dropped. Raises the errors of the guest: ActionError and UsageError as
        themselves, anything else as EnvironmentFailure, each caused by a RemoteError. Raises EnvironmentFailure, with `lost` set, if the
        channel broke, and UsageError for arguments that cannot be sent.
        """
        if self.lost:
            raise EnvironmentFailure(f"{op}: the guest is gone: {self.lost}")
        id = next(self._numbers)
        frame = _frame({"id": id, "op": op, "arguments": dict(arguments)}, self._limit)
        answer = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            try:
                self._writer.writelines(frame)
                await self._writer.drain()
            except ConnectionError:
                self._fail("its pipe is closed")
            reply = await answer
        finally:
            if self._waiting.pop(id, None) is not None:
                self._abandoned.add(id)
        if reply.error is not None:
            raise _error(op, reply.error) from RemoteError(reply.error.type, reply.error.message, reply.error.traceback)
        return reply.value

    async def close(self) -> None:
        """Stop reading; calls in flight fail. The streams stay open. May be called twice."""
        self._fail("its channel was closed")
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            await self._reader.readuntil(MAGIC)  # skips output of an interpreter that starts
            while True:
                self._deliver(await self._reply())
                if await self._reader.readexactly(len(MAGIC)) != MAGIC:
                    raise ValueError("the data received is not a frame")
        except (asyncio.IncompleteReadError, ConnectionError):
            self._fail("it ended")
        except (ValueError, LookupError, TypeError, RecursionError, asyncio.LimitOverrunError, msgspec.MsgspecError) as error:
            self._fail(f"it violates the protocol: {error}")

    async def _reply(self) -> _Reply:
        size, rest = SIZES.unpack(await self._reader.readexactly(SIZES.size))
        if size + rest > self._limit:
            raise ValueError(f"a frame of {size + rest} bytes is more than {self._limit}")
        reply = msgspec.json.decode(await self._reader.readexactly(size), type=_Reply)
        for part in reply.binary:
            rest -= part.bytes
            if rest < 0 or part.bytes < 0 or part.at[:1] != ["value"] or len(part.at) < 2:
                raise ValueError("a binary part does not fit its frame")
            parent: Any = reply.value
            for key in part.at[1:-1]:
                parent = parent[key]
            parent[part.at[-1]] = await self._reader.readexactly(part.bytes)
        if rest:
            raise ValueError(f"{rest} bytes of a frame belong to no part")
        return reply

    def _deliver(self, reply: _Reply) -> None:
        if reply.id in self._abandoned:
            self._abandoned.discard(reply.id)
            return
        answer = self._waiting.pop(reply.id, None)
        if answer is None:
            raise ValueError(f"a reply to call {reply.id}, which was not made")
        if not answer.done():
            answer.set_result(reply)

    def _fail(self, why: str) -> None:
        self.lost = self.lost or why
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(EnvironmentFailure(f"the guest is gone: {self.lost}"))
                answer.exception()  # who waits for it gets it, and nobody has to


def _frame(message: dict[str, Any], limit: int) -> list[bytes]:
    try:
        return pack_frame(message, limit)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{message['op']}: its arguments cannot be sent to the guest: {error}") from error


def _error(op: str, raised: _Raised) -> ExactError:
    if "ActionError" in raised.kinds:
        return ActionError(raised.message)
    text = " ".join(raised.message.split())[:_LONGEST]
    if "UsageError" in raised.kinds:
        return UsageError(text)
    return EnvironmentFailure(text if "EnvironmentFailure" in raised.kinds else f"{op} failed in the guest: {raised.type}: {text}")
