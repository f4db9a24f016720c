"""Measure the speed-up of many workers on one tree, and their effect on decisions.

Simulated clock: policy and judge answer after 1 s each (constant, or heavy-tailed with the same mean), a step in a forked environment takes
0.1 s. The game is a decision tree of known answer with a noisy policy and judge. A decision is right if the committed action is the
one of the highest worth. One of the lines is ExACT's schedule: one call at a time, and every step after a reset and a replay of the
path (1 s for a reset, 2.5 s for an action: the fixed sleeps of its code). Real clock: the same search through the driver, with policy
and judge behind a real HTTP server that answers after --real seconds, by 1 and by 8 workers.

    python bench/parallel_search.py --json bench/results/parallel_search.json
    python bench/parallel_search.py --quick
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import math
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

import _common
from _noisy import Noisy
from _simulate import Latency, Simulation

from exact.config import SearchConfig
from exact.environments.toy.agents import NoisyJudge, NoisyPolicy
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.graph import gaussian
from exact.search.base import Need, Selection
from exact.search.registry import algorithm

WORKERS = (1, 2, 4, 8, 16)
BUDGETS = (8, 20, 60)
ITERATIONS = 128
STEP, RESET, SLEEP = 0.1, 1.0, 2.5
"""Seconds: a step in a forked environment; ExACT's reset, and its sleep after each action."""


def constant(need: Need, selection: Selection, depth: int) -> float:
    """Return latencies of 1 s for a call and 0.1 s for a step."""
    return STEP if need == "step" else 1.0


def heavy(seed: int) -> Latency:
    """Return latencies of 1 s on average for a call, log-normal with a deviation of 1 in the logarithm: one in twenty exceeds 3 s."""

    def seconds(need: Need, selection: Selection, depth: int) -> float:
        if need == "step":
            return STEP
        return math.exp(gaussian(seed, "latency", need, selection.id) - 0.5)

    return seconds


def replaying(need: Need, selection: Selection, depth: int) -> float:
    """ExACT's: calls take 1 s; before a step the environment is reset and the path replayed."""
    return RESET + (depth + 1) * SLEEP if need == "step" else 1.0


def config(iterations: int, **more: Any) -> SearchConfig:
    """Return the configuration of the measured search: the defaults."""
    return SearchConfig(iterations=iterations, depth=6, **more)


def larger(seed: int) -> Noisy:
    """Return a game that 128 iterations do not exhaust: six actions, as many as are proposed by default, and six steps."""
    tree = DecisionTree(6, 6, seed=seed, rate=0.003)
    return Noisy(tree, NoisyPolicy(tree, sd=0.3), NoisyJudge(tree, sd=0.2))


def smaller(seed: int) -> Noisy:
    """Return a game in which a few iterations can decide: four actions, four steps."""
    tree = DecisionTree(4, 4, seed=seed, rate=0.03)
    return Noisy(tree, NoisyPolicy(tree, sd=0.3), NoisyJudge(tree, sd=0.15))


def speed(
    seeds: Sequence[int], workers: int, latency: Callable[[int], Latency], expansion: Literal["lazy", "speculative"]
) -> tuple[float, dict[str, int]]:
    """Mean seconds of one search, and the calls of all."""
    seconds, calls = [], dict[str, int]()
    for seed in seeds:
        run = Simulation(larger(seed), algorithm(config(ITERATIONS, expansion=expansion)), latency(seed), workers, seed)
        seconds.append(run.search())
        for need, count in run.calls.items():
            calls[need] = calls.get(need, 0) + count
    return statistics.mean(seconds), calls


def right(seed: int, iterations: int, workers: int) -> float:
    """Return 1.0 where the search under heavy-tailed latencies decides correctly, else 0.0."""
    game = smaller(seed)
    run = Simulation(game, algorithm(config(iterations)), heavy(seed), workers, seed)
    run.search()
    return float(game.step("", run.decide())[0] == str(game.tree.right("")))


def difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Mean of the paired differences and its 95 percent interval (normal)."""
    gaps = [b - a for a, b in zip(one, other, strict=True)]
    mean, error = statistics.mean(gaps), 1.96 * statistics.stdev(gaps) / math.sqrt(len(gaps))
    return mean, mean - error, mean + error


def _workers(n: int) -> str:
    return f"{n} worker{'s' * (n > 1)}"


def speeds(seeds: Sequence[int], noise: _common.Noise) -> dict[str, dict[str, float]]:
    """Seconds for each schedule."""
    rows = {}
    schedules: list[tuple[str, int, Callable[[int], Latency], Literal["lazy", "speculative"]]] = [
        ("ExACT's schedule, 1 worker", 1, lambda seed: replaying, "lazy"),
        *((f"constant, {_workers(n)}", n, lambda seed: constant, "lazy") for n in WORKERS),
        *((f"heavy tails, {_workers(n)}", n, heavy, "lazy") for n in WORKERS),
        *((f"constant, {_workers(n)}, speculative", n, lambda seed: constant, "speculative") for n in (1, 8)),
    ]
    for name, workers, latency, expansion in schedules:
        seconds, calls = speed(seeds, workers, latency, expansion)
        noise.probe()
        rows[name] = {"seconds": seconds, **{need: count / len(seeds) for need, count in calls.items()}}
    return rows


def decisions(seeds: Sequence[int], noise: _common.Noise) -> dict[int, dict[int, list[float]]]:
    """Outcomes by iterations and workers."""
    found: dict[int, dict[int, list[float]]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for iterations, workers in itertools.product(BUDGETS, WORKERS):
            job = functools.partial(right, iterations=iterations, workers=workers)
            found.setdefault(iterations, {})[workers] = list(pool.map(job, seeds, chunksize=50))
            noise.probe()
    return found


def main() -> None:
    options = _common.parser(__doc__ or "")
    options.add_argument("--seeds", type=int, default=2000, help="games for the decisions (default 2000)")
    options.add_argument("--real", type=float, default=1.0, metavar="S", help="seconds after which the real server answers (default 1)")
    chosen = options.parse_args()
    seeds = range(200 if chosen.quick else chosen.seeds)
    noise = _common.Noise()
    rows = speeds(range(4 if chosen.quick else 20), noise)
    found = decisions(seeds, noise)
    real = asyncio.run(_real(0.1 if chosen.quick else chosen.real, 32 if chosen.quick else ITERATIONS))
    _print(rows, found, real)
    serial, eight = rows["constant, 1 worker"]["seconds"], rows["constant, 8 workers"]["seconds"]
    change = difference(found[20][1], found[20][8])
    figures = [
        _common.Figure("speedup_8_workers", serial / eight, 6.0),
        _common.Figure("real_over_simulated_8_workers", real["8"]["seconds"] / real["8"]["simulated"]),
        _common.Figure("value_change_20", 100 * change[0], -2.0),
    ]
    details = {
        "iterations": ITERATIONS,
        "seeds": len(seeds),
        "speed": rows,
        "right": {n: {w: statistics.mean(o) for w, o in by.items()} for n, by in found.items()},
        "change": {n: {w: difference(by[1], o) for w, o in by.items() if w > 1} for n, by in found.items()},
        "real": real,
    }
    _common.finish(chosen, figures, noise, _common.versions("exact-agent"), details)


def _print(rows: dict[str, dict[str, float]], found: dict[int, dict[int, list[float]]], real: dict[str, dict[str, float]]) -> None:
    base = rows["constant, 1 worker"]["seconds"]
    print(f"{ITERATIONS} iterations, simulated clock\n")
    header = ["schedule", "seconds", "speed-up", "judge calls", "policy calls", "steps"]
    _common.table(
        header,
        [
            [name, f"{r['seconds']:.1f}", f"{base / r['seconds']:.2f}", *(f"{r.get(n, 0):.0f}" for n in ("value", "proposals", "step"))]
            for name, r in rows.items()
        ],
    )
    print("\nright decisions under heavy-tailed latencies (change against 1 worker, 95 percent interval)\n")
    table = []
    for iterations, by in found.items():
        for workers, outcomes in by.items():
            gap = "" if workers == 1 else "{:+.1%} [{:+.1%}, {:+.1%}]".format(*difference(by[1], outcomes))
            table.append([f"{iterations} iterations, {_workers(workers)}", f"{statistics.mean(outcomes):.1%}", gap])
    _common.table(["search", "right", "change"], table)
    print("\nreal clock, through the driver and HTTP\n")
    _common.table(
        ["workers", "seconds", "simulated", "judge calls", "policy calls"],
        [[w, f"{r['seconds']:.1f}", f"{r['simulated']:.1f}", f"{r['values']:.0f}", f"{r['proposals']:.0f}"] for w, r in real.items()],
    )


async def _real(delay: float, iterations: int) -> dict[str, dict[str, float]]:
    """Run the driver over HTTP with 1 and with 8 workers, and return the simulated clock's seconds for the same search beside its own."""
    from _real_search import Script, Scripted, configured, search, tree

    found = {}
    for workers in (1, 8):
        settings = SearchConfig(**configured(iterations, workers))
        latency: Latency = lambda need, selection, depth: 0.0 if need == "step" else delay  # noqa: E731
        run = Simulation(Scripted(Script(tree())), algorithm(settings), latency, workers)
        found[str(workers)] = {**await search(delay, iterations, workers), "simulated": run.search()}
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
