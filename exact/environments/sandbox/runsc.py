"""Finds a gVisor that can checkpoint, and builds its command lines for this user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from exact.errors import EnvironmentFailure
from exact.version import FIX, set_up

OLDEST = 20240729
"""Date of the first build that can restore a checkpoint while the original sandbox runs."""


def install_hint() -> str:
    """Return the way to a runsc."""
    return f"{set_up('--sandbox', FIX)}, or name a newer one in EXACT_RUNSC"


_CAP_SYS_ADMIN = 21
_FLAGS = ("--platform", "systrap", "--network", "none", "--ignore-cgroups", "--overlay2=all:memory")
"""Flags: loopback is the only network, and every write stays in the sandbox's memory and thus in its image."""


@dataclass(frozen=True)
class Runsc:
    """A usable `runsc`."""

    path: Path
    version: str
    """Version as runsc prints it, such as `0.0~20240729.0`."""
    privileged: bool
    """Whether it runs as a root that may mount. Otherwise it runs in a user namespace in which this user is root."""

    def command(self, state: Path, *arguments: str) -> list[str]:
        """Return the command line of one call. `state`: folder of the sandbox's state. The process dies with the thread that starts it."""
        namespace = [] if self.privileged else ["unshare", "-Ur"]
        return [
            *namespace,
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *(str(self.path), "--root", str(state), "--log", str(state / "log")),
            *_FLAGS,
            *arguments,
        ]


def find_runsc() -> Runsc:
    """Return the first runsc that is new enough: $EXACT_RUNSC alone if it is set, else the user's cache, else PATH.

    Raises EnvironmentFailure, which names the missing part and the way to get it.
    """
    if sys.platform != "linux":
        raise EnvironmentFailure("environments fork on Linux only: return by reset and replay here")
    for tool in ("unshare", "setpriv"):
        if not shutil.which(tool):
            raise EnvironmentFailure(f"{tool} is not on PATH: install util-linux")
    refused = ""
    for path in _candidates():
        version = _version(path)
        if _day(version) >= OLDEST:
            return Runsc(path, version, privileged=_may_mount())
        refused = (
            refused
            or f"{path} is runsc {version or '(none that runs)'}, and {OLDEST} or newer is needed to fork environments: {install_hint()}"
        )
    raise EnvironmentFailure(refused or f"no runsc found: {install_hint()}")


def cache() -> Path:
    """Return the path at which `shells/sandbox.sh` installs runsc."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exact" / "runsc"


def _may_mount(status: Path = Path("/proc/self/status")) -> bool:
    """Return whether this process has CAP_SYS_ADMIN. Root in most containers does not."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status.read_text(), re.MULTILINE)
    return os.geteuid() == 0 and found is not None and bool(int(found[1], 16) >> _CAP_SYS_ADMIN & 1)


def _candidates() -> list[Path]:
    if named := os.environ.get("EXACT_RUNSC"):
        return [Path(named)]
    on_path = shutil.which("runsc")
    return [path for path in (cache(), Path(on_path) if on_path else None) if path and path.exists()]


def _version(path: Path) -> str:
    """Return the version of a runsc. Empty if it does not run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(iter(done.stdout.splitlines()), "").removeprefix("runsc version ").strip()


def _day(version: str) -> int:
    """Return the date in a version (`release-20240729.0`, `0.0~20240729.0`) as a number; 0 if there is none."""
    found = re.search(r"20\d{6}", version)
    return int(found.group()) if found else 0
