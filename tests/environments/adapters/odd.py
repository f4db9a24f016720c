"""A Gymnasium environment with spaces of every kind; registered when it is imported."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy
from gymnasium import spaces


class Odd(gymnasium.Env[Any, Any]):
    """Solved by an action whose `go` is 2 and whose `push` is above zero."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.action_space = spaces.Dict({"go": spaces.Discrete(3), "push": spaces.Box(-1, 1, (2,)), "say": spaces.Text(5, min_length=0)})
        self.observation_space = spaces.Dict({"taken": spaces.MultiBinary(2), "last": spaces.Text(10)})
        self.taken, self.last = numpy.zeros(2, dtype=numpy.int8), "nothing"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.taken, self.last = numpy.zeros(2, dtype=numpy.int8), (options or {}).get("last", "nothing")
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.taken[:] = action["push"] > 0
        self.last = action["say"]
        done = action["go"] == 2
        return self.seen(), float(done and self.taken.all()), bool(done), False, {}

    def render(self) -> Any:
        return numpy.full((4, 6, 3), 7, dtype=numpy.uint8)

    def seen(self) -> Any:
        return {"taken": self.taken.copy(), "last": self.last}


gymnasium.register("Odd-v0", entry_point=Odd)
