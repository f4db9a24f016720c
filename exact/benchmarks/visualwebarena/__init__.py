"""VisualWebArena: WebArena's form, with pictures in tasks and verdicts and rules of its own (`Dialect`)."""

from __future__ import annotations

from pathlib import Path

from exact.benchmarks.webarena.suite import VISUALWEBARENA, WebArena


def visualwebarena(path: Path | None = None) -> WebArena:
    """The suite `visualwebarena`. `path`: the task file, the wheel's if not given."""
    return WebArena(VISUALWEBARENA, path=path)


__all__ = ["visualwebarena"]
