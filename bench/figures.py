"""Write docs/results/figures.md from the headline figures in bench/results: python bench/figures.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from _common import ROOT

RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "results" / "figures.md"
HEAD = """# Figures

The headline figures of every benchmark, from its last run that is kept in `bench/results/` (quick runs are left out). A goal that was
missed stands here as it is. A commit with `+changes` was measured with changes that were not committed yet.
*Noise*: the 90th percentile of a fixed piece of work over its fastest time while it ran; above 1.5 the machine was too noisy for
times, while ratios taken side by side still hold. A run that was only put together again has none here; its own page says it.
`python bench/figures.py` writes this page.

| benchmark | figure | value | goal | | noise | date | commit |
|---|---|---:|---:|---|---:|---|---|
"""


def rows(result: dict[str, Any], name: str) -> list[str]:
    """Return a row of the table for each figure of one result."""
    factor, commit = result["noise"]["factor"], _short(result["commit"])
    noise = "" if factor is None else f"{factor:.1f}"
    found = []
    for figure, told in result["figures"].items():
        goal, mark = ("", "") if told["goal"] is None else (f"{told['goal']:g}", "met" if told["met"] else "**missed**")
        found.append(f"| `{name}` | {figure} | {told['value']:,.4g} | {goal} | {mark} | {noise} | {result['date'][:10]} | {commit} |")
    return found


def _short(commit: str) -> str:
    """Return the first digits of a commit, marked where the tree differed from it."""
    head, mark, changes = commit.partition("+")
    return head[:8] + mark + changes


def page(folder: Path = RESULTS) -> str:
    """Return the whole page."""
    lines = []
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text())
        if "figures" in result and "noise" in result and not result.get("quick"):
            lines += rows(result, path.stem)
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE.relative_to(ROOT)} written")
