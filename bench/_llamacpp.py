"""A real llama.cpp server with a small model, as a child process. `shells/setup.sh --llamacpp` installs both."""

from __future__ import annotations

import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".bench" / "venvs" / "llamacpp" / "bin" / "python"
MISSING = "llama.cpp and its small model are not installed: run shells/setup.sh --llamacpp"
MODEL = "smollm2-135m"


class LlamaServer:
    """One server. It ends when it is killed, when `serving` ends, or with this process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address

    @property
    def base_url(self) -> str:
        """Address of the Chat Completions API."""
        return f"{self.address}/v1"

    @property
    def port(self) -> int:
        return urllib.parse.urlsplit(self.address).port or 0

    def kill(self) -> None:
        """Kill the process at once and wait for its end."""
        self.process.kill()
        self.process.wait()


def available() -> bool:
    """Return whether the server and its model are installed."""
    return PYTHON.exists()


@contextmanager
def serving(
    *, slots: int = 4, context: int = 4096, port: int = 0, threads: int = 1, weights: Path | None = None, adapter: Path | None = None
) -> Iterator[LlamaServer]:
    """Run a server with `slots` slots of `context` tokens each. Port 0 is any free one. Raises RuntimeError if it does not start.

    `weights`: a GGUF file; None for SmolLM2. `adapter`: a LoRA adapter as GGUF; None for none.
    """
    with tempfile.TemporaryFile("w+") as log:
        command = [
            str(PYTHON),
            str(ROOT / "bench" / "_serve_llamacpp.py"),
            *map(str, (port, slots, context, threads)),
            str(weights or ""),
            str(adapter or ""),
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            yield LlamaServer(process, _address(process, log))
        finally:
            process.kill()
            process.communicate()


def _address(process: subprocess.Popen[str], log: IO[str]) -> str:
    """Return the address that the server prints once it answers."""
    for line in process.stdout or ():
        if line.startswith("ready "):
            return line.split()[1]
    log.seek(0)
    raise RuntimeError(f"llama.cpp's server did not start: {log.read()[-500:]}")
