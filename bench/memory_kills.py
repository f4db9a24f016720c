"""Let eight processes write 500 reflections each to one memory, kill every second one, and count lost and duplicate reflections.

A killed writer is started again after its last acknowledged reflection. `lost`: acknowledged and not there. `twice`: there more than once.
`strange`: there and never written. `damaged`: what SQLite's own check finds. With `--postgres URL` on a server instead of in a file.

    python bench/memory_kills.py [--quick] [--postgres URL]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import _common

sys.path.insert(0, str(_common.ROOT))

from exact.reflection.memory.open import open_memory
from tests.reflection.kills import storm


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--postgres", default="", metavar="URL", help="an empty database")
    args = options.parse_args()
    writes = 60 if args.quick else 500
    noise = _common.Noise()
    noise.probe()
    with tempfile.TemporaryDirectory() as home:
        where = args.postgres or str(Path(home) / "memory.sqlite")
        open_memory(where).close()
        stored, kills = storm(where, writers=8, writes=writes, every=1.0)
        noise.probe()
        with open_memory(where) as memory:
            found = Counter(entry.reflection.id for entry in memory.entries(None))
            damaged = 0 if args.postgres else int(memory._database.execute("PRAGMA integrity_check") != [("ok",)])
            kept = len(memory)
    expected = {f"w{writer}-{number}" for writer in range(8) for number in range(writes)}
    counts = {
        "lost": len(set(stored) - set(found)),
        "twice": sum(count > 1 for count in found.values()),
        "strange": len(set(found) - expected),
        "damaged": damaged,
    }
    rows = {"acknowledged": len(stored), "there": len(found), "kept": kept, "kills": kills, **counts}
    _common.table(["", "reflections"], [[name, str(count)] for name, count in rows.items()])
    figures = [
        _common.Figure("kills", kills, goal=1),
        _common.Figure("acknowledged", len(set(stored)), goal=8 * writes),
        *(_common.Figure(name, count, goal=0, at_least=False) for name, count in counts.items()),
    ]
    _common.finish(args, figures, noise, _common.versions("exact-agent"), {"rows": rows})
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
