"""The repairs of `exact doctor --fix`: the commands that install a missing part, run one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from pathlib import Path

from exact.cli.health import HealthCheck
from exact.hints import clone

Command = Sequence[str]


def commands(check: HealthCheck) -> list[Command]:
    """Return the commands that install what a check found missing, in their order; none where only the user can."""
    return [] if check.ok else list(_commands(check.name))


def run(command: Command) -> bool:
    """Run a command with its output on stderr. Return whether it succeeded."""
    try:
        return not subprocess.run(list(command), check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
    except OSError:
        return False


def _commands(name: str) -> Iterator[Command]:
    match name:
        case "playwright":
            yield from _apt("libatomic1")
        case "browser":
            yield [sys.executable, "-m", "playwright", "install", "chromium"]
            if root := _as_root():
                yield [*root, sys.executable, "-m", "playwright", "install-deps", "chromium"]
        case "miniwob":
            yield _pip("miniwob")
        case "dot":
            yield from _apt("graphviz")
        case "runsc" if sys.platform == "linux":
            yield ["bash", str(_sandbox_script())]
        case "desktop" if sys.platform == "linux":
            yield _pip("desktop")
            yield from _apt(
                "xvfb", "openbox", "at-spi2-core", "dbus", "mousepad", "galculator", "pcmanfm", "eog", "evince", "tint2", "libatk-adaptor",
                "dconf-gsettings-backend", "python3-gi", "gir1.2-gtk-3.0", "python3-pyte",
            )  # fmt: skip


def _pip(extra: str) -> Command:
    """Return the command that installs what an extra of this package asks for, into this interpreter's environment."""
    wanted = re.compile(rf"""extra\s*==\s*['"]{extra}['"]""")
    found = [each.partition(";")[0].strip() for each in metadata.requires("exact-agent") or () if wanted.search(each)]
    if shutil.which("uv") and not _has_pip():
        return ["uv", "pip", "install", "--python", sys.executable, *found]
    return [sys.executable, "-m", "pip", "install", *found]


def _has_pip() -> bool:
    try:
        return bool(metadata.version("pip"))
    except metadata.PackageNotFoundError:
        return False


def _apt(*packages: str) -> Iterator[Command]:
    if shutil.which("apt-get") and (root := _as_root()) is not None:
        yield [*root, "apt-get", "update", "-qq"]
        yield [*root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]


def _as_root() -> list[str] | None:
    """Return the words before a command that needs root; None where this user cannot become root without a password."""
    if not hasattr(os, "geteuid"):
        return None
    if os.geteuid() == 0:
        return ["env", "DEBIAN_FRONTEND=noninteractive"]
    if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode:
        return None
    return ["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive"]


def _sandbox_script() -> Path:
    """Return the script that fetches runsc: the clone's, or its copy in the wheel."""
    root = clone()
    return root / "shells" / "sandbox.sh" if root else Path(str(resources.files("exact.environments.sandbox"))) / "sandbox.sh"
