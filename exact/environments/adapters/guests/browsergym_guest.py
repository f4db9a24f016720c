"""Guest for BrowserGym tasks: maps its accessibility tree to elements and our verbs to its actions.

The chat's own browser is left out, fixed waits are replaced by waiting until the page has settled, every launch uses the installed browser,
and the reward is never shown. Runs in BrowserGym's virtual environment.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import browsergym.core.env as core
import gymnasium
from browsergym.core.action.highlevel import HighLevelActionSet

if TYPE_CHECKING:
    from exact.environments.adapters.guests.browsergym_mapping import SUBSETS, VERBS, code, elements_of, seen
    from exact.environments.adapters.guests.guest_parts import ActionError, png, use_browser, wait_until_settled
else:
    from browsergym_mapping import SUBSETS, VERBS, code, elements_of, seen
    from guest_parts import ActionError, png, use_browser, wait_until_settled

TIMEOUT_MS = 5000
"""Milliseconds that an action may take. BrowserGym's own 500 are too few in a sandbox or on a busy machine."""


class NoChat:
    """Replacement of the chat, which would open another browser."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.page, self.recording_start_time = None, None

    def add_message(self, role: str, msg: str) -> None:
        self.messages.append({"role": role, "timestamp": 0.0, "message": msg})

    def wait_for_user_message(self) -> None:
        raise RuntimeError("there is no user here: leave wait_for_user_message out")

    def close(self) -> None:
        self.messages.clear()


class BrowserGymGuest:
    """Environment for BrowserGym tasks, one after the other."""

    actions = VERBS

    def __init__(self, browser: str, id: str = "", screenshots: bool = True, isolated: bool = True, options: Any = None) -> None:
        """Create an environment without a task.

        `browser`: path of the executable. `id`: task id for tasks whose metadata has no `browsergym`. `options`: those of `gymnasium.make`.
        """
        use_browser(browser)
        core.Chat = NoChat
        if not screenshots:
            core.extract_screenshot = lambda page: None
        self._given, self._screenshots, self._options = id, screenshots, dict(options or {})
        self._env: Any = None
        self._made = ""
        self.capabilities = {
            "fidelity": "replay",
            "isolated": isolated,
            "deterministic": True,
            "screenshots": screenshots,
            "evaluates": True,
        }
        self._best, self._over, self._roles = 0.0, True, dict[str, str]()

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        self._best, self._over = 0.0, True
        self._make(task["metadata"].get("browsergym") or self._given)
        observation, _ = self._env.reset(seed=task["seed"])
        self._over = False
        return self._seen(observation)

    def _make(self, id: str) -> None:
        """Make the environment of a task, such as `miniwob.click-test`, and close the last one."""
        if id == self._made:
            return
        self.close()
        importlib.import_module(f"browsergym.{id.partition('.')[0]}")
        python = HighLevelActionSet(subsets=SUBSETS, multiaction=False).to_python_code

        def mapping(action: str) -> str:
            return str(python(action)).replace("timeout=500", f"timeout={TIMEOUT_MS}")

        given = {"slow_mo": 0, "pre_observation_delay": 0.0, **self._options}
        made: Any = gymnasium.make(f"browsergym/{id}", disable_env_checker=True, action_mapping=mapping, **given)
        self._env, self._made = made.unwrapped, id
        self._wait_for_dom, self._env._wait_dom_loaded = self._env._wait_dom_loaded, self._settle

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        if self._over:
            raise ActionError("the episode is over: reset first")
        stops = action["name"] == "stop"
        for id in action["elements"]:
            if id not in self._roles:
                raise ActionError(f"{action['key']}: there is no element [{id}]: there are {', '.join(list(self._roles)[:12])}, ...")
            if id.startswith("t"):
                raise ActionError(f"{action['key']}: [{id}] is text that BrowserGym does not mark: name the element that it is in")
        if stops and not action["args"][0]:
            self._over = True
            return {"observation": None, "terminated": True, "reward": 0.0}
        observation, reward, terminated, truncated, _ = self._env.step(self._code(action))
        self._best = max(self._best, float(reward))
        if observation["last_action_error"] and not stops:
            raise ActionError(f"{action['key']}: {' '.join(observation['last_action_error'].split())[:300]}")
        self._over = bool(terminated or truncated or stops)
        return {"observation": None if self._over else self._seen(observation), "terminated": self._over, "reward": float(reward)}

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the largest reward of the episode as score."""
        success = self._best > 0
        return {"value": float(success), "success": success, "raw": self._best, "reason": f"reward {self._best:g}"}

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env, self._made = None, ""

    def _settle(self) -> None:
        """Wait until the pages have settled. Replaces a fixed wait."""
        self._wait_for_dom()
        wait_until_settled(self._env.context.pages)

    def _code(self, action: dict[str, Any]) -> str:
        return code(action["name"], action["args"], self._env.page.viewport_size["height"])

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        elements = elements_of(observation)
        self._roles = {each["id"]: each["role"] for each in elements}
        return {**seen(observation, elements), "screenshot": png(observation["screenshot"]) if self._screenshots else None}
