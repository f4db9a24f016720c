"""Programs that belong to an environment, such as an application with its database or a server of pages.

Root, mounts, variables and user of an application, from a configuration: checked, and with the root unpacked.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

import msgspec

from exact.config import Mount, SandboxConfig
from exact.config.aliases import LONGEST
from exact.environments.sandbox.bundle import MEMORY, PROCESSES, SECOND_ROOT, GuestSpec
from exact.environments.sandbox.root import root_folder
from exact.errors import UsageError
from exact.origins import is_web
from exact.task import Task


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that is started inside the sandbox before the browser, and is thus part of every snapshot."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Program and arguments. It runs as root of a sandbox whose only network is loopback, and its writes stay in memory."""
    ready_url: str
    """Address on loopback. The service is ready when it answers with a status below 500."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LONGEST)] = 60.0
    """Seconds that the start may take."""
    env: dict[str, str] = {}
    """Environment variables."""
    folder: str = "/"
    """Working directory. It may write there, as to everything that it sees: the writes stay in memory."""
    reads: tuple[str, ...] = ()
    """Further files and folders in home directories or under /tmp that it sees, besides those that `command` and `env` name."""
    stateless: bool = False
    """Whether no request changes its later responses. A reset then does not have to roll it back."""

    def __post_init__(self) -> None:
        if not is_web(self.ready_url):
            raise ValueError(f"the service's ready_url {self.ready_url!r} is no web address: write http://127.0.0.1:PORT/")


def located(service: Service, where: Path) -> Service:
    """Return a service with absolute paths without links and `..`, which its relative ones are from the folder `where`.

    The sandbox shows their targets, and not the folders on a way there by `..`. Raises UsageError for one that does not exist.
    """

    def at(said: str) -> str:
        path = Path(said).expanduser()
        if path.is_absolute():  # it may belong to another root than this machine's
            return str(path)
        if not (found := (where / path).resolve()).exists():
            raise UsageError(f"the service `{' '.join(service.command)}` needs {found}, which does not exist: correct its folder or reads")
        return str(found)

    return msgspec.structs.replace(service, folder=at(service.folder), reads=tuple(map(at, service.reads)))


def declared_services(task: Task) -> tuple[Service, ...]:
    """Return the services that a task declares: `services` in its metadata, a JSON list of objects with the fields of Service.

    Raises UsageError if that does not parse.
    """
    text = task.metadata.get("services") or "[]"
    try:
        return msgspec.json.decode(str(text), type=tuple[Service, ...])
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"task {task.id} declares invalid services: {error}: write a JSON list of objects with command and ready_url"
        ) from error


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
