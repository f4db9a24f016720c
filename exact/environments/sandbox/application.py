"""Root, mounts, variables and user of an application, from a configuration: checked, and with the root unpacked."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from exact.config import Mount, SandboxConfig
from exact.environments.sandbox.bundle import MEMORY, PROCESSES, SECOND_ROOT, GuestSpec
from exact.environments.sandbox.root import root_folder
from exact.errors import UsageError

_USER = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


class SandboxApplication(NamedTuple):
    """Root, mounts, variables and user of an application in a sandbox. Made by `from_config`."""

    root: Path | None
    mounts: tuple[Mount, ...]
    env: dict[str, str]
    user: tuple[int, int]
    processes: int = PROCESSES
    memory: int = MEMORY

    @classmethod
    def from_config(cls, config: SandboxConfig) -> SandboxApplication:
        """Check a configuration and unpack its root.

        Raises UsageError if a key is invalid here, and EnvironmentFailure if the root cannot be unpacked.
        """
        for mount in config.mounts:
            if not PurePosixPath(mount.target).is_absolute() or ".." in PurePosixPath(mount.target).parts or mount.target == "/":
                raise UsageError(f"sandbox.mounts: target {mount.target!r} is not an absolute path below /")
            if not Path(mount.source).exists():
                raise UsageError(f"sandbox.mounts: there is no {mount.source} on this machine")
            if not config.root and not Path(mount.target).exists():
                raise UsageError(f"sandbox.mounts: there is no {mount.target} to mount at: choose a path that exists, or give a root")
        return cls(
            root_folder(Path(config.root)) if config.root else None,
            config.mounts,
            config.env,
            _numbers(config.user),
            config.processes,
            config.memory_bytes,
        )

    def guest(self, *, reads: tuple[Path, ...], programs: tuple[Path, ...], writable: tuple[Path, ...] = ()) -> GuestSpec:
        """Return the specification of a guest that is the application itself, without its command."""
        return GuestSpec(
            args=(), env=self.env, reads=reads, writable=writable, programs=programs,
            root=self.root, mounts=self.mounts, user=self.user, capable=self.root is not None,
            processes=self.processes, memory=self.memory,
        )  # fmt: skip

    def service(self) -> dict[str, object]:
        """Return the settings with which `init_process.py` starts a service beside the browser: root and user."""
        return {"root": SECOND_ROOT if self.root else "", "user": list(self.user)}


def _numbers(user: str) -> tuple[int, int]:
    if not user:
        return 0, 0
    found = _USER.fullmatch(user)
    if not found:
        raise UsageError(f"sandbox.user {user!r} is not a user: write uid or uid:gid, as numbers")
    uid = int(found[1])
    return uid, int(found[2]) if found[2] else uid
