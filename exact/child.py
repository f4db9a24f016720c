"""Child processes."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process, SubprocessStreamProtocol
from contextlib import suppress
from pathlib import Path
from typing import Any


def kill(process: int) -> None:
    """End a process at once. Raises ProcessLookupError where there is none."""
    os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # on Windows every signal ends a process at once


def kill_group(leader: int) -> None:
    """End a process group at once; on systems without groups, its leader. Raises ProcessLookupError where there is none."""
    if hasattr(os, "killpg"):
        os.killpg(leader, signal.SIGKILL)
    else:
        kill(leader)


class Child(Process):
    """A process whose exit is reported whatever happens to its pipes.

    In older Pythons, asyncio reports the exit only once the pipes are at their end too. A full pipe that is never read does not get there,
    nor a pipe that a grandchild still holds.
    """

    _protocol: _Protocol
    _transport: asyncio.SubprocessTransport

    @classmethod
    async def start(cls, program: str | Path, *arguments: str, limit: int = 1 << 16, **options: Any) -> Child:
        """Start a program. Raises OSError.

        limit: bytes read ahead of each pipe. options: as in `asyncio.create_subprocess_exec`.
        """
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(lambda: _Protocol(limit, loop), program, *arguments, **options)
        return cls(transport, protocol, loop)

    async def wait(self) -> int:
        """Wait for the process to exit. Return its exit status."""
        await self._protocol.exited.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal. Raises ProcessLookupError where the process has ended.

        Popen's own way would reap an ended process first, and asyncio, which waits for it, would report the exit status 255.
        """
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end. Raises ProcessLookupError where it has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once. Raises ProcessLookupError where it has ended."""
        self.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    async def end(self) -> None:
        """Kill the process if it runs, and close its pipes; its own children are left. Never raises; may be called twice."""
        with suppress(ProcessLookupError):
            self.kill()
        await self.wait()
        self._transport.close()
        await asyncio.sleep(0)  # transports close their pipes in the loop's next turn


class _Protocol(SubprocessStreamProtocol):
    """Subprocess protocol that reports the exit apart from the pipes."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()
