"""The checks of `exact doctor`. They change nothing and use no network."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import msgspec

from exact.cli.signals import run_async
from exact.errors import ExactError
from exact.version import FIX, PACKAGE, __version__, set_up, system_lacks, with_apt

_GIB = 2**30
_NEEDED = {"memory": 1 * _GIB, "disk": _GIB // 2, "temporary folder": _GIB // 2, "shared memory": _GIB // 16}
"""Bytes that a search with one browser and its run folder use."""


class HealthCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    ok: bool
    found: str
    """Version, path or amount that was found, or the reason that the part is missing."""
    fix: str = ""
    """Instruction to install the part."""
    required: bool = True
    """Whether exact cannot work without the part."""


def checks() -> list[HealthCheck]:
    """Run all checks, in the order in which a new user would fix them."""
    return [
        _python(),
        HealthCheck(name="exact", ok=True, found=f"{__version__} in {PACKAGE}"),
        _system(),
        _driver(),
        _browser(),
        _package("miniwob", "the MiniWoB++ tasks", extra="'exact-agent[miniwob]'", required=False),
        _package("openai", "language models"),
        _key("OPENAI_API_KEY"),
        _program("dot", "draws static trees", with_apt("graphviz", otherwise="install Graphviz")),
        _sandbox(),
        _desktop(),
        _browsergym(),
        *_resources(),
        _run_directory(Path("runs")),
    ]


def _python() -> HealthCheck:
    ok = sys.version_info >= (3, 11)
    return HealthCheck(name="python", ok=ok, found=f"{platform.python_version()} in {sys.prefix}", fix="install Python 3.11 or newer")


def _system() -> HealthCheck:
    """Report the features that a system other than Linux lacks."""
    found = f"{platform.system()} {platform.release()}"
    if sys.platform == "linux":
        return HealthCheck(name="system", ok=True, found=found, required=False)
    fix = "use Linux, or WSL 2 on Windows" if sys.platform == "win32" else "use Linux"
    return HealthCheck(name="system", ok=False, found=f"{found}: {system_lacks()}", fix=fix, required=False)


def _package(name: str, purpose: str, *, extra: str = "", required: bool = True) -> HealthCheck:
    try:
        return HealthCheck(name=name, ok=True, found=metadata.version(name), required=required)
    except metadata.PackageNotFoundError:
        return HealthCheck(name=name, ok=False, found=f"not installed ({purpose})", fix=f"pip install {extra or name}", required=required)


def _driver() -> HealthCheck:
    check = _package("playwright", "drives the browser")
    if not check.ok:
        return check
    from exact.environments.browser.launch.driver import driver_fault, way_out

    fault = driver_fault()
    return msgspec.structs.replace(
        check, ok=not fault, found=f"its driver does not start: {fault}" if fault else check.found, fix=way_out()
    )


def _browser() -> HealthCheck:
    from exact.environments.browser.launch.find import browser_version, find_browser, way_out

    try:
        path = find_browser()
        return HealthCheck(name="browser", ok=True, found=f"{browser_version(path)} in {path}")
    except ExactError as error:
        return HealthCheck(name="browser", ok=False, found=str(error).removesuffix(f": {way_out()}"), fix=way_out())


def running_browser(address: str) -> HealthCheck:
    """Check that a browser answers at an address of DevTools, and say that no wall stands around it. Raises UsageError."""
    from exact.config import parse
    from exact.environments.browser.launch.connect import NO_WALL
    from exact.environments.browser.launch.launch import launch

    config = parse({"browser": {"cdp_url": address}}).browser

    async def version() -> str:
        async with launch(config) as browser:
            return browser.version

    try:
        return HealthCheck(name="running browser", ok=True, found=f"{run_async(version())}; {NO_WALL.partition(': ')[2]}")
    except ExactError as error:
        return HealthCheck(name="running browser", ok=False, found=str(error), fix="start it with --remote-debugging-port=9222")


def _key(variable: str) -> HealthCheck:
    there = bool(os.environ.get(variable))
    found = "set" if there else "not set (language models need a key; the built-in agent does not)"
    return HealthCheck(name=variable, ok=there, found=found, fix=f"export {variable}=...", required=False)


def _program(name: str, purpose: str, fix: str) -> HealthCheck:
    path = shutil.which(name)
    return HealthCheck(name=name, ok=bool(path), found=path or f"not on PATH ({purpose})", fix=fix, required=False)


def _sandbox() -> HealthCheck:
    """Check that environments fork, by a checkpoint and a restore."""
    from exact.environments.sandbox.probe import probe_forking, suggest_fix
    from exact.environments.sandbox.runsc import find_runsc, install_hint

    try:
        runsc = find_runsc()
    except ExactError as error:
        return HealthCheck(name="runsc", ok=False, found=str(error), fix=install_hint(), required=False)
    where = f"{runsc.version} in {runsc.path}"
    try:
        proof = run_async(probe_forking())
    except (ExactError, TimeoutError) as error:
        found = f"{where}: environments do not fork here: {error or 'no answer'}"
        return HealthCheck(name="runsc", ok=False, found=found, fix=suggest_fix(runsc), required=False)
    return HealthCheck(
        name="runsc", ok=True, found=f"{where}: checkpoint {proof.checkpoint:.1f} s, restore {proof.restore:.1f} s", required=False
    )


def _desktop() -> HealthCheck:
    from exact.environments.desktop.factory import absent

    missing, fix = absent(), f"{set_up('--desktop', FIX)}, and pip install 'exact-agent[desktop]'"
    return HealthCheck(name="desktop", ok=not missing, found=missing or "its programs and packages are installed", fix=fix, required=False)


def _browsergym() -> HealthCheck:
    from exact.environments.adapters.gym import browsergym_hint, browsergym_python

    fix = browsergym_hint()
    try:
        return HealthCheck(name="browsergym", ok=True, found=str(browsergym_python()), fix=fix, required=False)
    except ExactError as error:
        return HealthCheck(name="browsergym", ok=False, found=str(error).removesuffix(f": {fix}"), fix=fix, required=False)


def _resources() -> Iterator[HealthCheck]:
    """Check the free memory, disk and shared memory against the needs of a search."""
    yield _amount("memory", _free_memory(), "close other programs, or use a machine with more memory", required=True)
    yield _amount("disk", shutil.disk_usage(".").free, "free some space, or choose another --out", required=True)
    yield _temporary_folder(Path(tempfile.gettempdir()))
    if (shm := Path("/dev/shm")).is_dir():
        yield _amount("shared memory", shutil.disk_usage(shm).free, "in a container: --shm-size=1g", required=False)


def _temporary_folder(folder: Path) -> HealthCheck:
    """Check the folder in which browsers, guests and checkpoints write: it exists, is writable, and has space."""
    fix = "set TMPDIR to a folder on a disk with more space"
    if not os.access(folder, os.W_OK | os.X_OK):
        return HealthCheck(name="temporary folder", ok=False, found=f"{folder} cannot be written", fix=fix)
    named = os.environ.get("TMPDIR")
    if named and Path(named).resolve() != folder.resolve():
        return HealthCheck(name="temporary folder", ok=False, found=f"TMPDIR={named} cannot be written: {folder} is used", fix=fix)
    check = _amount("temporary folder", shutil.disk_usage(folder).free, fix, required=True)
    return msgspec.structs.replace(check, found=f"{folder}: {check.found}")


def _amount(name: str, free: int | None, fix: str, *, required: bool) -> HealthCheck:
    if free is None:
        return HealthCheck(name=name, ok=True, found="not reported by this system")
    needed = _NEEDED[name]
    ok = free >= needed
    return HealthCheck(name=name, ok=ok, found=f"{_size(free)} free, {_size(needed)} needed", fix=fix, required=required)


def _size(bytes: int) -> str:
    return f"{bytes / _GIB:.1f} GiB" if bytes >= _GIB else f"{bytes / 2**20:.0f} MiB"


def _free_memory(proc: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes of memory available in this machine and container; None if the system does not report it."""
    amounts = []
    if proc.is_file():
        lines = dict(line.split(":", 1) for line in proc.read_text().splitlines() if ":" in line)
        if "MemAvailable" in lines:
            amounts.append(int(lines["MemAvailable"].split()[0]) * 1024)
    if (group / "memory.max").is_file() and (limit := (group / "memory.max").read_text().strip()) != "max":
        amounts.append(int(limit) - int((group / "memory.current").read_text()))
    return min(amounts, default=None)


def _run_directory(path: Path) -> HealthCheck:
    there = path
    while not there.exists():
        there = there.parent
    ok = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    found = f"{path.absolute()} {'can be written' if ok else 'cannot be written'}"
    return HealthCheck(name="run directory", ok=ok, found=found, fix="change to a folder that you may write to, or choose --out")
