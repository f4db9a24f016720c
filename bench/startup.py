"""Measure the cost of a start: `exact --help` and `import exact`, in milliseconds more than a bare interpreter.

The three are run in turn, round after round, each in its own process; a round's costs are differences within it, and the figures
are medians over the rounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from _common import Figure, Noise, finish, interval, parser, table, versions

PYTHON = sys.executable
COMMANDS = {
    "bare python": [PYTHON, "-c", "pass"],
    "import exact": [PYTHON, "-c", "import exact"],
    "exact --help": [str(Path(PYTHON).with_name("exact")), "--help"],
}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled files may be kept, as on a user's machine."""


def milliseconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - start)


def measure(rounds: int, noise: Noise) -> dict[str, list[float]]:
    """Milliseconds of each command in each round; one more round before them is not counted."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        noise.probe()
        for name, command in COMMANDS.items():
            spent = milliseconds(command)
            if number:
                times[name].append(spent)
    return times


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    noise = Noise()
    times = measure(20 if options.quick else 100, noise)
    bare = times["bare python"]
    more = {name: [a - b for a, b in zip(times[name], bare, strict=True)] for name in COMMANDS if name != "bare python"}
    shown = {"bare python": bare, **{f"{name}, more": spent for name, spent in more.items()}}
    table(("ms", "median", "min", "max"), [(name, *(f"{value:.1f}" for value in interval(spent))) for name, spent in shown.items()])
    figures = [
        Figure("help_ms_over_python", interval(more["exact --help"])[0], 150, at_least=False),
        Figure("import_ms_over_python", interval(more["import exact"])[0], 100, at_least=False),
    ]
    details = {"milliseconds": {name: [round(value, 2) for value in spent] for name, spent in times.items()}}
    finish(options, figures, noise, versions("exact-agent", "click"), details)


if __name__ == "__main__":
    main()
