"""The algorithms by name."""

from __future__ import annotations

from exact.config import SearchConfig
from exact.search.base import Algorithm
from exact.search.greedy import Greedy
from exact.search.mcts import MCTS
from exact.search.react import React


def algorithm(config: SearchConfig) -> Algorithm:
    """The algorithm that a configuration names."""
    match config.algorithm:
        case "react":
            return React(retries=config.retries)
        case "greedy":
            return Greedy(k=config.k, retries=config.retries)
        case "mcts":
            return MCTS(iterations=config.iterations, k=config.k, c=config.c, depth=config.depth, retries=config.retries)
