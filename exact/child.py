"""Processes that we start and end."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process, SubprocessStreamProtocol
from pathlib import Path
from typing import Any


class Child(Process):
    """A process whose end is heard of whatever becomes of its pipes.

    That of asyncio alone is heard of, in older Pythons, when its pipes are at their end too. One that is full and that nobody reads never
    is, nor one that is held by what the process started and left behind.
    """

    _protocol: _Protocol
    _transport: asyncio.SubprocessTransport

    @classmethod
    async def start(cls, program: str | Path, *arguments: str, limit: int = 1 << 16, **options: Any) -> Child:
        """`limit`: bytes read ahead of each pipe; with `options`, as in `asyncio.create_subprocess_exec`. Raises OSError."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(lambda: _Protocol(limit, loop), program, *arguments, **options)
        return cls(transport, protocol, loop)

    async def wait(self) -> int:
        """Until it has ended; its exit status."""
        await self._protocol.exited.wait()
        assert self.returncode is not None
        return self.returncode

    async def end(self) -> None:
        """Kill it if it runs, and let go of its pipes. Not of what it started. Never raises; may be called twice."""
        self._transport.close()
        await self.wait()
        await asyncio.sleep(0)  # transports close their pipes in the loop's next turn


class _Protocol(SubprocessStreamProtocol):
    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()
