"""What is inside a sandbox: the host's files under a memory overlay, without its homes, or another root; and one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from exact.config import Mount
from exact.environments.sandbox.root import make_mount_point
from exact.errors import EnvironmentFailure

_KEPT = ("PATH", "LANG", "TZ")
"""Variables of ours that a guest sees."""
_MASKED = ("/tmp", "/run", "/dev/shm", "/var/tmp")
_SHARED_MEMORY = 1 << 30
BESIDE = "/mnt"
"""Where a guest that needs the host's files sees another root besides: a folder that every Linux has, and that is nobody's."""
_OWN = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT")
"""Capabilities over its own files and processes, as a container has them. They reach no further than the sandbox's own kernel."""


class GuestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a sandbox begins with, and ends with. It speaks over its stdin and stdout."""

    args: tuple[str, ...]
    env: dict[str, str] = {}
    """Added to an allow-list of ours; everything else of our environment stays outside."""
    reads: tuple[Path, ...] = ()
    """Files and folders that it needs although they lie in a home directory or another masked place: read-only."""
    programs: tuple[Path, ...] = ()
    """Executables, besides the first argument, that an image of it depends on: it is not restored once they were replaced."""
    root: Path | None = None
    """The folder that it sees as `/`, with `reads` at the paths they have here; None: the host's. Only mount points are made in it."""
    beside: Path | None = None
    """A folder that it sees at BESIDE, to start applications in."""
    mounts: tuple[Mount, ...] = ()
    """Below BESIDE where there is one."""
    user: tuple[int, int] = (0, 0)
    """Its numbers inside."""
    capable: bool = False
    """Whether it may change owners and users, and roots, inside."""


def find_interpreter() -> Path:
    """The Python for a guest that needs nothing but the standard library: ours, else the system's. Raises EnvironmentFailure."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if os.access(path, os.X_OK):
            return path
    raise EnvironmentFailure(f"{sys.executable} cannot be executed by this user, and there is no /usr/bin/python3: install python3")


def inherited_variables(ours: dict[str, str]) -> dict[str, str]:
    """The variables that every guest has."""
    kept = {name: ours[name] for name in _KEPT if name in ours}
    return {"PATH": "/usr/bin:/bin", **kept, "HOME": "/tmp"}


def guest_variables(guest: GuestSpec, ours: dict[str, str]) -> list[str]:
    """The guest's variables, `NAME=value`."""
    return [f"{name}={value}" for name, value in {**inherited_variables(ours), **guest.env}.items()]


def home_folders() -> tuple[str, ...]:
    """The directories in which people keep what is nobody's business."""
    places = dict.fromkeys((Path("/home"), Path("/root"), Path.home()))
    found = [str(place.resolve()) for place in places if place.is_dir() and place.resolve() != Path("/")]
    return tuple(dict.fromkeys(each for each in found if not _inside(each, _MASKED)))


def oci_configuration(guest: GuestSpec, ours: dict[str, str]) -> dict[str, Any]:
    """The OCI configuration, `config.json`. `ours` is the environment of this process."""
    uid, gid = guest.user
    names = [f"CAP_{name}" for name in _OWN] if guest.capable else []
    return {
        "ociVersion": "1.0.2",
        "hostname": "environment",
        "root": {"path": str(guest.root or "/"), "readonly": False},
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": gid},
            "cwd": "/",
            "noNewPrivileges": True,
            "args": list(guest.args),
            "env": guest_variables(guest, ours),
            "capabilities": dict.fromkeys(("bounding", "effective", "inheritable", "permitted"), names) if names else {},
        },
        "mounts": [*_kernels(""), *_files(guest), *_applications(guest)],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }


def make_mount_points(guest: GuestSpec) -> None:
    """Make those that are missing in its root. The sandbox would make them itself, on this machine. Raises EnvironmentFailure."""
    root = guest.root or guest.beside
    if root is not None:
        for bound in [*(_files(guest) if guest.root else ()), *_mounted(guest, "")]:
            make_mount_point(root, bound["destination"], Path(bound["source"]))


def _kernels(root: str) -> list[dict[str, Any]]:
    """What the sandbox's kernel gives."""
    return [
        _mount(f"{root}/proc", "proc"),
        _mount(f"{root}/sys", "sysfs"),
        _mount(f"{root}/dev", "tmpfs"),
        _mount(f"{root}/dev/shm", "tmpfs", "mode=1777", f"size={_SHARED_MEMORY}"),
    ]


def _files(guest: GuestSpec) -> list[dict[str, Any]]:
    """What is hidden of the host's files, and what is shown although it would be hidden."""
    reads = _outermost({str(path.resolve()) for path in guest.reads if os.access(path, os.R_OK)})
    if guest.root is not None:
        return [_bind(path) for path in reads]
    masked = home_folders()
    return [
        _mount("/run", "tmpfs"),
        *(_mount(place, "tmpfs", "mode=1777") for place in ("/tmp", "/var/tmp")),
        *(_mount(place, "tmpfs", "mode=0755") for place in masked),
        *(_bind(path) for path in reads if _inside(path, (*_MASKED, *masked))),
    ]


def _applications(guest: GuestSpec) -> list[dict[str, Any]]:
    """Another root, and what is mounted."""
    if not guest.beside:
        return _mounted(guest, "")
    return [_bind(str(guest.beside), BESIDE, writable=True), *_kernels(BESIDE), *_mounted(guest, BESIDE)]


def _mounted(guest: GuestSpec, root: str) -> list[dict[str, Any]]:
    return [_bind(str(Path(each.source).resolve()), root + each.target, writable=each.writable) for each in guest.mounts]


def _mount(where: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": where, "type": kind, "source": kind, "options": list(options)}


def _bind(path: str, where: str = "", *, writable: bool = False) -> dict[str, Any]:
    return {"destination": where or path, "type": "bind", "source": path, "options": ["rbind", "rw" if writable else "ro"]}


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Without those that lie in another one."""
    found: list[str] = []
    for path in sorted(paths):
        if not _inside(path, found):
            found.append(path)
    return found
