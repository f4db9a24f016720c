"""Environments of exact as environments of Gymnasium, for sync code such as the training loops of other libraries.

    import gymnasium
    import exact.interop.gymnasium

    environment = gymnasium.make("exact/miniwob.click-test")
    observation, info = environment.reset(seed=0)
    observation, reward, terminated, truncated, info = environment.step("click [1]")
    environment.close()

The import registers the ids, as the packages of Gymnasium's environments do. It needs `pip install gymnasium`.
"""

from __future__ import annotations

from exact.interop.gymnasium.env import GymnasiumEnv
from exact.interop.gymnasium.register import register

__all__ = ["GymnasiumEnv", "register"]
