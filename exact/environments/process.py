"""Processes at the far end of a channel: what one is, and what starts one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol


class GuestProcess(Protocol):
    """A running guest: a plain process, or a sandbox."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    async def why(self) -> str:
        """The last thing it said before it ended, for messages. Called only when it ended or was killed."""
        ...

    def kill(self) -> None:
        """End it at once, with all it started."""
        ...

    async def end(self) -> None:
        """Let it go, and all that it started. Never raises; may be called twice."""
        ...


class Launch(Protocol):
    """Starts guests."""

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> GuestProcess:
        """Run a command with these variables added. Raises EnvironmentError_."""
        ...
