"""Guests of any kind in sandboxes: what a worker starts them with (`exact.environments.process.Launch`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from exact.environments.sandbox.bundle import Guest
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes


class SandboxLaunch:
    """Starts each guest in a sandbox of its own, which `sandboxes` can checkpoint and branch."""

    def __init__(self, sandboxes: Sandboxes, *, reads: Sequence[Path] = (), programs: Sequence[Path] = ()) -> None:
        """`reads` and `programs`: as in Guest; the interpreter's own folder belongs to `reads` where it lies in a home directory."""
        self._sandboxes, self._reads, self._programs = sandboxes, tuple(reads), tuple(programs)

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> Sandbox:
        """Run a command with these variables added. Raises EnvironmentError_."""
        return await self._sandboxes.start(Guest(args=tuple(args), env=dict(env), reads=self._reads, programs=self._programs))
