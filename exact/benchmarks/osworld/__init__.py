"""The benchmark OSWorld: its task files."""

from exact.benchmarks.osworld.format import OSWorldTask, collection, parse, read

__all__ = ["OSWorldTask", "collection", "parse", "read"]
