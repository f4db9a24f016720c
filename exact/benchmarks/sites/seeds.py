"""The interpreter that has Trac and Wagtail, and their data, made once for each version of their sources."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from exact.errors import EnvironmentFailure, UsageError
from exact.machine import Child
from exact.version import environment_for, set_up

SERVED = Path(__file__).parent / "served"
"""Programs that make and serve the sites: run by that interpreter, never imported here."""
_SECONDS = 600.0
_OURS = Path(__file__).parents[3] / ".bench" / "venvs" / "sites"
"""Virtual environment of a source tree: shells/setup.sh --sites."""


def interpreter() -> Path:
    """Return EXACT_SITES (a virtual environment or its Python), else the source tree's, else our own.

    Raises UsageError if none has them.
    """
    if said := os.environ.get("EXACT_SITES"):
        place = Path(said).expanduser()
        python = place if place.is_file() else place / "bin" / "python"
        if not python.is_file():
            raise UsageError(f"EXACT_SITES is {said}, and there is no Python: name a virtual environment with Trac and Wagtail")
        return python
    if (python := _OURS / "bin" / "python").is_file():
        return python
    if importlib.util.find_spec("trac") and importlib.util.find_spec("wagtail"):
        return Path(sys.executable)
    raise UsageError(
        "Trac and Wagtail are not installed: "
        + set_up(
            "--sites, or install them in a virtual environment and set EXACT_SITES to it",
            environment_for("'exact-agent[sites]'", "EXACT_SITES"),
        )
    )


async def seed(site: str, python: Path) -> Path:
    """Return the folder of a site's data; make it in the user's cache if it is missing. Raises EnvironmentFailure."""
    parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exact" / "sites"
    target = parent / f"{site}-{_digest(site, python)}"
    if target.is_dir():
        return target
    parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{site}-", dir=parent))
    try:
        await _make(site, python, work / "seed")
        with suppress(OSError):  # another process was faster
            (work / "seed").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


async def _make(site: str, python: Path, folder: Path) -> None:
    command = (str(python), "-W", "ignore", "-I", str(SERVED / "seed.py"), site, str(folder))
    process = await Child.start(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    try:
        async with asyncio.timeout(_SECONDS):
            _, said = await process.communicate()
    except TimeoutError as error:
        raise EnvironmentFailure(f"the data of {site} was not made within {_SECONDS:g} s: is the machine busy?") from error
    finally:
        await process.end()
    if process.returncode:
        last = (said.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"])[-1]
        raise EnvironmentFailure(f"the data of {site} cannot be made by {python}: {last}")


def _digest(site: str, python: Path) -> str:
    """Return a digest of everything that the data depends on: its sources, and the versions of the packages."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(SERVED.rglob("*")):
        if path.suffix in (".py", ".html") and "__pycache__" not in path.parts:
            found.update(path.relative_to(SERVED).as_posix().encode() + path.read_bytes())
    for name in sorted(_versions(python)):
        found.update(name.encode())
    return found.hexdigest()


def _versions(python: Path) -> Iterator[str]:
    """Yield the relevant distributions beside an interpreter, with their versions."""
    for packages in python.parents[1].glob("lib/python*/site-packages"):
        for path in packages.glob("*.dist-info"):
            if path.name.lower().startswith(("trac", "wagtail", "django-")):
                yield path.name
