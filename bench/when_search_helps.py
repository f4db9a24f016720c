"""What does search bring with a judge of known quality? Reliability of the learned value, and the gain of search against a judge's AUC.

The plan, with tasks, seeds, rows and rules, was committed before any run: bench/plans/when_search_helps.md. Three parts; each goes on from
--work after an interruption:

    reliability   the learned agent alone on held-out and training tasks; at each state the values of three judges, and the outcome
    pages         R-MCTS on training tasks with oracles of known noise, with the agents' own values, and with controls
    worlds        the same on decision trees of known answer

    python bench/when_search_helps.py --run pages --minutes 40
    python bench/when_search_helps.py --json bench/results/when_search_helps.json --plot docs/images/when_search_helps.svg
    python bench/when_search_helps.py --quick      compute every figure from the records, and run some of them again
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import _common
from _continuations import Judged
from _paired import Attempt
from _plot import relation
from _when import (
    FOLDER,
    MAIN,
    MEASURES,
    AloneEpisode,
    Row,
    auc_of,
    counted,
    least_auc,
    pages,
    read,
    reliable,
    series,
    shown,
    within_reach,
    worlds,
    write,
)
from _when_runs import DEVIATIONS, ROWS, WORK, keep_pages, pages_tasks, reliability_ids, run_pages, run_reliability, run_worlds
from _worlds import BUDGETS, KINDS, SEARCHES, Played, jobs, played
from _worlds import DEVIATIONS as SPREADS

from exact.learning.builtin.split import load_split

RESULT = _common.ROOT / "bench" / "results" / "when_search_helps.json"


def hashes() -> dict[str, str]:
    """Return the SHA-256 of the records."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FOLDER.glob("*.gz"))}


def show() -> tuple[dict[str, Any], list[_common.Figure], str]:
    """Print the tables. Return what they hold, the figures, and the plot."""
    values, reliability_figures = show_reliability()
    rows, tasks = show_pages()
    cells = show_worlds()
    plotted = relation(
        series(rows, list(DEVIATIONS), cells),
        x="AUC of the judge for what the policy alone reaches",
        y="gain of search over the policy alone",
        title="What search brings, by the quality of its judge",
        xs=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        ys=(-0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    )
    search, kind, budget = MAIN
    figures = [
        *reliability_figures,
        _common.Figure("gain_perfect_judge_low", rows["oracle_0"].gain.low, goal=0.001),
        _common.Figure("gain_shuffled_low", rows["shuffled"].gain.low, goal=0.0, at_least=False),
        _common.Figure("gain_constant_low", rows["constant"].gain.low, goal=0.0, at_least=False),
        _common.Figure("auc_that_gains_pages", least_auc([rows[name] for name in DEVIATIONS])),
        _common.Figure(
            "auc_that_gains_worlds",
            least_auc([row for key, row in cells.items() if (key[0], key[1], key[3]) == (search, kind, budget)]),
        ),
    ]
    details = {
        "hashes": hashes(), "reliability": values, "tasks": tasks, "pages": {name: plain(row) for name, row in rows.items()},
        "worlds": [dict(zip(("search", "noise", "sd", "evaluations"), key, strict=True)) | plain(row) for key, row in cells.items()],
    }  # fmt: skip
    return details, [each for each in figures if not math.isnan(each.value)], plotted


def plain(row: Row) -> dict[str, Any]:
    """Return a row as JSON holds it."""
    return {"quality": row.quality and row.quality._asdict(), "success": row.success, "gain": row.gain}


def show_reliability() -> tuple[dict[str, Any], list[_common.Figure]]:
    split, episodes = load_split(), read("reliability", AloneEpisode)
    print(f"{sum(not each.states for each in episodes)} of {len(episodes)} episodes have no outcome\n")
    values, lines = dict[str, Any](), []
    for part, names in {"held out": split.held_out, "seen": split.training}.items():
        states = [state for each in episodes for state in each.states if each.task.partition("?")[0] in names]
        for which, chosen in {"all": states, "before the end": [each for each in states if not each.ended]}.items():
            found = values[f"{part}, {which}"] = reliable(chosen)
            for judge, of in found.items():
                lines.append([f"{part}, {which}", judge, str(of["states"]), *(shown(of.get(name)) for name in MEASURES)])
    _common.table(["states", "judge", "number", "Brier", "ECE", "AUC", "AUC in a task"], lines)
    print()
    bins = [
        [f"{low / 5:.1f} to {(low + 1) / 5:.1f}", *(_bin(values[f"{part}, all"][judge]["bins"], low) for part, judge in BINNED)]
        for low in range(5)
    ]
    _common.table(["value: states, mean, succeeded", *(f"{judge}, {part}" for part, judge in BINNED)], bins)
    print()
    held = values["held out, all"]
    figures = [_common.Figure(f"learned_{name}_heldout", held["learned"][name].value) for name in ("auc", "ece", "brier")]
    return values, [*figures, _common.Figure("lexical_auc_heldout", held["lexical"]["auc"].value)]


BINNED = tuple((part, judge) for judge in ("learned", "lexical") for part in ("held out", "seen"))


def _bin(bins: Sequence[Mapping[str, float]], low: int) -> str:
    found = next((each for each in bins if round(each["low"] * 5) == low), None)
    return "-" if found is None else f"{found['states']}, {found['value']:.2f}, {found['rate']:.2f}"


def show_pages() -> tuple[dict[str, Row], list[str]]:
    attempts, states = read("attempts", Attempt), read("states", Judged)
    tasks = counted(attempts, ROWS, [task.id for task in pages_tasks()])
    rows = pages(attempts, states, ROWS, tasks)
    kept = [each for each in attempts if each.task in tasks]
    print(f"pages: {len(tasks)} tasks, {len(kept)} attempts, {sum(each.score is None for each in kept)} without a score\n")
    lines = []
    for name, row in rows.items():
        steps = [each.transitions for each in kept if each.row == name and each.score is not None]
        judged, of = row.quality, [each for each in states if each.row == name and each.task in tasks]
        cells = ["-"] * 4 if judged is None else [
            f"{judged.states} of {len(of)}", shown(judged.auc), shown(judged.auc_within),
            "-" if judged.correlation is None else f"{judged.correlation:.2f}",
        ]  # fmt: skip
        lines.append([name + (" (ORACLE)" if name in DEVIATIONS else ""), *cells, str(row.success), str(row.gain), f"{fmean(steps):.1f}"])
    reach = within_reach(attempts, states, tasks)
    print(f"greedy fails {len(reach['failed'])}; a state from which it succeeds was evaluated in {', '.join(reach['within_reach'])}\n")
    _common.table(["row", "states", "AUC", "AUC in a task", "correlation", "success", "gain over greedy", "steps"], lines)
    print()
    return rows, tasks


def show_worlds() -> dict[tuple[str, str, float, int], Row]:
    cells = worlds(read("worlds", Played))
    for search in SEARCHES:
        for kind in KINDS:
            print(f"worlds, {search}, {kind} errors: gain over the policy alone (AUC) by evaluations for each action\n")
            lines = [[f"{sd:g}", *(_cell(cells[search, kind, sd, budget]) for budget in BUDGETS)] for sd in SPREADS]
            _common.table(["error", *map(str, BUDGETS)], lines)
            print()
    return cells


def _cell(row: Row) -> str:
    return f"{row.gain.mean:+.2f} ±{row.gain.high - row.gain.mean:.2f} ({auc_of(row):.2f})"


async def again(work: Path, parallel: int) -> list[str]:
    """Run some records again, and return where they differ."""
    wrong, cells = list[str](), {(each.search, each.kind, each.sd, each.budget): each for each in read("worlds", Played)}
    wrong += [f"worlds, {cell}" for cell in jobs(quick=True) if not cells[cell].outcomes.startswith(played(cell, range(12)).outcomes)]
    chosen = [each for each in read("reliability", AloneEpisode) if each.states][::40]
    file = work / "quick.jsonl"
    file.unlink(missing_ok=True)
    found = await run_reliability(file, [each.task for each in chosen], parallel)
    return wrong + [f"reliability, {kept.task}" for kept, new in zip(chosen, found, strict=True) if kept != new]


def differences(details: Mapping[str, Any], figures: Sequence[_common.Figure]) -> list[str]:
    """Return where the records differ from the kept result."""
    kept = json.loads(RESULT.read_text())
    wrong = [name for name, digest in details["hashes"].items() if kept["hashes"].get(name) != digest]
    return wrong + [each.name for each in figures if round(each.value, 4) != kept["figures"][each.name]["value"]]


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--run", default="", metavar="PART,...", help="reliability, pages, worlds: what to run before the tables")
    options.add_argument("--minutes", type=float, default=40.0, help="time for the pages")
    options.add_argument("--plot", type=Path, metavar="FILE", help="draw gain against AUC there, as SVG")
    options.add_argument("--work", type=Path, default=WORK)
    options.add_argument("--parallel", type=int, default=6)
    args = options.parse_args()
    noise, parts = _common.Noise(), args.run.split(",")
    args.work.mkdir(parents=True, exist_ok=True)
    if "reliability" in parts:
        write("reliability", await run_reliability(args.work / "reliability.jsonl", reliability_ids(), args.parallel))
    if "worlds" in parts:
        run_worlds(args.work)
    if "pages" in parts:
        await run_pages(args.work, pages_tasks(), ROWS, args.parallel, args.minutes, noise)
        keep_pages(args.work)
    if parts != [""]:
        return 0
    details, figures, plotted = show()
    if args.quick:
        wrong = [*differences(details, figures), *await again(args.work, args.parallel)]
        print("the records do not match: " + "; ".join(wrong) if wrong else "figures, hashes and what was run again match the records")
    if args.plot:
        args.plot.write_text(plotted)
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), details)
    return 1 if args.quick and wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
