"""Parts shared by all benchmarks: options, tables, machine description, noise check and figures."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
NOISY = 1.5
"""A fixed piece of work whose 90th percentile takes this many times its fastest run means that others used the machine."""

QUICK_FORMS = ROOT / "bench" / "quick_forms.json"
"""Ratio of each figure in its quick form to its whole run. bench/quick_forms.py writes it."""

QUIET = 1.25
"""A measurement beside which that work takes at most this many times its fastest run was taken on a quiet machine."""


@dataclass(frozen=True)
class Figure:
    """One number the project answers for."""

    name: str
    value: float
    goal: float | None = None
    at_least: bool = True
    """Whether the goal is a floor or a ceiling."""

    @property
    def met(self) -> bool:
        return self.goal is None or (self.value >= self.goal if self.at_least else self.value <= self.goal)

    def __str__(self) -> str:
        goal = "" if self.goal is None else f" (goal {'>=' if self.at_least else '<='} {self.goal:g}{'' if self.met else ', MISSED'})"
        return f"{self.name}: {self.value:.3g}{goal}"


@dataclass
class Noise:
    """Noise of the machine, measured with a fixed piece of work between the measurements."""

    seconds: list[float] = field(default_factory=list)

    def probe(self) -> float:
        """About 10 ms of pure computation; how long it took."""
        start = time.perf_counter()
        sum(i * i for i in range(150_000))
        self.seconds.append(time.perf_counter() - start)
        return self.seconds[-1]

    def quiet(self, measured: Sequence[tuple[float, float]], least: int = 12) -> list[float]:
        """Return the values of those pairs of (probe, value) whose probe was near the fastest; all values where fewer than `least` are.

        The choice does not depend on the values.
        """
        limit = QUIET * min(self.seconds)
        found = [value for probe, value in measured if probe <= limit]
        return found if len(found) >= least else [value for _, value in measured]

    @property
    def factor(self) -> float | None:
        """90th percentile over minimum; 1 on an idle machine, None where nothing ran."""
        if not self.seconds:
            return None
        ordered = sorted(self.seconds)
        return ordered[int(0.9 * (len(ordered) - 1))] / ordered[0]

    def __str__(self) -> str:
        if self.factor is None:
            return "machine: nothing ran"
        verdict = "TOO NOISY: run again on an idle machine" if self.factor > NOISY else "steady"
        return f"machine: {verdict} (noise {self.factor:.2f} over {len(self.seconds)} probes, limit {NOISY})"


def _terminate(*_: object) -> None:
    """End as after Ctrl-C, without a traceback."""
    sys.excepthook = lambda *_: None
    signal.raise_signal(signal.SIGINT)


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark. A benchmark that is terminated later ends as after Ctrl-C.

    Python itself answers SIGINT then, though a shell that starts a job in the background has it ignored. An exit in a handler of SIGTERM
    would end an event loop, and all of its tasks at once, in the midst of an attempt, which then waits for a browser that nothing reads.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="fewer rounds, under a minute")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the full result there")
    return options


LACKS = 77
"""Exit code of a bench that cannot run because a part is not installed, as test runners know it for a skipped test."""


def lacks(part: str) -> NoReturn:
    """Exit with `LACKS`. `part` says how to install the missing part."""
    print(part, file=sys.stderr)
    sys.exit(LACKS)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, tuple("-" * width for width in widths), *rows):
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip())


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, smallest and largest."""
    return statistics.median(values), min(values), max(values)


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"system": platform.platform(), "cores": os.cpu_count(), "memory_gib": round(memory, 1), "python": platform.python_version()}


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages."""
    return {package: metadata.version(package) for package in packages}


def commit() -> str:
    """Return the measured commit, with `+changes` where the tree differs from it."""
    from exact.runs.journal.versions import code

    return code(ROOT, untracked=True, apart=("bench/results", "docs")) or "unknown"  # other results are no other code


def save(options: argparse.Namespace, figures: Sequence[Figure], noise: Noise, versions: dict[str, str], details: dict[str, Any]) -> None:
    """Write the JSON that was asked for."""
    if not options.json:
        return
    result = {
        "bench": Path(sys.argv[0]).stem,
        "quick": options.quick,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions,
        "noise": {"factor": None if noise.factor is None else round(noise.factor, 3), "limit": NOISY, "probes": len(noise.seconds)},
        "figures": {figure.name: {"value": round(figure.value, 4), "goal": figure.goal, "met": figure.met} for figure in figures},
        **details,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=1) + "\n")


def finish(options: argparse.Namespace, figures: Sequence[Figure], noise: Noise, versions: dict[str, str], details: dict[str, Any]) -> None:
    """Write the JSON that was asked for, then print the noise and, as the last lines, the figures.

    A figure of a quick form that is not known to agree with the whole run is printed before them, as a rough one. So is the name of each
    figure with a goal that the last whole run has and this quick form lacks.
    """
    save(options, figures, noise, versions, details)
    print(f"\n{noise}\n")
    known = ratios_of(Path(sys.argv[0]).stem) if options.quick else {}
    rough = [figure for figure in figures if options.quick and not agree(known.get(figure.name))]
    for name in sorted(goals_of(Path(sys.argv[0]).stem) - {figure.name for figure in figures} if options.quick else ()):
        print(f"lacks: {name}: only the whole run has it")
    for figure in rough:
        print(f"rough: {figure}")
    for figure in figures:
        if figure not in rough:
            print(figure)


def ratios_of(bench: str) -> dict[str, float | None]:
    """Return the ratio of each figure of a bench in its quick form to its whole run, where it was measured."""
    kept = json.loads(QUICK_FORMS.read_text()) if QUICK_FORMS.exists() else {}
    return dict(kept.get(bench, {}))


def goals_of(bench: str) -> set[str]:
    """Return the figures with a goal of a bench's last whole run."""
    kept = ROOT / "bench" / "results" / f"{bench}.json"
    found = json.loads(kept.read_text()).get("figures", {}) if kept.exists() else {}
    return {name for name, told in found.items() if told["goal"] is not None}


def agree(ratio: float | None) -> bool:
    """Return whether a quick form's figure is within 10 % of the whole run's."""
    return ratio is not None and abs(ratio - 1) <= 0.1
