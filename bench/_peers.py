"""Virtual environments of peer libraries, made on first use (from the package index) under .bench/venvs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _common import ROOT

HERE = Path(__file__).resolve().parent


def make_venv(requirement: str, lock: str = "") -> Path:
    """Return the interpreter of a virtual environment with `package==version`, made where it is missing or has another version.

    `lock`: a file of constraints/ with the package, all its requirements and their hashes.
    """
    name, _, version = requirement.partition("==")
    venv = ROOT / ".bench" / "venvs" / name
    python = venv / "bin" / "python"
    check = f"import importlib.metadata as m; raise SystemExit(m.version({name!r}) != {version!r})"
    if python.exists() and subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL).returncode == 0:
        return python
    print(f"making a virtual environment with {requirement} (once) ...", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))))
    wanted = ["--require-hashes", "-r", ROOT / "constraints" / lock] if lock else [requirement]
    commands = (
        [[uv, "venv", "--quiet", "--python", sys.executable, venv], [uv, "pip", "install", "--quiet", "--python", python, *wanted]]
        if uv
        else [[sys.executable, "-m", "venv", venv], [python, "-m", "pip", "install", "--quiet", *wanted]]
    )
    for command in commands:
        if subprocess.run(command).returncode:
            raise SystemExit(f"cannot install {requirement}: the first run of this bench needs the package index")
    return python


class Peer:
    """A process that answers each line it is sent with one of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, request: object) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args}: it ended; its messages are above")
        return dict(json.loads(line))


@contextmanager
def peer(python: Path, script: str, *arguments: object) -> Iterator[Peer]:
    """Run a peer's process, and end it afterwards."""
    command = [str(python), str(HERE / script), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Peer(process)
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait()
