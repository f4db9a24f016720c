"""`exact doctor`: show the installed and the missing parts, and how to install them.

The repairs of `exact doctor --fix`: the commands that install a missing part, run one after the other.

The checks of `exact doctor`. They change nothing and use no network.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from exact.cli.signals import run_async
from exact.cli.terminal import configuration_option, echo
from exact.errors import ExactError
from exact.version import FIX, PACKAGE, __version__, clone, set_up, system_lacks, with_apt

if TYPE_CHECKING:
    from exact.cli.model_check import ModelReport
    from exact.config import ModelConfig


@click.command()
@click.option("--model", metavar="NAME", help="Model to test with a few short calls, to show its features.")
@configuration_option("YAML file of an agent, whose policy's model to test as it is configured, with its timeout and its retries.")
@click.option("--provider", metavar="NAME", default="", help="Provider of the model: `exact list providers` lists them.")
@click.option("--base-url", metavar="URL", help="Address of the model's server, if not OpenAI: http://127.0.0.1:8000/v1")
@click.option("--cdp-url", default="", metavar="URL", help="DevTools of a running browser to test, as browser.cdp_url. It is not closed.")
@click.option("--fix", is_flag=True, help="Install the missing parts that need no decision of yours, then check again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(
    model: str | None, path: Path | None, provider: str, base_url: str | None, cdp_url: str, fix: bool, as_json: bool
) -> int:  # fmt: skip
    """Show the installed and the missing parts, and how to install them.

    The exit code is 1 if a required part is missing, the model does not answer, or its answers cannot be read.
    """
    tested = _model(model, path, provider, base_url)
    found = checks()
    if fix and _repair(found):
        found = checks()
    if cdp_url:
        found.append(running_browser(cdp_url))
    report = None
    if tested:
        from exact.cli.model_check import check_model

        report = run_async(check_model(tested))
    well = all(check.ok or not check.required for check in found) and (report is None or report.ok)
    echo(_json(well, found, report) if as_json else _text(well, found, report))
    return 0 if well else 1


def _repair(checks: list[HealthCheck]) -> bool:
    """Run the commands that install missing parts, each announced on stderr. Return whether there were any."""
    planned = [(check.name, commands(check)) for check in checks]
    for name, wanted in planned:
        for command in wanted:
            echo(f"doctor: {name}: {shlex.join(command)}", err=True)
            if not run(command):
                echo(f"doctor: {name}: the command failed", err=True)
                break
    return any(wanted for _, wanted in planned)


def _model(name: str | None, path: Path | None, provider: str, base_url: str | None) -> ModelConfig | None:
    """Return the model to test; None if none is named. Raises UsageError."""
    from exact.config import ModelConfig, load
    from exact.errors import UsageError
    from exact.models.open import model_for

    given = {"--model": name, "--provider": provider, "--base-url": base_url}
    if path is not None:
        if beside := [option for option, value in given.items() if value]:
            raise UsageError(f"{beside[0]} excludes --config, which names the model: choose one")
        return model_for(load(path).models, "policy")
    if not name:
        if beside := [option for option, value in given.items() if value]:
            raise UsageError(f"{beside[0]} requires --model: give the name of the model")
        return None
    return ModelConfig(model=name, provider=provider, base_url=base_url or "", retries=1)


def _json(well: bool, checks: list[HealthCheck], report: ModelReport | None) -> str:
    import msgspec

    return json.dumps({"ok": well, "checks": msgspec.to_builtins(checks), "model": msgspec.to_builtins(report)})


def _text(well: bool, checks: list[HealthCheck], report: ModelReport | None) -> str:
    rows = [(_mark(check), check.name, check.found, "" if check.ok else check.fix) for check in checks]
    if report:
        rows += [("MISSING" if name in report.faulty else "ok", name, found, "") for name, found in report.rows()]
    width = max(len(name) for _, name, _, _ in rows)
    lines = [f"{mark:8} {name:{width}}  {found}{f'  -> {fix}' if fix else ''}" for mark, name, found, fix in rows]
    return "\n".join([*lines, "all required parts are installed" if well else "required parts are missing: see MISSING above"])


def _mark(check: HealthCheck) -> str:
    return "ok" if check.ok else "MISSING" if check.required else "optional"


Command = Sequence[str]


def commands(check: HealthCheck) -> list[Command]:
    """Return the commands that install the parts that a check found missing, in their order; none if only the user can install them."""
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
    """Return the command that installs the requirements of an extra of this package into this interpreter's environment."""
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
    """Return the words before a command that needs root; None if this user cannot become root without a password."""
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
        _osworld(),
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


def _osworld() -> HealthCheck:
    from exact.benchmarks.osworld.suite import inspect

    found, fix = inspect()
    return HealthCheck(name="osworld", ok=not fix, found=found, fix=fix, required=False)


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
