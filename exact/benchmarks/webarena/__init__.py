"""The benchmark WebArena: its task files, their evaluators, and the suite."""

from exact.benchmarks.webarena.format import TaskFile, parse, read
from exact.benchmarks.webarena.suite import WebArena

__all__ = ["TaskFile", "WebArena", "parse", "read"]
