"""OSWorld's `desktop_env` as a guest: it sets a task up, carries out actions, and judges, all by itself.

Runs in the virtual environment of desktop_env, which brings 7 GB and wants a provider of virtual machines.
"""

from __future__ import annotations

import importlib
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.adapters.guests.guest_parts import ActionError, digest
else:
    from guest_parts import ActionError, digest

PAUSE = 2.0
"""Seconds that a step waits for the desktop, as in the published runs."""


class DesktopEnvGuest:
    """One virtual machine."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        """`options`: of DesktopEnv: `provider_name`, `path_to_vm`, `os_type`, ..."""
        given = {"action_space": "pyautogui", "require_a11y_tree": True, **(options or {})}
        self._env: Any = importlib.import_module("desktop_env.desktop_env").DesktopEnv(**given)
        self._over = True
        self.capabilities = {"fidelity": "replay", "isolated": True, "deterministic": False, "screenshots": True, "evaluates": True}
        self.actions = [
            {"name": "act", "form": ['"text"'], "help": "Python that moves mouse and keyboard by pyautogui"},
            {"name": "wait", "help": "wait a moment"},
            {"name": "fail", "help": "end the task: it cannot be done", "final": True},
            {"name": "stop", "form": ['"text"'], "help": "end the task: it is done", "final": True},
        ]

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        """The machine at its snapshot, and the task's `config` carried out."""
        self._over = False
        return self._seen(self._env.reset(task_config=json.loads(task["private"]["osworld"])))

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        if self._over:
            raise ActionError("the episode is over: reset first")
        said = {"wait": "WAIT", "fail": "FAIL", "stop": "DONE"}.get(action["name"]) or str(action["args"][0])
        observation, _, over, _ = self._env.step(said, PAUSE)
        self._over = bool(over) or action["name"] in ("fail", "stop")
        return {"observation": None if self._over else self._seen(observation), "terminated": self._over}

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Its own metric; success is exactly 1. Raises ValueError where it is no number."""
        score = float(self._env.evaluate())
        if math.isnan(score):
            raise ValueError("the task's metric is not a number: its result could not be compared")
        return {"value": min(1.0, max(0.0, score)), "success": score == 1.0, "raw": score, "reason": ""}

    def close(self) -> None:
        self._env.close()

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        tree = observation.get("accessibility_tree") or ""
        return {"text": tree, "fingerprint": digest([tree]), "screenshot": observation.get("screenshot")}
