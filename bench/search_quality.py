"""Measure the success of each search algorithm at equal numbers of evaluations.

The games are decision trees with known answers (bench/_noisy.py), a policy and a judge with configured errors. Before each committed
action an algorithm may search with at most 4, 8, 16, 32 or 64 evaluations; the number used is in brackets. Success: the reached end
succeeds. Results are paired by seed, so gains over the policy alone have intervals of their own.

Judge noise: independent; persistent for each state (another evaluation must not cure it); correlated among siblings; growing with depth;
false positives; and pure (values without information: no search may gain). The policy misses the right action in 15 or 30 percent of the
states. Baselines: the policy alone, greedy (one step ahead), best of n, flat halving.

    python bench/search_quality.py --json bench/results/search_quality.json --plot docs/images/search_quality.svg
    python bench/search_quality.py --quick
    python bench/search_quality.py --vary bench/search_settings.yaml      settings of mcts against the default, paired
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import _common
import yaml
from _noisy import BRANCHING, DEPTH, Noisy, success
from _plot import plot

from exact.config import SearchConfig
from exact.search.registry import algorithm

BUDGETS = (4, 8, 16, 32, 64)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "independent": {},
    "persistent": {"kind": "persistent"},
    "correlated": {"kind": "correlated"},
    "drift": {"kind": "drift", "sd": 0.5},
    "false positives 5%": {"kind": "false_positive", "false_positives": 0.05},
    "false positives 10%": {"kind": "false_positive", "false_positives": 0.1},
    "missing 15%": {"missing": 0.15},
    "missing 30%": {"missing": 0.3},
    "pure": {"kind": "pure"},
}
MAIN = "independent"

Configure = Callable[[int], SearchConfig]


def _config(name: str, **more: Any) -> Configure:
    """Return an algorithm's configuration for a number of evaluations."""
    return lambda n: SearchConfig(**{"algorithm": name, "iterations": n, "k": BRANCHING, "depth": DEPTH, **more})


ALGORITHMS: Mapping[str, Configure] = {
    "policy alone": _config("react"),
    "greedy": _config("greedy"),
    "best_of_n": lambda n: SearchConfig(algorithm="best_of_n", iterations=n, k=BRANCHING, depth=DEPTH, breadth=n),
    "flat_halving": _config("flat_halving", evaluations=64),
    "best_first": _config("best_first"),
    "beam": _config("beam"),
    "tot_bfs": _config("tot_bfs"),
    "tot_dfs": _config("tot_dfs"),
    "mcts": _config("mcts"),
    "mcts, uct": _config("mcts", explore="uct"),
    "mcts, repeat": _config("mcts", revisit="repeat"),
    "mcts, visits": _config("mcts", final="visits"),
    "mcts, value": _config("mcts", final="value"),
    "mcts, max": _config("mcts", backup="max"),
    "mcts, c 0.25": _config("mcts", c=0.25),
    "mcts, 3 judgements": _config("mcts", evaluations=3),
    "gumbel": _config("gumbel"),
    "abmcts": _config("abmcts"),
}

VARIANTS = tuple(name for name in ALGORITHMS if name.startswith("mcts,"))
"""Measured in the main setting and in one more."""
VARIED = (MAIN, "persistent")

Job = tuple[str, str, int, range]


def job(what: Job) -> tuple[list[float], float]:
    """Outcomes of one algorithm in one setting at one budget."""
    name, setting, budget, seeds = what
    return success(seeds, lambda seed: Noisy.make(seed, **SETTINGS[setting]), lambda: algorithm(ALGORITHMS[name](budget)), budget)


def half(outcomes: Sequence[float]) -> float:
    """Half the width of a 95 percent interval of a mean (normal)."""
    return 1.96 * statistics.stdev(outcomes) / math.sqrt(len(outcomes))


def gain(base: Sequence[float], outcomes: Sequence[float]) -> tuple[float, float]:
    """Mean paired difference, and half the width of its interval."""
    gaps = [b - a for a, b in zip(base, outcomes, strict=True)]
    return statistics.mean(gaps), half(gaps)


def main() -> None:
    options = _common.parser(__doc__ or "")
    options.add_argument("--plot", type=Path, metavar="FILE", help="draw success against judgements there, as SVG")
    options.add_argument("--seeds", type=int, default=200, help="games for the main setting; half of them for the others")
    options.add_argument(
        "--vary", type=Path, metavar="FILE", help="YAML of settings of mcts by name: measure these against the default alone"
    )
    chosen = options.parse_args()
    if chosen.vary is not None:
        return vary(yaml.safe_load(chosen.vary.read_text()), 16 if chosen.quick else chosen.seeds)
    seeds = 16 if chosen.quick else chosen.seeds
    budgets, settings = ((8, 32), (MAIN, "pure")) if chosen.quick else (BUDGETS, tuple(SETTINGS))
    jobs: list[Job] = [
        (name, setting, n, range(seeds if setting == MAIN else max(2, seeds // 2)))
        for setting in settings
        for name in _measured(setting)
        for n in budgets
    ]
    noise, found = _common.Noise(), {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, (what, result) in enumerate(zip(jobs, pool.map(job, jobs), strict=True), 1):
            found[what[:3]] = result
            noise.probe()
            print(f"\r{done:4} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for setting in settings:
        _print(setting, budgets, found)
    if chosen.plot:
        lines = {name: [statistics.mean(found[name, MAIN, n][0]) for n in budgets] for name in PLOTTED}
        chosen.plot.write_text(
            plot(
                lines,
                budgets,
                x="judgements for each committed action",
                y="success",
                title="Success at equal judgements, independent noise",
            )
        )
    _common.finish(chosen, _figures(found, budgets), noise, _common.versions("exact-agent"), _details(found, seeds))


def vary(settings: Mapping[str, Mapping[str, Any]], seeds: int) -> None:
    """Print the gain of each of the settings over the default, paired by game, over the judge errors of VARY together."""
    settings = {"default": {}, **settings}
    jobs = [
        (dict(more), error, n, range(seeds if error == MAIN else seeds // 2))
        for more in settings.values()
        for error in VARY
        for n in (8, 32)
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = iter(list(pool.map(varied, jobs)))
    rows, base = list[list[str]](), dict[int, list[float]]()
    for name in settings:
        outcomes: dict[int, list[float]] = {8: [], 32: []}
        used: dict[int, list[float]] = {8: [], 32: []}
        for _, n in itertools.product(VARY, (8, 32)):
            scores, spent = next(found)
            outcomes[n] += scores
            used[n].append(spent)
        base = base or outcomes
        gains = [gain(base[n], outcomes[n]) for n in (8, 32)]
        rows.append([name, *(f"{mean:+.3f} ±{width:.3f}" for mean, width in gains), *(f"{statistics.mean(used[n]):.1f}" for n in (8, 32))])
    _common.table(["setting", "gain at 8", "gain at 32", "used of 8", "used of 32"], rows)


VARY = (MAIN, "persistent", "correlated", "false positives 5%", "missing 15%")
"""Kinds of judge errors and policies that settings are compared in."""


def varied(what: tuple[Mapping[str, Any], str, int, range]) -> tuple[list[float], float]:
    """Return the outcomes of mcts with some settings in one kind of error at one budget, and the evaluations used."""
    more, error, n, seeds = what
    config = _config("mcts", **more)
    return success(seeds, lambda seed: Noisy.make(seed, **SETTINGS[error]), lambda: algorithm(config(n)), n)


PLOTTED = ("policy alone", "greedy", "best_of_n", "flat_halving", "best_first", "beam", "mcts", "gumbel", "abmcts")


def _measured(setting: str) -> list[str]:
    """Return the algorithms that are measured in a setting."""
    return [name for name in ALGORITHMS if setting in VARIED or name not in VARIANTS]


def _print(setting: str, budgets: Sequence[int], found: dict[tuple[str, str, int], tuple[list[float], float]]) -> None:
    count = len(found[next(iter(ALGORITHMS)), setting, budgets[0]][0])
    print(f"\njudge and policy: {setting}; success by judgements allowed (used) for each action, {count} games, 95 percent intervals\n")
    rows = []
    for name in _measured(setting):
        cells = []
        for n in budgets:
            outcomes, spent = found[name, setting, n]
            cells.append(f"{statistics.mean(outcomes):.2f} ±{half(outcomes):.2f} ({spent:.0f})")
        rows.append([name, *cells])
    _common.table(["algorithm", *map(str, budgets)], rows)


def _figures(found: dict[tuple[str, str, int], tuple[list[float], float]], budgets: Sequence[int]) -> list[_common.Figure]:
    """Gains over the policy alone, paired; with values that say nothing there must be none."""
    figures = []
    for name, n in (("mcts", budgets[len(budgets) // 2]), ("gumbel", 8), ("best_of_n", budgets[len(budgets) // 2])):
        mean, _ = gain(found["policy alone", MAIN, n][0], found[name, MAIN, n][0])
        figures.append(_common.Figure(f"{name}_gain_{n}", mean))
    pure = [gain(found["policy alone", "pure", n][0], found[name, "pure", n][0]) for name in _measured("pure") for n in budgets]
    figures.append(_common.Figure("largest_low_end_of_gain_pure", max(mean - width for mean, width in pure), 0.0, at_least=False))
    return figures


def _details(found: dict[tuple[str, str, int], tuple[list[float], float]], seeds: int) -> dict[str, Any]:
    rows = [
        {
            "algorithm": name,
            "setting": setting,
            "judgements": n,
            "used": round(spent, 1),
            "games": len(outcomes),
            "success": round(statistics.mean(outcomes), 4),
            "half_width": round(half(outcomes), 4),
            "gain": [round(figure, 4) for figure in gain(found["policy alone", setting, n][0], outcomes)],
        }
        for (name, setting, n), (outcomes, spent) in found.items()
    ]
    return {"seeds": seeds, "settings": {name: dict(given) for name, given in SETTINGS.items()}, "rows": rows}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
