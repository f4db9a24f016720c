"""OSWorld's `desktop_env` as a judge: sets tasks up on a machine that runs already, and evaluates them.

Runs in the virtual environment of desktop_env. The machine is a desktop of exact, whose ports the host gives with each command.
"""

from __future__ import annotations

import json
import math
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.adapters.guests.guest_parts import ActionError
    from exact.environments.adapters.guests.osworld_provider import AbsentPackage, AttachedProvider, prepare, provided
    from exact.environments.adapters.guests.osworld_resolve import unresolved
else:
    from guest_parts import ActionError
    from osworld_provider import AbsentPackage, AttachedProvider, prepare, provided
    from osworld_resolve import unresolved


class Judge:
    """The unmodified DesktopEnv, one at a time. It has no actions: its purpose is `command`."""

    actions: tuple[()] = ()
    capabilities = {"fidelity": "replay", "isolated": True, "deterministic": True}

    def __init__(self, size: tuple[int, int], cache: str = "") -> None:
        """`size`: size of the screen in pixels. `cache`: folder of downloaded files; by default one for this judge."""
        self._size = size
        self._folder = None if cache else tempfile.TemporaryDirectory(prefix="exact-osworld-")
        self._cache = self._folder.name if self._folder else cache
        self._env: Any = None

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        raise ActionError("a judge has no episodes")

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        raise ActionError("a judge has no actions")

    def command(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Carry out `set_up`, `evaluate`, or `resolve`, which needs no machine. Raises the errors of desktop_env."""
        prepare()
        try:
            if name == "resolve":
                return {"lacking": [unresolved(task) for task in arguments["tasks"]]}
            return self._set_up(**arguments) if name == "set_up" else self._evaluate(**arguments)
        except AbsentPackage as absent:
            raise RuntimeError(str(absent)) from absent

    def close(self) -> None:
        if self._folder:
            self._folder.cleanup()

    def _set_up(self, task: dict[str, Any], address: str) -> dict[str, Any]:
        self._env = self._open(address)
        self._env.reset(task_config=task)
        return {}

    def _evaluate(self, task: dict[str, Any], address: str, history: list[str]) -> dict[str, Any]:
        """`history`: the actions, of which OSWorld reads the last one."""
        env = self._open(address)
        env._set_task_info(task)
        env.setup_controller.reset_cache_dir(env.cache_dir)
        env.action_history = list(history)
        score = float(env.evaluate())
        if math.isnan(score):
            raise ValueError("the task's metric is not a number: its result could not be compared")
        return {"raw": score, "text": json.dumps(score)}

    def _open(self, address: str) -> Any:
        with provided(AttachedProvider(address)) as (DesktopEnv, name):
            return DesktopEnv(provider_name=name, cache_dir=self._cache, require_a11y_tree=False, screen_size=self._size)
