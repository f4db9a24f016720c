"""Measure an `exact serve` by OpenEnv's own client: what it adds to a step, and whether sessions leave something behind.

A step's overhead is what it takes at the client less what it takes in the environment, which the server reports: both of the same step, in
MiniWoB's click-scroll-list. Sessions of a toy then solve episodes side by side; memory, threads and files of the server are compared after
a first and a last batch of them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _common import ROOT, Figure, Noise, finish, interval, lacks, parser, table

PYTHON = ROOT / ".bench/venvs/openenv/bin/python"
CLIENT = Path(__file__).with_name("_openenv_client.py")
ENVIRON = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
SESSIONS = 16


@contextmanager
def served(environment: str) -> Iterator[tuple[str, int]]:
    """Serve an environment: its address, and the process id."""
    command = [str(PYTHON), "-P", "-m", "exact.cli", "serve", environment, "--port", "0", "--sessions", str(SESSIONS), "--stdin"]
    with subprocess.Popen(command, env=ENVIRON, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().partition(": ")[0], process.pid  # the server ends with its standard input


def client(url: str, *args: object) -> Any:
    done = subprocess.run(
        [str(PYTHON), "-P", str(CLIENT), url, *map(str, args)], env=ENVIRON, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


def usage(process: int) -> dict[str, float]:
    """Resident memory in MiB, threads and open files of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    files = len(list(Path(f"/proc/{process}/fd").iterdir()))
    return {"mib": int(status["VmRSS"].split()[0]) / 1024, "threads": int(status["Threads"]), "files": files}


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    if not PYTHON.exists():
        lacks("no OpenEnv: shells/setup.sh --openenv")
    noise = Noise()
    with served("miniwob/click-scroll-list") as (url, _):
        steps = []
        for _ in range(2 if options.quick else 10):
            noise.probe()
            steps += client(url, "steps", 30)
    over = [at_client - inside for at_client, inside in steps]
    columns = {"at the client": [a for a, _ in steps], "in the environment": [b for _, b in steps], "more": over}
    table(("ms", "median", "min", "max"), [(name, *(f"{each:.2f}" for each in interval(values))) for name, values in columns.items()])
    count = 20 if options.quick else 500
    with served("toy/chain") as (url, process):
        won = client(url, "episodes", max(5, count // 10), SESSIONS)
        first = usage(process)
        won += client(url, "episodes", count, SESSIONS)
        last = usage(process)
    noise.probe()
    rows = [(name, *(f"{each[key]:.0f}" for key in ("mib", "threads", "files"))) for name, each in (("before", first), ("after", last))]
    table(("server", "MiB", "threads", "files"), rows)
    episodes = SESSIONS * (count + max(5, count // 10))
    figures = [
        Figure("step_overhead_ms", interval(over)[0], 3, at_least=False),
        Figure("episodes_lost", episodes - won, 0, at_least=False),
        Figure("files_left", last["files"] - first["files"], 0, at_least=False),
        Figure("mib_left", last["mib"] - first["mib"], 32, at_least=False),
    ]
    details = {"episodes": episodes, "usage": {"before": first, "after": last}, "steps": len(steps)}
    finish(options, figures, noise, {"openenv": "0.10.0"}, details)


if __name__ == "__main__":
    main()
