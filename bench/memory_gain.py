"""Measure the gain of memory in later searches. Houses with traps that recur in other houses (bench/_traps.py).

Per cell ten towns, thirty where controls are run, each with kinds of rooms, traps and a memory of its own. Per town five rounds of houses,
each house attempted once by MCTS and once by R-MCTS: the same search with reflections. Reflections take the whole path: the signals of the
journal, the built-in reflector, the memory's embedding, its merging and retrieval, the built-in agent's change of priors and values. The
memory is frozen within a round; reflections of the same house are excluded as in any benchmark. Reflections are made from the agent's own
evaluation of its attempt, made once more after the end, which errs in 0, 10, 20 or 30 percent of the attempts. A search ends with the
first end that is worth 0.8, and is cut off after a number of iterations. A house is solved when its way out was taken.

`iterations_ratio` is of all five rounds at full recurrence, the first without reflections included; `later` is without it. What excludes
zero is `saved`, 1 less that ratio. Intervals are 95 percent bootstrap intervals over towns, paired on the house: the traps of a town are
drawn but once for all of its houses.

Two controls are R-MCTS shown wrong reflections, made anew for each round of the true ones: *shuffled* ones have the situation and the
direction of one reflection and the action of another, *inverted* ones speak against what they spoke for. Their loss of success is measured
where there is one to be seen: with so few iterations that MCTS alone solves about two thirds of the houses, in the rounds that
have reflections.

    python bench/memory_gain.py --json bench/results/memory_gain.json     about ten minutes
    python bench/memory_gain.py --quick
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
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
from exact.environments.toy.factory import ToyFactory
from exact.reflection.contrast import BuiltinReflector
from exact.reflection.memory.open import SQLiteMemory
from exact.reflection.record import content_id
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create
from exact.task import Task

ROUNDS = 5
TOWNS = 10
MORE = 30
"""Towns where controls are run."""
SEED = 200
"""Number of the first town. The built-in agent's use of lessons was tried out in towns 7 to 17, 30 to 39 and 100 to 129."""
LIMIT = 100
"""Iterations for one committed action."""
FEW = 7
"""The same, where not every house is solved."""
SEARCH = {"algorithm": "mcts", "iterations": LIMIT, "k": 4, "depth": 12, "backup": "max", "evaluations": 1, "enough": 0.8}
SIGNALS = ["policy", "outcome", "judge", "sibling", "branch"]
LEARNING = {"kind": "builtin", "signals": SIGNALS, "most": 6, "k": 6, "similarity": 0.3, "outcome": "judge", "confirm": True}


class Cell(NamedTuple):
    """One setting."""

    recurrence: float
    errs: float
    limit: int = LIMIT
    """Iterations for one committed action."""

    def __str__(self) -> str:
        few = f", {self.limit} iterations" if self.limit != LIMIT else ""
        return f"recurrence {self.recurrence:.0%}, judge errs {self.errs:.0%}{few}"


class Attempt(NamedTuple):
    """One house, one agent."""

    iterations: int
    solved: bool


Attempts = list[list[Attempt]]
"""In one town, by round, then by house."""


def houses(cell: Cell, town: int, round: int, count: int) -> list[Task]:
    numbers = [round * 1000 + n for n in range(count)]
    return [Task(id=f"houses/{n}", instruction=house(cell.recurrence, n, town).instruction, seed=n) for n in numbers]


def settings(learning: dict[str, Any], limit: int) -> Config:
    return parse({"search": {**SEARCH, "iterations": limit}, "reflection": learning, "limits": {"actions": 12}})


async def attempted(folder: Path, cell: Cell, town: int, tasks: Sequence[Task], learning: dict[str, Any]) -> list[Attempt]:
    """Attempt some houses of a town with one agent."""
    config, spent = settings(learning, cell.limit), dict[str, int]()
    environment: list[Any] = []

    def open_environments(task: Task) -> Any:
        environment[:] = [house(cell.recurrence, task.seed or 0, town)]
        return nullcontext(ToyFactory(environment[0]))

    def build(config: Config, models: object) -> Agent:
        reflector = None if config.reflection.kind == "none" else BuiltinReflector()
        return Agent(
            policy=RemindedPolicy(environment[0]), value=RemindedValue(environment[0], errs=cell.errs, seed=town), reflector=reflector
        )

    def watch(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        spent[task.id] = state.search.tree.iterations

    made = create(folder, tuple(tasks), config)
    lines: list[ResultLine] = await Runner(
        folder=made, config=config, open_environments=open_environments, build_agent=build, watch=watch
    ).run()
    return [Attempt(spent[line.task], line.score == 1.0) for line in lines]


def shuffled(lessons: Sequence[Reflection], rng: random.Random) -> list[Reflection]:
    """Return the reflections, each with the action of another."""
    others = rng.sample(lessons, len(lessons))
    return [
        msgspec.structs.replace(one, action=other.action, action_label=other.action_label)
        for one, other in zip(lessons, others, strict=True)
    ]


def inverted(lessons: Sequence[Reflection], rng: random.Random) -> list[Reflection]:
    """Return the reflections, each in the opposite direction."""
    return [msgspec.structs.replace(one, surprise=-one.surprise, expected=one.real, real=one.expected) for one in lessons]


WRONG = {"shuffled": shuffled, "inverted": inverted}


def spoilt(source: Path, target: Path, name: str, seed: int) -> None:
    """Make a memory from falsified reflections of another."""
    rng = random.Random(seed)
    SQLiteMemory(source).close()
    with SQLiteMemory(source) as true, SQLiteMemory(target) as wrong:
        for kind in ("policy", "value"):
            lessons = WRONG[name]([entry.reflection for entry in true.entries(kind=kind)], rng)
            wrong.add_all([msgspec.structs.replace(each, id=content_id(each)) for each in lessons])


def run_town(cell: Cell, town: int, count: int, control: bool) -> dict[str, Attempts]:
    """Run all rounds of a setting in one town, for each agent."""
    controls = WRONG if control else {}
    found: dict[str, Attempts] = {name: [] for name in ("mcts", "rmcts", *controls)}
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as home:
        memory = Path(home) / "memory.sqlite"
        for round in range(ROUNDS):
            tasks, base = houses(cell, town, round, count), Path(home) / str(round)
            for name in controls:
                wrong = Path(home) / f"{name}{round}.sqlite"
                spoilt(memory, wrong, name, 1000 * town + round)
                learning = {**LEARNING, "memory": str(wrong), "round": count}
                found[name].append(asyncio.run(attempted(base / name, cell, town, tasks, learning)))
            found["mcts"].append(asyncio.run(attempted(base / "mcts", cell, town, tasks, {"kind": "none"})))
            learning = {**LEARNING, "memory": str(memory), "round": count}
            found["rmcts"].append(asyncio.run(attempted(base / "rmcts", cell, town, tasks, learning)))
    return found


Pairs = list[tuple[Attempt, Attempt]]
"""Of an agent and of MCTS, on the same houses."""
Numbers = Sequence[tuple[float, float]]


def paired(towns: Sequence[dict[str, Attempts]], name: str, since: int = 0) -> list[Pairs]:
    """Return the attempts of an agent and of MCTS by town, from a round on."""
    return [
        [pair for ours, plain in zip(found[name][since:], found["mcts"][since:], strict=True) for pair in zip(ours, plain, strict=True)]
        for found in towns
    ]


def interval(towns: Sequence[Numbers], of: Callable[[Numbers], float], draws: int = 2000) -> tuple[float, float, float]:
    """Return a figure of paired numbers, with its 95 percent bootstrap interval over towns."""
    rng = random.Random(0)
    drawn = sorted(of([pair for town in rng.choices(towns, k=len(towns)) for pair in town]) for _ in range(draws))
    return of([pair for town in towns for pair in town]), drawn[int(0.025 * draws)], drawn[int(0.975 * draws)]


def ratio(pairs: Numbers) -> float:
    return sum(a for a, _ in pairs) / sum(b for _, b in pairs)


def gain(pairs: Numbers) -> float:
    return statistics.fmean(a - b for a, b in pairs)


def iterations(towns: Sequence[Pairs]) -> list[Numbers]:
    return [[(a.iterations, b.iterations) for a, b in pairs] for pairs in towns]


def successes(towns: Sequence[Pairs]) -> list[Numbers]:
    return [[(float(a.solved), float(b.solved)) for a, b in pairs] for pairs in towns]


def by_round(towns: Sequence[dict[str, Attempts]], name: str) -> list[float]:
    """Mean iterations for a house."""
    return [statistics.fmean(each.iterations for found in towns for each in found[name][round]) for round in range(ROUNDS)]


def compared(towns: Sequence[dict[str, Attempts]], name: str) -> dict[str, Any]:
    """Compare an agent with MCTS."""
    whole, later = paired(towns, name), paired(towns, name, since=1)
    both, after = [pair for pairs in whole for pair in pairs], [pair for pairs in later for pair in pairs]
    needed = interval(iterations(whole), ratio)
    return {
        "iterations": by_round(towns, name),
        "iterations_mcts": by_round(towns, "mcts"),
        "ratio": needed,
        "saved": (1 - needed[0], 1 - needed[2], 1 - needed[1]),
        "later": interval(iterations(later), ratio),
        "per_solved": _per_solved([a for a, _ in both]),
        "per_solved_mcts": _per_solved([b for _, b in both]),
        "success": statistics.fmean(a.solved for a, _ in both),
        "success_mcts": statistics.fmean(b.solved for _, b in both),
        "gain": interval(successes(whole), gain),
        "later_success": statistics.fmean(a.solved for a, _ in after),
        "later_success_mcts": statistics.fmean(b.solved for _, b in after),
        "later_gain": interval(successes(later), gain),
        "later_gain_by_town": [gain(pairs) for pairs in successes(later)],
    }


def _lost(row: dict[str, Any]) -> float:
    """Return the loss of success against MCTS in the rounds that have reflections."""
    return 0.0 - float(row["later_gain"][0])


def _per_solved(attempts: Sequence[Attempt]) -> float:
    """Return the iterations for each solved house."""
    return sum(each.iterations for each in attempts) / max(1, sum(each.solved for each in attempts))


def cells(quick: bool) -> list[Cell]:
    if quick:
        return [Cell(1.0, 0.0), Cell(1.0, 0.0, FEW), Cell(0.0, 0.0), Cell(1.0, 0.2)]
    return [Cell(1.0, 0.0), Cell(1.0, 0.0, FEW), *(Cell(r, 0.0) for r in (0.5, 0.25, 0.0)), *(Cell(1.0, e) for e in (0.1, 0.2, 0.3))]


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--houses", type=int, help="of a town in a round (20; with --quick 6)")
    options.add_argument("--towns", type=int, help=f"for each setting ({TOWNS}, {MORE} with controls; with --quick 3)")
    args = options.parse_args()
    count = args.houses or (6 if args.quick else 20)

    def towns(cell: Cell) -> int:
        return args.towns or (3 if args.quick else MORE if cell.limit == FEW else TOWNS)

    noise, chosen = _common.Noise(), cells(args.quick)
    noise.probe()
    rows: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(2) as pool:
        jobs = [(cell, [pool.submit(run_town, cell, SEED + n, count, cell.limit == FEW) for n in range(towns(cell))]) for cell in chosen]
        for cell, running in jobs:
            found = [job.result() for job in running]
            noise.probe()
            rows |= {f"{cell}: {name}": compared(found, name) for name in found[0] if name != "mcts"}
            print(f"{cell} done", file=sys.stderr, flush=True)
    shown = [
        [
            name,
            " ".join(f"{each:.0f}" for each in row["iterations"]),
            " ".join(f"{each:.0f}" for each in row["iterations_mcts"]),
            "{:.2f} [{:.2f}, {:.2f}]".format(*row["ratio"]),
            "{:.2f} [{:.2f}, {:.2f}]".format(*row["later"]),
            f"{row['later_success']:.2f} / {row['later_success_mcts']:.2f}",
            "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row["later_gain"]),
        ]
        for name, row in rows.items()
    ]
    _common.table(["", "iterations by round", "of MCTS", "ratio", "later", "later success", "gain in it"], shown)
    full, few = rows[f"{chosen[0]}: rmcts"], chosen[1]
    figures = [
        _common.Figure("iterations_ratio", full["ratio"][0], goal=0.5, at_least=False),
        _common.Figure("shuffled_loss", _lost(rows[f"{few}: shuffled"]), goal=0.05, at_least=False),
        _common.Figure("inverted_loss", _lost(rows[f"{few}: inverted"])),
        _common.Figure("success_gain", full["gain"][0], goal=-0.05),
    ]
    details = {
        "rows": rows,
        "towns": [towns(cell) for cell in chosen],
        "seed": SEED,
        "houses": count,
        "rounds": ROUNDS,
        "search": SEARCH,
        "learning": LEARNING,
        "limit": LIMIT,
        "few": FEW,
    }
    _common.finish(args, figures, noise, _common.versions("exact-agent"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
