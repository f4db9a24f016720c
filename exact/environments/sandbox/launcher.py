"""Starts guests of any kind in sandboxes: the `Launcher` (`exact.environments.process.process`) of sandboxed workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from exact.environments.sandbox.bundle import GuestSpec
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes


class SandboxLauncher:
    """Starts each guest in a separate sandbox, which `sandboxes` can checkpoint and fork."""

    def __init__(self, sandboxes: Sandboxes, *, template: GuestSpec) -> None:
        """Create a launcher.

        `template`: specification of all guests except command and variables. Its `reads` include the interpreter's folder if that lies in a
        home directory.
        """
        self._sandboxes, self._template = sandboxes, template

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> Sandbox:
        """Run a command in a sandbox with added environment variables. Raises EnvironmentFailure."""
        return await self._sandboxes.start(msgspec.structs.replace(self._template, args=tuple(args), env={**self._template.env, **env}))
