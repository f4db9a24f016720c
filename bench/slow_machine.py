"""Ten tasks beside eight busy loops: whether a slow machine is taken for another state, or for a failure.

    python bench/slow_machine.py [--loops N]

R-MCTS with the built-in agent attempts ten tasks of MiniWoB++ on the machine at rest, and again beside loops that keep it busy. Its
journals say how often a return did not arrive at the state that was seen, what failed, and by how much limits of time were stretched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _common import ROOT, Figure, Noise, finish, parser, table, versions

from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal

TASKS = (
    "click-tab", "click-tab-2", "enter-text", "click-checkboxes", "login-user", "click-collapsible", "click-dialog", "choose-list",
    "navigate-tree", "click-menu",
)  # fmt: skip
SEED = 4100
SECONDS = 1800
"""Seconds of an attempt: no limit of the attempt's own ends it on a machine that is nine times slower."""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the machine busy with some endless loops during the block."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def attempted(tasks: tuple[str, ...], out: Path) -> list[tuple[str, list[ev.AnyEvent]]]:
    """Return the events of an attempt at each task."""
    patterns = [f"miniwob/{task}?seed={SEED}" for task in tasks]
    settings = ("--own-budgets", "--no-reports", "--parallel", "1", "--set", f"limits.seconds={SECONDS}")
    command = [sys.executable, "-m", "exact.cli", "bench", *patterns, "--agent", "shells/configs/rmcts_builtin.yaml", *settings]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    done = subprocess.run([*command, "--out", str(out)], env=environ, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode not in {0, 3}:
        sys.exit(done.stderr[-2000:])
    return [(path.parent.name, list(read_journal(path))) for path in sorted(out.rglob("journal.jsonl"))]


def counted(events: list[ev.AnyEvent]) -> tuple[int, int, bool, float]:
    """Return the returns to another state, the failures, whether the task was solved, and the stretch of limits of time."""
    others = sum(isinstance(each, ev.Arrived) and each.match in {"drifted", "diverged"} for each in events)
    failures = sum(isinstance(each, ev.Failed) and each.what == "environment" for each in events)
    ends = [each for each in events if isinstance(each, ev.Finished)]
    solved = any(isinstance(each, ev.Scored) and each.score.success for each in events)
    return others, failures + sum(each.status == "failed" for each in ends), solved, max((each.stretched for each in ends), default=1.0)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--loops", type=int, default=8, metavar="N", help="busy loops beside the second half")
    given, noise = options.parse_args(), Noise()
    tasks = TASKS[:1] if given.quick else TASKS
    noise.probe()
    with tempfile.TemporaryDirectory() as name:
        rest = attempted(tasks, Path(name) / "rest")
        noise.probe()
        with busy(given.loops):
            slow = attempted(tasks, Path(name) / "busy")
    noise.probe()
    found = {"rest": [counted(events) for _, events in rest], "busy": [counted(events) for _, events in slow]}
    rows = [
        (task, *(str(each) for kind in found.values() for each in kind[number]))
        for number, (task, _) in enumerate(rest)
    ]  # fmt: skip
    table(("task", "others", "failed", "solved", "stretch", "others, busy", "failed", "solved", "stretch"), rows)
    figures = [
        Figure("attempts", len(slow)),
        Figure("solved_at_rest", sum(each[2] for each in found["rest"])),
        Figure("solved_busy", sum(each[2] for each in found["busy"])),
        Figure("stretched_busy", max(each[3] for each in found["busy"])),
        Figure("other_states_busy", sum(each[0] for each in found["busy"]), 0, at_least=False),
        Figure("failures_busy", sum(each[1] for each in found["busy"]), 0, at_least=False),
    ]
    finish(given, figures, noise, versions("playwright"), {"rows": rows, "loops": given.loops})


if __name__ == "__main__":
    main()
