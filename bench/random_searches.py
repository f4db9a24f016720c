"""Run random searches of all algorithms with several workers and failures, and count those that break an invariant.

Each search has an environment, settings, a number of workers and an order of results at random. It searches and commits up to five times.
Four in ten environments have chance in them. Now and then the tree is replaced by a copy, or by what the moves so far make of a new one, as
when a run is resumed. A search must end; use no more iterations than were granted; leave no reservation; count each visit once; never
evaluate a state twice with the same draw; stop only when nothing is in flight; find an action to commit wherever the policy proposed one;
and ask for the same work when it is resumed. The searches, 2,700 for each of eleven algorithms, are those of
`tests/search/test_any_order.py`.

    python bench/random_searches.py [--quick]
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

import _common

sys.path.insert(0, str(_common.ROOT))

from tests.search.test_any_order import CONSTANTS, NAMES, TROUBLES, whole_search

EACH, QUICK = 2_700, 60
VARIANTS = {"tot_bfs vote": "tot_bfs", "gumbel visits": "gumbel"}
"""Names that are a setting of an algorithm, which share its searches."""


def main() -> int:
    options = _common.parser(__doc__ or "").parse_args()
    each, noise, dice = QUICK if options.quick else EACH, _common.Noise(), random.Random(7)
    algorithms = sorted({VARIANTS.get(name, name) for name in NAMES})
    rows, faults = [], Counter[str]()
    for algorithm in algorithms:
        names = [name for name in NAMES if VARIANTS.get(name, name) == algorithm]
        noise.probe()
        began, bad = time.perf_counter(), 0
        for number in range(each):
            luck = dice.randrange(2**32), dice.randint(1, 6), dice.choice(TROUBLES), dice.choice(CONSTANTS)
            try:
                whole_search(names[number % len(names)], *luck)
            except AssertionError as error:
                bad += 1
                faults[f"{algorithm}: {str(error).splitlines()[0]} (luck {luck})"] += 1
        rows.append([algorithm, f"{each:,}", str(bad), f"{time.perf_counter() - began:.1f}"])
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    for fault in list(faults)[:20]:
        print(fault, file=sys.stderr)
    _common.table(["algorithm", "searches", "that break an invariant", "seconds"], rows)
    figures = [
        _common.Figure("random_searches", each * len(algorithms), goal=11 * each),
        _common.Figure("broken_invariants", sum(faults.values()), goal=0, at_least=False),
    ]
    _common.finish(options, figures, noise, _common.versions("exact-agent"), {"rows": rows})
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
