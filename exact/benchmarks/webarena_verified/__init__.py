"""The benchmark WebArena-Verified: WebArena's tasks, revised, which its own evaluators score by the answer and the traffic."""

from exact.benchmarks.webarena_verified.suite import WebArenaVerified

__all__ = ["WebArenaVerified"]
