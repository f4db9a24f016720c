"""Guests of any kind in sandboxes: what a worker starts them with (`exact.environments.process.process.Launch`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from exact.environments.sandbox.bundle import GuestSpec
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes


class SandboxLauncher:
    """Starts each guest in a sandbox of its own, which `sandboxes` can checkpoint and branch."""

    def __init__(self, sandboxes: Sandboxes, *, like: GuestSpec) -> None:
        """`like`: what guests are besides their command and variables. Its `reads` have the interpreter's own folder where that lies
        in a home directory."""
        self._sandboxes, self._like = sandboxes, like

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> Sandbox:
        """Run a command with these variables added. Raises EnvironmentFailure."""
        return await self._sandboxes.start(msgspec.structs.replace(self._like, args=tuple(args), env={**self._like.env, **env}))
