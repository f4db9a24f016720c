"""`exact doctor`: show the installed and the missing parts, and how to install them.

The repairs of `exact doctor --fix`: the commands that install a missing part, run one after the other.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.health import HealthCheck
from exact.cli.signals import run_async
from exact.cli.terminal import echo
from exact.version import clone

if TYPE_CHECKING:
    from exact.cli.model_check import ModelReport
    from exact.config import ModelConfig


@click.command()
@click.option("--model", metavar="NAME", help="Model to test with a few short calls, to show its features.")
@click.option("--provider", metavar="NAME", default="", help="Provider of the model: `exact config providers` lists them.")
@click.option("--base-url", metavar="URL", help="Address of the model's server, if not OpenAI: http://127.0.0.1:8000/v1")
@click.option("--cdp-url", default="", metavar="URL", help="DevTools of a running browser to test, as browser.cdp_url. It is not closed.")
@click.option("--fix", is_flag=True, help="Install the missing parts that need no decision of yours, then check again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(model: str | None, provider: str, base_url: str | None, cdp_url: str, fix: bool, as_json: bool) -> int:
    """Show the installed and the missing parts, and how to install them.

    The exit code is 1 if a required part is missing or the model does not answer.
    """
    from exact.cli import health
    from exact.config import ModelConfig
    from exact.errors import UsageError

    if (base_url or provider) and not model:
        raise UsageError(f"{'--base-url' if base_url else '--provider'} requires --model: give the name of the model")
    checks = health.checks()
    if fix and _repair(checks):
        checks = health.checks()
    if cdp_url:
        checks.append(health.running_browser(cdp_url))
    report = None
    if model:
        from exact.cli.model_check import check_model

        config = ModelConfig(model=model, provider=provider, timeout=60.0, retries=1)
        report = run_async(check_model(_at(config, base_url)))
    well = all(check.ok or not check.required for check in checks) and (report is None or not report.error)
    echo(_json(well, checks, report) if as_json else _text(well, checks, report))
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


def _at(config: ModelConfig, base_url: str | None) -> ModelConfig:
    import msgspec

    return msgspec.structs.replace(config, base_url=base_url) if base_url else config


def _json(well: bool, checks: list[HealthCheck], report: ModelReport | None) -> str:
    import msgspec

    return json.dumps({"ok": well, "checks": msgspec.to_builtins(checks), "model": msgspec.to_builtins(report)})


def _text(well: bool, checks: list[HealthCheck], report: ModelReport | None) -> str:
    rows = [(_mark(check), check.name, check.found, "" if check.ok else check.fix) for check in checks]
    if report:
        rows += [("ok" if not report.error else "MISSING", name, found, "") for name, found in report.rows()]
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
