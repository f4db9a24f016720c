"""Does memory make later searches better? Houses with traps that recur in other houses (bench/_traps.py).

Per cell five rounds of houses, each house attempted once by MCTS and once by R-MCTS: the same search with lessons. Lessons go the whole
way: the signals of the journal, the embedded reflector, the memory's embedding, its merging and retrieval, the embedded agent's change of
priors and values. The memory is frozen within a round; lessons of the same house are excluded as in any benchmark. What lessons are made
of is the agent's own verdict on its attempt, made once more after the end, which errs in 0, 10, 20 or 30 percent of the attempts. A search
ends with the first end that is worth 0.8, and is cut off after a number of iterations. A house is solved when its way out was taken.

Shuffled is R-MCTS shown lessons of which each has the situation of one and all else of another. `iterations_ratio` is of all five rounds
at full recurrence, the first without lessons included; `later` is without it. Intervals are 95 percent bootstrap intervals over houses,
paired.

    python bench/memory_gain.py --json bench/results/memory_gain.json
    python bench/memory_gain.py --quick
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import _common
import msgspec
from _traps import RemindedPolicy, RemindedValue, house

from exact.agents.agent import Agent
from exact.config import Config, parse
from exact.context import Reflection
from exact.environments.toy import ToyWorlds
from exact.reflection.builtin import BuiltinReflector
from exact.reflection.lesson import content_id
from exact.reflection.memory import SQLiteMemory
from exact.runs import events as ev
from exact.runs.fold import State
from exact.runs.runner import Runner, create
from exact.runs.store import Line
from exact.task import Task

ROUNDS = 5
SEED = 7
LIMIT = 100
"""Iterations for one committed action."""
SEARCH = {"algorithm": "mcts", "iterations": LIMIT, "k": 4, "depth": 12, "backup": "max", "judgements": 1, "enough": 0.8}
SIGNALS = ["policy", "outcome", "judge", "sibling", "branch"]
LEARNING = {"kind": "builtin", "signals": SIGNALS, "most": 6, "k": 6, "similarity": 0.3, "outcome": "judge", "confirm": True}


class Cell(NamedTuple):
    """One setting."""

    recurrence: float
    errs: float

    def __str__(self) -> str:
        return f"recurrence {self.recurrence:.0%}, judge errs {self.errs:.0%}"


class Attempt(NamedTuple):
    """One house, one agent."""

    iterations: int
    solved: bool


Attempts = list[list[Attempt]]
"""By round, then by house."""


def houses(cell: Cell, round: int, count: int) -> list[Task]:
    numbers = [round * 1000 + n for n in range(count)]
    return [Task(id=f"houses/{n}", instruction=house(cell.recurrence, n, SEED).instruction, seed=n) for n in numbers]


def settings(learning: dict[str, Any]) -> Config:
    return parse({"search": SEARCH, "reflection": learning, "limits": {"actions": 12}})


async def attempted(folder: Path, cell: Cell, tasks: Sequence[Task], learning: dict[str, Any]) -> list[Attempt]:
    """Some houses with one agent."""
    config, spent = settings(learning), dict[str, int]()
    world: list[Any] = []

    def open_worlds(task: Task) -> Any:
        world[:] = [house(cell.recurrence, task.seed or 0, SEED)]
        return nullcontext(ToyWorlds(world[0]))

    def build(config: Config, models: object) -> Agent:
        reflector = None if config.reflection.kind == "none" else BuiltinReflector()
        return Agent(policy=RemindedPolicy(world[0]), value=RemindedValue(world[0], errs=cell.errs, seed=SEED), reflector=reflector)

    def watch(task: Task, state: State, event: ev.AnyEvent) -> None:
        spent[task.id] = state.tree.iterations

    made = create(folder, tuple(tasks), config)
    lines: list[Line] = await Runner(folder=made, config=config, open_worlds=open_worlds, build_agent=build, watch=watch).run()
    return [Attempt(spent[line.task], line.score == 1.0) for line in lines]


def shuffled(source: Path, target: Path, seed: int) -> None:
    """A memory in which each lesson has the situation of one and all else of another."""
    rng = random.Random(seed)
    with SQLiteMemory(source) as true, SQLiteMemory(target) as wrong:
        for kind in ("policy", "value"):
            lessons = [entry.reflection for entry in true.entries(kind=kind)]
            others = lessons[:]
            rng.shuffle(others)
            wrong.add_all([_mixed(one, other) for one, other in zip(lessons, others, strict=True)])


def _mixed(one: Reflection, other: Reflection) -> Reflection:
    mixed = msgspec.structs.replace(other, instruction=one.instruction, state=one.state, task=one.task)
    return msgspec.structs.replace(mixed, id=content_id(mixed))


def run_cell(cell: Cell, count: int, control: bool) -> dict[str, Attempts]:
    """All rounds of a setting, for each agent."""
    found: dict[str, Attempts] = {"mcts": [], "rmcts": []} | ({"shuffled": []} if control else {})
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as home:
        memory = Path(home) / "memory.sqlite"
        for round in range(ROUNDS):
            tasks, base = houses(cell, round, count), Path(home) / str(round)
            if control:
                wrong = Path(home) / f"wrong{round}.sqlite"
                SQLiteMemory(memory).close()
                shuffled(memory, wrong, round)
                learning = {**LEARNING, "memory": str(wrong), "round": count}
                found["shuffled"].append(asyncio.run(attempted(base / "shuffled", cell, tasks, learning)))
            found["mcts"].append(asyncio.run(attempted(base / "mcts", cell, tasks, {"kind": "none"})))
            learning = {**LEARNING, "memory": str(memory), "round": count}
            found["rmcts"].append(asyncio.run(attempted(base / "rmcts", cell, tasks, learning)))
    return found


def flat(attempts: Attempts) -> list[Attempt]:
    return [each for round in attempts for each in round]


def interval(pairs: Sequence[tuple[float, float]], of: Any, draws: int = 2000) -> tuple[float, float, float]:
    """A figure of paired numbers, with its 95 percent bootstrap interval."""
    rng = random.Random(0)
    drawn = sorted(of(rng.choices(pairs, k=len(pairs))) for _ in range(draws))
    return of(pairs), drawn[int(0.025 * draws)], drawn[int(0.975 * draws)]


def ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(a for a, _ in pairs) / sum(b for _, b in pairs)


def gain(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.fmean(a - b for a, b in pairs)


def compared(found: dict[str, Attempts], name: str) -> dict[str, Any]:
    """An agent beside MCTS."""
    both = list(zip(flat(found[name]), flat(found["mcts"]), strict=True))
    return {
        "iterations": [statistics.fmean(each.iterations for each in round) for round in found[name]],
        "iterations_mcts": [statistics.fmean(each.iterations for each in round) for round in found["mcts"]],
        "ratio": interval([(a.iterations, b.iterations) for a, b in both], ratio),
        "later": interval([(a.iterations, b.iterations) for a, b in both[len(found[name][0]) :]], ratio),
        "per_solved": _per_solved([a for a, _ in both]),
        "per_solved_mcts": _per_solved([b for _, b in both]),
        "success": statistics.fmean(a.solved for a, _ in both),
        "success_mcts": statistics.fmean(b.solved for _, b in both),
        "gain": interval([(float(a.solved), float(b.solved)) for a, b in both], gain),
    }


def _per_solved(attempts: Sequence[Attempt]) -> float:
    """Iterations for each house that was solved."""
    return sum(each.iterations for each in attempts) / max(1, sum(each.solved for each in attempts))


def cells(quick: bool) -> list[Cell]:
    if quick:
        return [Cell(1.0, 0.0), Cell(0.0, 0.0), Cell(1.0, 0.2)]
    return [Cell(r, 0.0) for r in (1.0, 0.5, 0.25, 0.0)] + [Cell(1.0, e) for e in (0.1, 0.2, 0.3)]


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--houses", type=int, help="in a round (20; with --quick 6)")
    args = options.parse_args()
    count = args.houses or (6 if args.quick else 20)
    noise, chosen = _common.Noise(), cells(args.quick)
    noise.probe()
    rows: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(2) as pool:
        jobs = [(cell, pool.submit(run_cell, cell, count, cell == chosen[0])) for cell in chosen]
        for cell, job in jobs:
            found = job.result()
            noise.probe()
            rows |= {f"{cell}: {name}": compared(found, name) for name in found if name != "mcts"}
            print(f"{cell} done", file=sys.stderr, flush=True)
    shown = [
        [
            name,
            " ".join(f"{each:.0f}" for each in row["iterations"]),
            " ".join(f"{each:.0f}" for each in row["iterations_mcts"]),
            "{:.2f} [{:.2f}, {:.2f}]".format(*row["ratio"]),
            "{:.2f} [{:.2f}, {:.2f}]".format(*row["later"]),
            f"{row['success']:.2f} / {row['success_mcts']:.2f}",
            "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row["gain"]),
        ]
        for name, row in rows.items()
    ]
    _common.table(["", "iterations by round", "of MCTS", "ratio", "later", "success", "gain in success"], shown)
    full, wrong = rows[f"{chosen[0]}: rmcts"], rows[f"{chosen[0]}: shuffled"]
    figures = [
        _common.Figure("iterations_ratio", full["ratio"][0], goal=0.5, at_least=False),
        _common.Figure("shuffled_loss", 0.0 - wrong["gain"][0], goal=0.05, at_least=False),
        _common.Figure("success_gain", full["gain"][0], goal=-0.05),
    ]
    details = {"rows": rows, "houses": count, "rounds": ROUNDS, "search": SEARCH, "learning": LEARNING, "limit": LIMIT}
    _common.finish(args, figures, noise, _common.versions("exact-agent"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
