"""Guest for OSWorld's `desktop_env`, which sets tasks up, carries out actions and evaluates.

Runs in the virtual environment of desktop_env, which has 7 GB and needs a provider of virtual machines.
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
        """Create the virtual machine. `options`: those of DesktopEnv, such as `provider_name`, `path_to_vm` and `os_type`."""
        given = {"action_space": "pyautogui", "require_a11y_tree": True, **(options or {})}
        self._env: Any = importlib.import_module("desktop_env.desktop_env").DesktopEnv(**given)
        self._ended = True
        self.capabilities = {"fidelity": "replay", "isolated": True, "deterministic": True, "screenshots": True, "evaluates": True}
        self.actions = [
            {"name": "act", "form": ['"text"'], "help": "Python that moves mouse and keyboard by pyautogui"},
            {"name": "wait", "help": "wait a moment"},
            {"name": "fail", "help": "end the task: it cannot be done", "final": True},
            {"name": "stop", "form": ['"text"'], "help": "end the task: it is done", "final": True},
        ]

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        """Restore the machine's snapshot and carry out the task's `config`."""
        self._ended = False
        return self._seen(self._env.reset(task_config=json.loads(task["private"]["osworld"])))

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        if self._ended:
            raise ActionError("the episode is over: reset first")
        command = {"wait": "WAIT", "fail": "FAIL", "stop": "DONE"}.get(action["name"]) or str(action["args"][0])
        observation, _, over, _ = self._env.step(command, PAUSE)
        self._ended = bool(over) or action["name"] in ("fail", "stop")
        return {"observation": None if self._ended else self._seen(observation), "terminated": self._ended}

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the value of the benchmark's metric. Success is exactly 1. Raises ValueError if it is not a number."""
        score = float(self._env.evaluate())
        if math.isnan(score):
            raise ValueError("the task's metric is not a number: its result could not be compared")
        return {"value": min(1.0, max(0.0, score)), "success": score == 1.0, "raw": score, "reason": ""}

    def close(self) -> None:
        self._env.close()

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        tree = observation.get("accessibility_tree") or ""
        return {"text": tree, "fingerprint": digest([tree]), "screenshot": observation.get("screenshot")}
