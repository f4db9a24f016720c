"""Compare two commits: run quick forms of other benches in both by turns, and print the ratios of their figures.

    python bench/watch.py BASE [HEAD] [--benches NAME...] [--rounds N]

Without HEAD the working tree is measured. The other commit is checked out in a temporary folder and uses this virtual environment, so both
sides have the same packages; a bench that one side does not have, or that fails there, is named and left out. In each round the sides
change their order. A ratio is the median over the rounds of HEAD's figure over BASE's in the same round; a figure counts as changed where
all rounds, three at least, agree on the direction and the ratio is more than 5 % from 1. One round compares, and judges nothing.

  compared              figures that both sides have
  changed_for_worse     figures that are worse at HEAD than at BASE
  changed_for_better    figures that are better
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _common import ROOT, Figure, Noise, finish, parser, table, versions

BENCHES = ("browser_step", "restore", "overlap", "search_overhead", "startup")
"""Benches whose quick forms tell what a step, a return, hidden returns, the search itself and a start cost."""
QUICK = ("startup",)
"""Bench of this one's own quick form."""
CHANGED = 0.05
"""Least difference of a ratio from 1 that counts."""
LEAST = 3
"""Least number of rounds that must agree."""
LONGEST = 300.0
"""Seconds after which a quick form is given up."""
Figures = dict[str, dict[str, Any]]
"""Figures by name, each with `value`, `goal` and whether a larger one is better, where that is known."""


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = parser(__doc__ or "")
    options.add_argument("base", nargs="?", default="HEAD", help="commit to compare with (default: HEAD, against the working tree)")
    options.add_argument("head", nargs="?", default="", help="commit that is compared (default: the working tree)")
    options.add_argument("--benches", nargs="+", metavar="NAME", help=f"benches to run (default: {', '.join(BENCHES)})")
    options.add_argument("--rounds", type=int, default=0, metavar="N", help="rounds (default: 5, quick: 1)")
    return options.parse_args(arguments)


@contextmanager
def tree(commit: str) -> Iterator[Path]:
    """Give the folder of a commit's files; of the working tree for an empty name."""
    if not commit:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="exact-watch-") as folder:
        there = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", there, commit], cwd=ROOT, check=True)
        try:
            if (ROOT / ".bench").exists():
                (there / ".bench").symlink_to(ROOT / ".bench")
            yield there
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", there], cwd=ROOT, check=True)


def figures_of(bench: str, there: Path) -> Figures | str:
    """Run the quick form of a bench on a tree. Return its figures, or why there are none."""
    if not (there / "bench" / f"{bench}.py").is_file():
        return "is not there"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, str(there / "bench" / f"{bench}.py"), "--quick", "--json", str(out)]
        try:
            done = subprocess.run(command, cwd=there, env=os.environ | {"PYTHONPATH": str(there)}, capture_output=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return f"takes more than {LONGEST:g} s"
        if not out.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            return f"fails: {last[0][:120]}"
        found: Figures = json.loads(out.read_text())["figures"]
        return found


def compare(base: float, head: float) -> float | None:
    """Return the ratio of two values of a figure; None where it says nothing."""
    return head / base if base > 0 and head > 0 else None


def direction(figure: dict[str, Any]) -> int:
    """Return 1 where more is better, -1 where less is, 0 where the bench does not say."""
    if figure.get("goal") is None:
        return 0
    above = figure["value"] >= figure["goal"]
    return 1 if above == figure["met"] else -1


def verdict(ratios: Sequence[float], better: int) -> str:
    """Return whether a figure changed: `better`, `worse`, `changed` where the direction is unknown, or empty."""
    middle = statistics.median(ratios)
    if len(ratios) < LEAST or abs(middle - 1) <= CHANGED or not (all(each > 1 for each in ratios) or all(each < 1 for each in ratios)):
        return ""
    if not better:
        return "changed"
    return "better" if (middle > 1) == (better > 0) else "worse"


def main() -> None:
    options, noise = options_of(), Noise()
    rounds = options.rounds or (1 if options.quick else 5)
    benches = options.benches or (QUICK if options.quick else BENCHES)
    seen: dict[tuple[str, str], list[tuple[float, float]]] = {}
    better: dict[tuple[str, str], int] = {}
    left_out: dict[str, str] = {}
    with tree(options.base) as base, tree(options.head) as head:
        for number in range(rounds):
            for bench in benches:
                print(f"round {number + 1} of {rounds}: {bench}", file=sys.stderr, flush=True)
                noise.probe()
                sides = {side: figures_of(bench, there) for side, there in [("base", base), ("head", head)][:: -1 if number % 2 else 1]}
                for side, found in sides.items():
                    if isinstance(found, str):
                        left_out[f"{bench} at {side}"] = found
                if isinstance(sides["base"], str) or isinstance(sides["head"], str):
                    continue
                for name in sides["base"].keys() & sides["head"].keys():
                    before, after = sides["base"][name], sides["head"][name]
                    if compare(before["value"], after["value"]) is not None:
                        seen.setdefault((bench, name), []).append((before["value"], after["value"]))
                        better[bench, name] = direction(after)
    rows, judged = list[tuple[str, ...]](), list[str]()
    for key, values in sorted(seen.items()):
        ratios = [after / before for before, after in values]
        judged.append(verdict(ratios, better[key]))
        middles = (statistics.median(side) for side in zip(*values, strict=True))
        rows.append((": ".join(key), *(f"{each:.3g}" for each in middles), f"{statistics.median(ratios):.2f}", judged[-1]))
    table(("figure", "base", "head", "head/base", ""), rows)
    for what, why in left_out.items():
        print(f"{what}: {why}")
    figures = [Figure("compared", float(len(rows)))]
    if rounds >= LEAST:
        figures += [
            Figure("changed_for_worse", float(judged.count("worse")), 0, at_least=False),
            Figure("changed_for_better", float(judged.count("better"))),
        ]
    pairs = {": ".join(key): values for key, values in sorted(seen.items())}
    finish(
        options, figures, noise, versions("exact-agent"), {"base": options.base, "head": options.head, "pairs": pairs, "left_out": left_out}
    )


if __name__ == "__main__":
    main()
