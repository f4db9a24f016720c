"""Kill `exact run` by `kill -9` at twenty random moments, resume each run, and count lost, repeated and different commits.

Half of the runs use the built-in agent, half a scripted language model over HTTP. The moments are random numbers of journal lines, drawn
between the first and the last line of an uninterrupted run. Prints a line for each kill. With several workers (four by default) a run may
end before the drawn line; then it was not killed, and another one is started.

Committed actions must survive a kill, and the actions after it must be those of an uninterrupted run. With several workers the search runs
in rounds (`search.order: selection`), because the order of arrival is random; `--order arrival` shows its effect. Two of the tasks were
chosen because uninterrupted runs in the order of arrival do *not* agree on them.

    python bench/kills.py [--quick] [--workers N] [--commit-by fork]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import _common

sys.path.insert(0, str(_common.ROOT))

from exact.models.scripted import ScriptedServer
from tests.e2e.kills import commits, faults, gone, kill_after, start
from tests.e2e.test_llm_agent import CONFIG, answers

TASKS = {
    "embedded": (
        "miniwob/click-checkboxes?seed=1",
        "miniwob/click-option?seed=1",
        "miniwob/enter-password?seed=1",
        "miniwob/click-tab-2?seed=1",
    ),
    "scripted": ("miniwob/click-test-2?seed=3",),
}
KILLS = 20


def parse() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--workers", type=int, default=4, help="pieces of work of one search under way at once (4)")
    parser.add_argument("--order", choices=["arrival", "selection"], default="selection", help="of results (selection)")
    parser.add_argument("--commit-by", choices=["replay", "fork"], default="replay", help="how a decision is committed (replay)")
    return parser.parse_args()


def lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("tasks/*/journal.jsonl"))


async def finish(folder: Path, kind: Kind) -> int:
    process = start(folder, kind.tasks, kind.config, *kind.settings)
    await asyncio.to_thread(process.communicate)
    return process.returncode


class Kind(NamedTuple):
    """A kind of run, and its result without kills."""

    name: str
    tasks: tuple[str, ...]
    config: Path
    settings: tuple[str, ...]
    whole: Path


async def killed(kind: Kind, folder: Path, at: int) -> tuple[bool, list[str]]:
    """Kill a run at a line of its journals and resume it. Return whether it was killed, and what is wrong with the result."""
    process = start(folder, kind.tasks, kind.config, *kind.settings)
    was = await asyncio.to_thread(kill_after, process, folder, at, 60.0)
    left, stood = await asyncio.to_thread(gone, folder), commits(folder)
    code = await finish(folder, kind)
    wrong = faults(folder) + [f"left running: {each[:60]}" for each in left] + ([] if code == 0 else [f"exit code {code}"])
    after, whole = commits(folder), commits(kind.whole)
    wrong += [f"what was committed is lost: {task}" for task, actions in stood.items() if after[task][: len(actions)] != actions]
    wrong += [f"committed otherwise: {after[task]} for {actions}" for task, actions in whole.items() if after.get(task) != actions]
    return was, wrong


async def main() -> int:
    options = parse()
    noise, rng, home = _common.Noise(), random.Random(20), Path(tempfile.mkdtemp(prefix="exact-kills-"))
    settings = (
        f"search.workers={options.workers}", f"search.order={options.order}", f"search.commit_by={options.commit_by}",
        "search.iterations=16", "limits.transitions=1000",
    )  # fmt: skip
    rows, bad, kills = [], 0, 4 if options.quick else KILLS
    try:
        async with ScriptedServer(answers) as server:
            (home / "scripted.yaml").write_text(CONFIG % server.base_url)
            configs = {"embedded": _common.ROOT / "shells" / "configs" / "rmcts_builtin.yaml", "scripted": home / "scripted.yaml"}
            kinds = [Kind(name, tasks, configs[name], settings, home / name) for name, tasks in TASKS.items()]
            for kind in kinds:
                await finish(kind.whole, kind)
            for i in range(3 * kills):
                if sum(row[2] == "yes" for row in rows) == kills:
                    break
                noise.probe()
                kind = kinds[i % 2]
                at = rng.randint(1, lines(kind.whole) - 1)
                was, wrong = await killed(kind, home / f"{kind.name}-{i}", at)
                bad += bool(wrong)
                rows.append(
                    [f"{i + 1} {kind.name}", f"{at} of {lines(kind.whole)}", "yes" if was else "ended before", "; ".join(wrong) or "whole"]
                )
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _common.table(["run", "journal lines at the kill", "killed", "after resuming"], rows)
    figures = [
        _common.Figure("kills", sum(row[2] == "yes" for row in rows), goal=kills),
        _common.Figure("runs_not_whole", bad, goal=0, at_least=False),
    ]
    _common.finish(options, figures, noise, _common.versions("exact-agent", "playwright", "miniwob"), {"rows": rows})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
