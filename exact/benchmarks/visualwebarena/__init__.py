"""The benchmark VisualWebArena: WebArena's form, with pictures in tasks and evaluations and its own rules (`Dialect`)."""

from __future__ import annotations

from pathlib import Path

from exact.benchmarks.webarena.suite import VISUALWEBARENA, WebArena


def visualwebarena(path: Path | None = None) -> WebArena:
    """Return the suite `visualwebarena`. `path`: the task file; by default the wheel's."""
    return WebArena(VISUALWEBARENA, path=path)


__all__ = ["visualwebarena"]
