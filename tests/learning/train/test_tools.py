"""TRL's `environment_factory`: what its trainer finds on the class, and what an episode gives."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from exact.errors import EnvironmentFailure, UsageError
from exact.learning.train.tools import EnvironmentTools, ToolEnvironment


class Buttons:
    """A server's session in which the button 2 ends the episode with `reward`."""

    reward = 1.0
    closed = 0

    def __init__(self, **options: Any) -> None:
        self.seen = list[Any]()

    async def connect(self) -> None: ...

    async def close(self) -> None:
        Buttons.closed += 1

    def reset(self, **options: Any) -> Any:
        asyncio.get_running_loop()  # OpenEnv's own client waits by itself where there is none
        return self._reset(options)

    async def _reset(self, options: dict[str, Any]) -> Any:
        self.seen.append(options)
        return SimpleNamespace(observation={"goal": "Press B.", "text": '[1] button "A"\n[2] button "B"'}, reward=None, done=False)

    async def step(self, action: dict[str, str]) -> Any:
        self.seen.append(action["action_str"])
        if action["action_str"] == "break":
            raise ConnectionResetError("gone")
        done = action["action_str"] == "click [2]"
        return SimpleNamespace(observation={"text": '[1] button "A"'}, reward=self.reward if done else 0.0, done=done)


@pytest.fixture(autouse=True)
def openenv(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("openenv.core.generic_client")
    module.GenericEnvClient = Buttons  # type: ignore[attr-defined]
    for name in ("openenv", "openenv.core"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "openenv.core.generic_client", module)


def test_the_one_tool_is_typed_and_described() -> None:
    tools = [name for name, _ in inspect.getmembers(ToolEnvironment, inspect.isfunction) if name[0] != "_"]
    assert sorted(tools) == ["act", "get_reward", "reset"]
    assert inspect.signature(ToolEnvironment.act).parameters["action"].annotation == "str"
    assert "action: One action" in (ToolEnvironment.act.__doc__ or "")


def test_an_episode_is_begun_by_its_row_and_gives_its_reward_and_sessions_are_closed() -> None:
    before = Buttons.closed
    with EnvironmentTools("http://server") as environments:
        first, second = environments(), environments()
        shown = first.reset(task_name="press", seed=3, prompt="ignored")
        assert shown == 'Goal: Press B.\nPage:\n"A" button [1]\n"B" button [2]'
        assert "Page:" in first.act("click [1]") and first.get_reward() == 0.0
        first.act("click [2]")
        assert first.act("click [2]") == "The episode is over." and first.get_reward() == 1.0
        assert first._client.seen == [{"seed": 3, "task_name": "press"}, "click [1]", "click [2]"]  # type: ignore[attr-defined]
        assert second.act("click [2]") == "The episode is over."  # none has begun
        first.reset()
        assert first.get_reward() == 0.0
    assert Buttons.closed == before + 2


def test_a_failure_in_a_tool_is_no_score() -> None:
    with EnvironmentTools("http://server") as environments:
        environment = environments()
        environment.reset()
        with pytest.raises(EnvironmentFailure, match="does not answer"):
            environment.act("break")
        with pytest.raises(EnvironmentFailure, match="does not answer"):
            environment.get_reward()
        environment.reset()
        assert environment.get_reward() == 0.0


def test_a_reward_that_is_no_number_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Buttons, "reward", math.nan)
    with EnvironmentTools("http://server") as environments:
        environment = environments()
        environment.reset()
        with pytest.raises(UsageError, match="finite number"):
            environment.act("click [2]")
        with pytest.raises(UsageError, match="finite number"):
            environment.get_reward()
