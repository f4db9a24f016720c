"""One environment of exact as `gymnasium.Env`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import msgspec
import numpy
from gymnasium.error import ResetNeeded

from exact.action import Action, ActionSpace
from exact.config import Config, parse
from exact.environments.base import StateChanged
from exact.environments.check.suite import possible
from exact.environments.made import AnyEnvironment
from exact.errors import ActionError, UsageError
from exact.interop.gymnasium.loop import LoopThread
from exact.interop.gymnasium.session import GymnasiumSession
from exact.interop.gymnasium.spaces import ActionText, AnyText
from exact.observation import Observation
from exact.picture import open_picture
from exact.task import Task

LONGEST = 1_000_000
"""Characters of the longest observation. A longer one is cut."""
LONGEST_ACTION = 10_000
DRAWN = (640, 480)
"""Width and height of a drawing of a text, in pixels."""


class GymnasiumEnv(gymnasium.Env[str, str]):
    """One task. Observations and actions are texts; `info` has the rest.

    The reward is that of the environment where it has rewards, else the score in [0, 1] at the end of the episode. `info` holds the task's
    `instruction`, `url`, `title`, `elements`, `actions` (the grammar in words), `screenshot` (bytes of a PNG, or None), and after a step
    `error`, the reason why an action was refused, and `effects`. At the end it holds `is_success`, `score` and `reason`.

    A seed makes the same task again. Without one, each reset draws another from the environment's generator. All work runs in a thread of
    its own, so this is usable from sync code and where an event loop runs. `close` ends all processes.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}

    def __init__(
        self,
        task: Task | str,
        *,
        environments: AnyEnvironment | None = None,
        config: Config | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create an environment. Nothing is opened before the first reset.

        Args:
            task: Id of a benchmark's task or of a toy (`toy/maze`), or a Task. Its seed is replaced by that of each reset.
            environments: Where the task is attempted; None for what its suite, or its start page, opens. Writes are not blocked.
            config: Configuration of the browser and the sandbox, or a mapping as in its file.
            render_mode: `ansi` for the observation's text, `rgb_array` for its screenshot.

        Raises UsageError for another render_mode.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"invalid render_mode {render_mode!r}: give 'ansi' or 'rgb_array'")
        self.render_mode = render_mode
        self.observation_space = AnyText(LONGEST)
        self.action_space = self._samples = ActionText(LONGEST_ACTION)
        self._session = GymnasiumSession(task, config if isinstance(config, Config) else parse(dict(config or {})), environments)
        self._loop: LoopThread | None = None
        self._grammar = ActionSpace(())
        self._seen: Observation | None = None
        self._last: Observation | None = None
        """Last observation, also after the end of an episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode. `seed`: that of the task. `options` are not used. Raises EnvironmentFailure, UsageError."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        environment, seen = self._run_loop().run(self._session.reset(drawn))
        self._grammar = environment.actions
        self._show(seen)
        return self._text(), self._info(seen)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out an action, such as `click [3]`.

        One that does not parse or does not fit the state changes nothing: its reward is 0 and `info["error"]` says why. What is observed is
        the state as it is now, also where it had changed by itself. Raises
        ResetNeeded where no episode is in progress, EnvironmentFailure where the environment broke.
        """
        if self._seen is None or self._loop is None:
            raise ResetNeeded("no episode is in progress: call reset first")
        seen, error = self._seen, ""
        try:
            parsed = self._grammar.parse(action)
            transition, reward = self._loop.run(self._session.step(parsed))
        except StateChanged as changed:
            transition, reward, error = changed.came, 0.0, str(changed)
        except ActionError as refused:
            return self._text(), 0.0, False, False, {**self._info(seen), "error": str(refused), "effects": []}
        self._show(transition.observation)
        info = {**self._info(transition.observation), **transition.info, "error": error, "effects": msgspec.to_builtins(transition.effects)}
        if transition.terminated:
            info.update(self._result(parsed))
        return self._text(), reward, transition.terminated, False, info

    def render(self) -> Any:
        """Return the last observation as text, or as an array of height, width and three colours: its screenshot, or its text drawn."""
        if self._last is None or self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return self._last.text
        from PIL import Image, ImageDraw

        if self._last.screenshot is not None:
            return numpy.asarray(open_picture(self._last.screenshot).convert("RGB"))
        drawn = Image.new("RGB", DRAWN, "white")
        ImageDraw.Draw(drawn).multiline_text((8, 8), self._last.text.encode("latin-1", "replace").decode("latin-1"), fill="black")
        return numpy.asarray(drawn)

    def close(self) -> None:
        """Close the environment and end its thread and processes. May be called twice."""
        loop, self._loop, self._seen = self._loop, None, None
        if loop is not None:
            loop.close()

    def _run_loop(self) -> LoopThread:
        if self._loop is None:
            self._loop = LoopThread(self._session.close)
        return self._loop

    def _show(self, seen: Observation | None) -> None:
        self._seen, self._last = seen, seen or self._last
        found = [] if seen is None else possible(seen, self._grammar)
        going = [action for action in found if not self._grammar.is_final(action)]
        self._samples.possible = tuple(action.key for action in going or found)

    def _text(self) -> str:
        return "" if self._seen is None else self._seen.text[:LONGEST]

    def _result(self, last: Action) -> dict[str, Any]:
        assert self._loop is not None
        score = self._loop.run(self._session.score(last))
        if score is None:
            return {}
        return {"is_success": score.success, "score": score.value, "raw": score.raw, "reason": score.reason}

    def _info(self, seen: Observation | None) -> dict[str, Any]:
        instruction = self._session.task.instruction or (self._last.instruction if self._last else "")
        return {
            "task": self._session.task.id,
            "instruction": instruction,
            "url": seen.url if seen else "",
            "title": seen.title if seen else "",
            "elements": [msgspec.to_builtins(element) for element in seen.elements] if seen else [],
            "actions": self._grammar.describe(),
            "screenshot": seen.screenshot if seen else None,
        }
