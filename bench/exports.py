"""Measure exports: whether exported conversations replay to their recorded ends, and how memory grows with the number of attempts.

A run of the built-in agent on MiniWoB is exported as imitation and exploratory conversations, and each is carried out in a fresh browser.
Toy runs of a tenth and of all attempts are exported, each by a process of its own whose peak memory is read.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from _common import ROOT, Figure, Noise, finish, parser, table, versions

import exact
from exact.config import Config, parse
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze
from exact.learning.export import replay
from exact.runs.runner import Runner, create, reopen

TASKS = ("click-tab-2", "login-user", "navigate-tree", "click-dialog-2", "enter-text", "click-option", "click-checkboxes", "focus-text-2")
PEAK = """
import resource, sys
from exact.cli.main import main
code = main(["export", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
sys.exit(code)
"""


async def toy_run(folder: Path, count: int) -> None:
    """Attempt `count` mazes."""
    graphs = {f"toy/maze?seed={seed}": maze(4, 4, seed=seed) for seed in range(count)}
    tasks = tuple(
        exact.Task(id=id, instruction=f"Reach the exit of maze {number}.", start=f"toy://maze{number}/", seed=number)
        for number, id in enumerate(graphs)
    )
    settings = parse({"search": {"algorithm": "mcts", "iterations": 30, "k": 4}, "reflection": {"kind": "none"}})
    create(folder, tasks, settings)
    run, config = reopen(folder)
    parts: dict[str, Any] = {}

    def opened(task: exact.Task) -> Any:
        parts["graph"] = graphs[task.id]
        return nullcontext(ToyFactory(parts["graph"]))

    class Late:
        def __init__(self, kind: type[Any]) -> None:
            self._kind = kind

        def __getattr__(self, name: str) -> Any:
            return getattr(self._kind(parts["graph"]), name)

    def agent(config: Config, models: Any) -> exact.Agent:
        return exact.Agent(policy=Late(ToyPolicy), value=Late(ToyValue))

    await Runner(folder=run, config=config, open_environments=opened, build_agent=agent).run()


def peak(run: Path, out: Path, kind: str) -> int:
    """Peak memory in MiB of an export."""
    command = [sys.executable, "-c", PEAK, kind, str(run), "--out", str(out), "--outcome", "any"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True)
    return int(done.stderr.split()[-1])


def first_tasks(run: Path, copy: Path, count: int) -> Path:
    """A run folder with the first tasks of another one."""
    shutil.copytree(run, copy)
    manifest = json.loads((run / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(manifest | {"tasks": manifest["tasks"][:count]}))
    return copy


async def replayed(lines: list[dict[str, Any]]) -> list[bool]:
    """Whether each conversation leads to its recorded end in a fresh browser."""
    found = []
    for line in lines:
        about = line["meta"]
        async with exact.make(about["task"]) as environment:
            seen = await replay(line, environment, environment.task)
        found.append((seen.end, seen.terminated, seen.refused) == (about["end"], about["terminated"], 0))
    return found


def exported(run: Path, out: Path, kind: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "exact.cli", "export", kind, str(run), "--out", str(out)]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in out.read_text().splitlines()]


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    noise = Noise()
    count, seeds = (60, 1) if options.quick else (1000, 4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        patterns = [f"miniwob/{task}?seed={seed}" for task in TASKS[: 3 if options.quick else None] for seed in range(1, seeds + 1)]
        command = [sys.executable, "-m", "exact.cli", "run", "--config", "rmcts_builtin", *patterns, "--out", str(folder / "browser")]
        subprocess.run(
            command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        noise.probe()
        lines = [line for kind in ("imitation", "exploratory") for line in exported(folder / "browser", folder / f"{kind}.jsonl", kind)]
        same = asyncio.run(replayed(lines))
        noise.probe()
        asyncio.run(toy_run(folder / "toys", count))
        few = first_tasks(folder / "toys", folder / "few", count // 10)
        peaks = {
            kind: (peak(few, folder / "few.jsonl", kind), peak(folder / "toys", folder / "all.jsonl", kind))
            for kind in ("value", "exploratory")
        }
        size = (folder / "all.jsonl").stat().st_size / 2**20
        noise.probe()
    table(("peak MiB", f"{count // 10} attempts", f"{count} attempts"), [(kind, *map(str, both)) for kind, both in peaks.items()])
    figures = [
        Figure("conversations_replayed", sum(same)),
        Figure("conversations_drifted", len(same) - sum(same), 0, at_least=False),
        Figure("export_mib_more", max(b - a for a, b in peaks.values()), 64, at_least=False),
    ]
    finish(options, figures, noise, versions("exact-agent", "msgspec"), {"attempts": count, "peaks": peaks, "export_mib": round(size, 1)})


if __name__ == "__main__":
    main()
