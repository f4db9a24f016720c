"""Compare the quick forms of other benches with their last whole runs: figure by figure, within 10 % or not.

A quick form has fewer rounds, so some of its figures mean something else. `quick_forms.json` has the ratio of each figure in its quick form
to the same figure of the whole run that is kept in bench/results. A bench prints a figure of its quick form among its headline figures only
where the two are within 10 % of each other there.

    python bench/quick_forms.py [NAME...]       the named benches, or all that have a whole run: half an hour
    python bench/quick_forms.py --quick         one bench that takes seconds; nothing is written

  compared     figures in both forms
  agree        figures within 10 %
"""

from __future__ import annotations

import json
import sys

from _common import QUICK_FORMS, ROOT, Figure, Noise, agree, finish, parser, table, versions
from watch import figures_of

KEPT = ROOT / "bench" / "results"
SHORT = ("startup",)
"""Bench of this one's own quick form."""


def whole_runs() -> dict[str, dict[str, float]]:
    """Return the figures of each bench that has a whole run, by its name."""
    found = {}
    for path in sorted(KEPT.glob("*.json")):
        result = json.loads(path.read_text())
        if (ROOT / "bench" / f"{path.stem}.py").is_file() and result.get("figures") and not result.get("quick"):
            found[path.stem] = {name: told["value"] for name, told in result["figures"].items()}
    return found


def ratios(whole: dict[str, float], quick: dict[str, float]) -> dict[str, float | None]:
    """Return the ratio of each figure that both have; 1 for equal ones, None where the whole run's is 0 and the other is not."""
    both = [name for name in whole if name in quick]
    return {name: 1.0 if quick[name] == whole[name] else round(quick[name] / whole[name], 3) if whole[name] else None for name in both}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("names", nargs="*", metavar="NAME", help="benches to run (default: all that have a whole run)")
    asked, noise = options.parse_args(), Noise()
    kept = whole_runs()
    names = asked.names or (SHORT if asked.quick else tuple(kept))
    if unknown := [name for name in names if name not in kept]:
        sys.exit(f"no whole run of {', '.join(unknown)} is kept in {KEPT.relative_to(ROOT)}: run it with --json first")
    known = json.loads(QUICK_FORMS.read_text()) if QUICK_FORMS.exists() else {}
    rows, found = list[tuple[str, ...]](), dict[str, dict[str, float | None]]()
    for name in names:
        print(name, file=sys.stderr, flush=True)
        noise.probe()
        quick = figures_of(name, ROOT)
        if isinstance(quick, str):
            rows.append((name, "", "", quick))
            continue
        values = {figure: told["value"] for figure, told in quick.items()}
        found[name] = ratios(kept[name], values)
        for figure, ratio in found[name].items():
            shown = "-" if ratio is None else f"{ratio:.2f}"
            rows.append(
                (f"{name}: {figure}", f"{kept[name][figure]:.4g}", f"{values[figure]:.4g}", f"{shown}{'' if agree(ratio) else ' *'}")
            )
        if not asked.quick:
            QUICK_FORMS.write_text(json.dumps(dict(sorted((known | found).items())), indent=1) + "\n")
    table(("figure", "whole", "quick", "quick/whole"), rows)
    print("* not a headline figure of the quick form")
    every = [ratio for each in found.values() for ratio in each.values()]
    figures = [Figure("compared", float(len(every))), Figure("agree", float(sum(map(agree, every))))]
    finish(asked, figures, noise, versions("exact-agent"), {"ratios": found})


if __name__ == "__main__":
    main()
