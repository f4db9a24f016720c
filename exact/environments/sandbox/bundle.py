"""Contents of a sandbox: one process, and the host's files without home directories, or another root, under a memory overlay."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from exact.config import Mount, SandboxConfig
from exact.environments.sandbox.host import home_folders, made_files, masked_folders, other_folders, private_files
from exact.environments.sandbox.root import make_mount_point
from exact.errors import EnvironmentFailure
from exact.version import PACKAGE

_INHERITED = ("PATH", "LANG", "TZ")
"""Our environment variables that a guest inherits."""
_CACHES = ("/var/cache/fontconfig", "/var/lib/xkb")
"""Paths that browsers and desktops read in `/var`."""
_EMPTY = PACKAGE / "py.typed"
"""An empty file, which stands for a private one."""
_SHARED_MEMORY = 1 << 30
PROCESSES, MEMORY = SandboxConfig().processes, SandboxConfig().memory_bytes
SECOND_ROOT = "/mnt"
"""Path at which a guest that needs the host's files sees another root too: a folder that every Linux has and that is unused."""
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT")
"""Linux capabilities over its own files and processes, as containers have them. They are limited to the sandbox's own kernel."""


class GuestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """First process of a sandbox, which ends with it, and the files that it sees. It communicates over stdin and stdout."""

    args: tuple[str, ...]
    """Command line."""
    env: dict[str, str] = {}
    """Environment variables, added to a fixed list of ours; other variables of ours are not passed on."""
    reads: tuple[Path, ...] = ()
    """Files and folders in home directories or other masked folders that it needs. They are read-only."""
    writable: tuple[Path, ...] = ()
    """Like `reads`, for files and folders that it may change. Its writes stay in the sandbox's memory."""
    programs: tuple[Path, ...] = ()
    """Executables, besides the first argument, that its images depend on: an image is not restored once one was replaced."""
    root: Path | None = None
    """Folder that it sees as `/`, with `reads` at their paths on the host. None: the host's `/`. Only mount points are created in it."""
    beside: Path | None = None
    """Folder that it sees at SECOND_ROOT, as the root of applications."""
    mounts: tuple[Mount, ...] = ()
    """Mounts, below SECOND_ROOT if `beside` is set."""
    user: tuple[int, int] = (0, 0)
    """User and group id inside the sandbox."""
    capable: bool = False
    """Whether it may change owners, users and root inside the sandbox."""
    processes: int = PROCESSES
    """Maximum number of processes and threads at a time. A further one is not started."""
    memory: int = MEMORY
    """Maximum bytes of memory, files that it wrote included. A sandbox that takes more is killed."""


def find_interpreter() -> Path:
    """Return the Python for a guest that needs only the standard library: ours, else the system's. Raises EnvironmentFailure."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if os.access(path, os.X_OK):
            return path
    raise EnvironmentFailure(f"{sys.executable} cannot be executed by this user, and there is no /usr/bin/python3: install python3")


def interpreter_files(python: Path) -> tuple[Path, ...]:
    """Return what an interpreter needs for the standard library alone, and no more of its prefix, which may be a home or a project."""
    prefixes = dict.fromkeys((python.parents[1], Path(sys.base_prefix).resolve()))
    found = (prefix / name for prefix in prefixes for name in ("pyvenv.cfg", "lib", "lib64"))
    return (python, *(each for each in found if each.exists()))


def inherited_variables(ours: dict[str, str]) -> dict[str, str]:
    """Return the environment variables that every guest has. `ours`: the environment of this process."""
    found = {name: ours[name] for name in _INHERITED if name in ours}
    return {"PATH": "/usr/bin:/bin", **found, "HOME": "/tmp"}


def guest_variables(guest: GuestSpec, ours: dict[str, str]) -> list[str]:
    """Return the guest's environment variables as `NAME=value`."""
    return [f"{name}={value}" for name, value in {**inherited_variables(ours), **guest.env}.items()]


def is_masked(path: Path) -> bool:
    """Return whether a path lies in a masked folder, or is one."""
    return _inside(str(path), masked_folders())


def is_hidden(path: Path) -> bool:
    """Return whether guests see a path empty, or another file in its place, unless their specification names it."""
    return is_masked(path) or _inside(str(path), (*private_files(), *made_files()))


def holds_home(folder: Path) -> bool:
    """Return whether a folder is or holds a home directory or a folder of temporary files."""
    folder = folder.resolve()
    return folder.parent == Path("/home") or any(Path(masked).is_relative_to(folder) for masked in masked_folders())


def oci_configuration(guest: GuestSpec, ours: dict[str, str]) -> dict[str, Any]:
    """Return the OCI configuration, `config.json`. `ours`: the environment of this process."""
    uid, gid = guest.user
    names = [f"CAP_{name}" for name in _CAPABILITIES] if guest.capable else []
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
            "rlimits": [{"type": "RLIMIT_NPROC", "soft": guest.processes, "hard": guest.processes}],
            "capabilities": dict.fromkeys(("bounding", "effective", "inheritable", "permitted"), names) if names else {},
        },
        "mounts": _distinct([*_kernel_mounts(""), *_file_mounts(guest), *_application_mounts(guest)]),
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }


def _distinct(mounts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last mount of each destination: the sandbox does not promise which of two it shows."""
    return list({each["destination"]: each for each in mounts}.values())


def make_mount_points(guest: GuestSpec) -> None:
    """Create the mount points that are missing in a guest's root, as the sandbox would. Raises EnvironmentFailure."""
    root = guest.root or guest.beside
    if root is not None:
        for bound in [*(_file_mounts(guest) if guest.root else ()), *_shown_beside(guest), *_declared_mounts(guest, "")]:
            make_mount_point(root, bound["destination"], Path(bound["source"]))


def _kernel_mounts(root: str) -> list[dict[str, Any]]:
    """Return the mounts of the sandbox's kernel."""
    return [
        _mount(f"{root}/proc", "proc"),
        _mount(f"{root}/sys", "sysfs"),
        _mount(f"{root}/dev", "tmpfs"),
        _mount(f"{root}/dev/shm", "tmpfs", "mode=1777", f"size={_SHARED_MEMORY}"),
    ]


def _file_mounts(guest: GuestSpec) -> list[dict[str, Any]]:
    """Return the mounts that hide host files, and those that show `reads` and `writable` in hidden folders.

    A private file in a folder of `reads` stays hidden: such a folder can be `/usr`, in which an interpreter is.
    """
    if guest.root is not None:
        return _shown(guest)
    reads, writable = list(map(str, guest.reads)), list(map(str, guest.writable))
    replaced = dict.fromkeys(private_files(), "") | made_files()
    private = {place: source for place, source in replaced.items() if place not in reads and not _inside(place, writable)}
    hidden = [place for place in (*home_folders(), *other_folders()) if not (guest.beside and place == SECOND_ROOT)]
    return [
        _mount("/run", "tmpfs"),
        *(_mount(place, "tmpfs", "mode=1777") for place in ("/tmp", "/var/tmp", "/run/lock")),
        *(_mount(place, "tmpfs", "mode=1777" if place == "/home" else "mode=0755") for place in hidden),  # any user may have a home there
        *(_bind(place) for place in _CACHES if Path(place).is_dir()),
        *(_bind(source, place) if source else _hidden(place) for place, source in private.items()),
        *(each for each in _shown(guest) if is_masked(Path(each["destination"])) or _inside(each["destination"], private)),
    ]


def _shown(guest: GuestSpec) -> list[dict[str, Any]]:
    """Return the mounts of `reads` and `writable`, outer folders first."""
    writable = _outermost(_readable(guest.writable))
    reads = [path for path in _outermost(_readable(guest.reads)) if not _inside(path, writable)]
    return [_bind(path, writable=path in writable) for path in sorted((*reads, *writable))]


def _readable(paths: Iterable[Path]) -> set[str]:
    return {str(path.resolve()) for path in paths if os.access(path, os.R_OK)}


def _application_mounts(guest: GuestSpec) -> list[dict[str, Any]]:
    """Return the mounts of another root and those that the configuration declares."""
    if not guest.beside:
        return _declared_mounts(guest, "")
    shown = [{**each, "destination": SECOND_ROOT + each["destination"]} for each in _shown_beside(guest)]
    return [
        _bind(str(guest.beside), SECOND_ROOT, writable=True),
        *_kernel_mounts(SECOND_ROOT),
        *shown,
        *_declared_mounts(guest, SECOND_ROOT),
    ]


def _shown_beside(guest: GuestSpec) -> list[dict[str, Any]]:
    """Return the mounts of `writable` in the root beside."""
    return _shown(GuestSpec(args=(), writable=guest.writable)) if guest.beside else []


def _declared_mounts(guest: GuestSpec, root: str) -> list[dict[str, Any]]:
    return [_bind(str(Path(each.source).resolve()), root + each.target, writable=each.writable) for each in guest.mounts]


def _hidden(place: str) -> dict[str, Any]:
    """Return the mount that shows a file or a folder empty."""
    return _mount(place, "tmpfs", "mode=0700") if Path(place).is_dir() else _bind(str(_EMPTY), place)


def _mount(where: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": where, "type": kind, "source": kind, "options": list(options)}


def _bind(path: str, where: str = "", *, writable: bool = False) -> dict[str, Any]:
    return {"destination": where or path, "type": "bind", "source": path, "options": ["rbind", "rw" if writable else "ro"]}


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that do not lie in another one of them."""
    found: list[str] = []
    for path in sorted(paths):
        if not _inside(path, found):
            found.append(path)
    return found
