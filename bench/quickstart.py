"""Measure the README's first command in a checkout that is set up: its seconds, its memory, and the tasks that it solves.

Memory is the largest sum of the proportional set sizes (PSS) of the command and all its children; shared pages are counted once. The
seconds include the set-up where it has something to do; `quickstart_tasks_s` is that of the five tasks alone.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time

from _common import ROOT, Figure, Noise, finish, parser, table, versions

from exact.environments.pool.capacity import measure_usage

LOOK = 0.2
"""Seconds between two looks at the memory."""


def quickstart() -> tuple[float, int, list[dict[str, object]]]:
    """Seconds, bytes at most, and the results of the run."""
    before, ended, most = set((ROOT / "runs").glob("quickstart-*")), threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(LOOK):
            most[0] = max(most[0], measure_usage().memory)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.perf_counter()
    subprocess.run(["bash", str(ROOT / "shells" / "quickstart.sh")], check=True)
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    (run,) = set((ROOT / "runs").glob("quickstart-*")) - before
    return seconds, most[0], [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    noise = Noise()
    noise.probe()
    seconds, memory, results = quickstart()
    for _ in range(20):
        noise.probe()
    print()
    table(
        ("task", "score", "steps", "seconds"),
        [[str(r["task"]), str(r["score"]), str(r["transitions"]), str(r["seconds"])] for r in results],
    )
    figures = [
        Figure("quickstart_s", seconds, 120, at_least=False),
        Figure("quickstart_tasks_s", sum(float(str(each["seconds"])) for each in results), 8, at_least=False),
        Figure("quickstart_mib", memory / 2**20, 1024, at_least=False),
        Figure("quickstart_solved", sum(each["score"] == 1.0 for each in results), 5),
    ]
    finish(options, figures, noise, versions("exact-agent", "miniwob", "playwright"), {"results": results})


if __name__ == "__main__":
    main()
