"""The benchmark MiniWoB++."""

from exact.benchmarks.miniwob.pages import flip_rewards
from exact.benchmarks.miniwob.suite import MiniWob

__all__ = ["MiniWob", "flip_rewards"]
