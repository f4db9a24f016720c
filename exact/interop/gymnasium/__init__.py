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

from exact.errors import UsageError

try:
    import gymnasium as _gymnasium  # noqa: F401 - found before anything is made
except ImportError as error:
    raise UsageError(f"Gymnasium is not installed ({error}): run `pip install gymnasium`") from error

from exact.interop.gymnasium.env import GymnasiumEnv
from exact.interop.gymnasium.register import register

__all__ = ["GymnasiumEnv", "register"]

register()
