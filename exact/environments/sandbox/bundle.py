"""What is inside a sandbox: the host's files under a memory overlay, without its homes, and one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from exact.errors import EnvironmentError_

_KEPT = ("PATH", "LANG", "TZ")
"""Variables of ours that a guest sees."""
_MASKED = ("/tmp", "/run", "/dev/shm", "/var/tmp")
_SHARED_MEMORY = 1 << 30


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a sandbox begins with, and ends with. It speaks over its stdin and stdout."""

    args: tuple[str, ...]
    env: dict[str, str] = {}
    """Added to an allow-list of ours; everything else of our environment stays outside."""
    reads: tuple[Path, ...] = ()
    """Files and folders that it needs although they lie in a home directory or another masked place: read-only."""
    programs: tuple[Path, ...] = ()
    """Executables, besides the first argument, that an image of it depends on: it is not restored once they were replaced."""


def interpreter() -> Path:
    """The Python for a guest that needs nothing but the standard library: ours, else the system's. Raises EnvironmentError_."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if os.access(path, os.X_OK):
            return path
    raise EnvironmentError_(f"{sys.executable} cannot be executed by this user, and there is no /usr/bin/python3: install python3")


def inherited(ours: dict[str, str]) -> dict[str, str]:
    """The variables that every guest has."""
    kept = {name: ours[name] for name in _KEPT if name in ours}
    return {"PATH": "/usr/bin:/bin", **kept, "HOME": "/tmp"}


def environment(guest: Guest, ours: dict[str, str]) -> list[str]:
    """The guest's variables, `NAME=value`."""
    return [f"{name}={value}" for name, value in {**inherited(ours), **guest.env}.items()]


def homes() -> tuple[str, ...]:
    """The directories in which people keep what is nobody's business."""
    places = dict.fromkeys((Path("/home"), Path("/root"), Path.home()))
    found = [str(place.resolve()) for place in places if place.is_dir() and place.resolve() != Path("/")]
    return tuple(dict.fromkeys(each for each in found if not _inside(each, _MASKED)))


def configuration(guest: Guest, ours: dict[str, str]) -> dict[str, Any]:
    """The OCI configuration, `config.json`. `ours` is the environment of this process."""
    masked = homes()
    reads = {str(path.resolve()) for path in guest.reads if os.access(path, os.R_OK)}
    return {
        "ociVersion": "1.0.2",
        "hostname": "world",
        "root": {"path": "/", "readonly": False},
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "cwd": "/",
            "noNewPrivileges": True,
            "args": list(guest.args),
            "env": environment(guest, ours),
            "capabilities": {},
        },
        "mounts": [
            _mount("/proc", "proc"),
            _mount("/sys", "sysfs"),
            _mount("/dev", "tmpfs"),
            _mount("/dev/shm", "tmpfs", "mode=1777", f"size={_SHARED_MEMORY}"),
            _mount("/run", "tmpfs"),
            *(_mount(place, "tmpfs", "mode=1777") for place in ("/tmp", "/var/tmp")),
            *(_mount(place, "tmpfs", "mode=0755") for place in masked),
            *(_bind(path) for path in _outermost(reads) if _inside(path, (*_MASKED, *masked))),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }


def _mount(where: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": where, "type": kind, "source": kind, "options": list(options)}


def _bind(path: str) -> dict[str, Any]:
    return {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]}


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Without those that lie in another one."""
    found: list[str] = []
    for path in sorted(paths):
        if not _inside(path, found):
            found.append(path)
    return found
