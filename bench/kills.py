"""`kill -9` of `exact run` at twenty random moments, each resumed to its end: is anything lost, or done twice?

Half of the runs are of the embedded agent, half of a scripted language model over HTTP. The moments are random numbers of
journal lines, drawn between the first and the last line of an uninterrupted run. Prints a line a kill.

    python bench/kills.py [--quick]
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path

import _common

sys.path.insert(0, str(_common.ROOT))

from exact.models.scripted import ScriptedServer
from tests.e2e.kills import faults, gone, kill_after, start
from tests.e2e.test_llm_agent import CONFIG, answers

TASKS = {"embedded": ("miniwob/click-tab-2?seed=1", "miniwob/enter-text?seed=1"), "scripted": ("miniwob/click-test-2?seed=3",)}
KILLS = 20


def lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("tasks/*/journal.jsonl"))


async def finish(folder: Path, tasks: tuple[str, ...], config: Path) -> int:
    process = start(folder, tasks, config)
    await asyncio.to_thread(process.communicate)
    return process.returncode


async def main() -> int:
    options = _common.parser(__doc__ or "").parse_args()
    noise, rng, home = _common.Noise(), random.Random(20), Path(tempfile.mkdtemp(prefix="exact-kills-"))
    rows, bad = [], 0
    try:
        async with ScriptedServer(answers) as server:
            (home / "scripted.yaml").write_text(CONFIG % server.base_url)
            configs = {"embedded": _common.ROOT / "shells" / "configs" / "rmcts_builtin.yaml", "scripted": home / "scripted.yaml"}
            most = {}
            for kind, tasks in TASKS.items():
                await finish(home / kind, tasks, configs[kind])
                most[kind] = lines(home / kind)
            for i in range(4 if options.quick else KILLS):
                noise.probe()
                kind = list(TASKS)[i % 2]
                folder, at = home / f"{kind}-{i}", rng.randint(1, most[kind] - 1)
                process = start(folder, TASKS[kind], configs[kind])
                killed = await asyncio.to_thread(kill_after, process, folder, at, 60.0)
                left = await asyncio.to_thread(gone, folder)
                stood = lines(folder)
                code = await finish(folder, TASKS[kind], configs[kind])
                wrong = faults(folder) + [f"left running: {each[:60]}" for each in left] + ([] if code == 0 else [f"exit code {code}"])
                bad += bool(wrong)
                rows.append(
                    [f"{i + 1} {kind}", f"{stood} of {most[kind]}", "yes" if killed else "ended before", "; ".join(wrong) or "whole"]
                )
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _common.table(["run", "journal lines at the kill", "killed", "after resuming"], rows)
    figures = [_common.Figure("kills", len(rows)), _common.Figure("runs_not_whole", bad, goal=0, at_least=False)]
    _common.finish(options, figures, noise, _common.versions("exact-agent", "playwright", "miniwob"), {"rows": rows})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
