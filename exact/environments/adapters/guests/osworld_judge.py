"""OSWorld's `desktop_env` as a judge: sets tasks up on a machine that runs already, and evaluates them.

Runs in the virtual environment of desktop_env. The machine is a desktop of exact, whose ports the host gives with each command.
"""

from __future__ import annotations

import json
import logging
import math
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.adapters.guests.guest_parts import ActionError
    from exact.environments.adapters.guests.osworld_provider import AbsentPackage, AttachedProvider, prepare, provided
    from exact.environments.adapters.guests.osworld_resolve import unresolved
else:
    from guest_parts import ActionError
    from osworld_provider import AbsentPackage, AttachedProvider, prepare, provided
    from osworld_resolve import unresolved


_LOGGER = "desktopenv.setup"
"""Logger of desktop_env's steps."""


class EnvironmentFailure(Exception):
    """A step of a set-up that failed. The host raises its own error of this name."""


class SetupLog(logging.Handler):
    """What desktop_env logs about the steps of a set-up, most of whose failures it passes over.

    A step has failed if it raises, or if the last thing that it logs is an error: the errors before are those of tries that it repeats.
    """

    def __init__(self, controller: Any, steps: Sequence[dict[str, Any]]) -> None:
        """Watch the methods of a SetupController that carry out `steps`."""
        super().__init__(logging.INFO)
        self._total, self._begun, self._inside = len(steps), 0, False
        self._level, self._said = 0, ""
        self.failures: list[str] = []
        """Steps that failed, with the reasons."""
        for kind in {step["type"] for step in steps}:
            name = f"_{kind}_setup"
            if method := getattr(controller, name, None):
                setattr(controller, name, self._watched(kind, method))

    def emit(self, record: logging.LogRecord) -> None:
        self._level, self._said = record.levelno, record.getMessage()

    @property
    def left(self) -> str:
        """Statement of the steps that were not begun; empty if all were."""
        if self._begun >= self._total:
            return ""
        return f"desktop_env carried out {self._begun} of {self._total} steps of the set-up: the machine does not answer"

    def _watched(self, kind: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **named: Any) -> Any:
            if self._inside:  # a step that is carried out by another one
                return method(*given, **named)
            self._begun, self._level, self._inside = self._begun + 1, 0, True
            label = f"step {self._begun} of {self._total} of the set-up, {kind}, failed"
            try:
                done = method(*given, **named)
            except Exception as error:
                self.failures.append(f"{label}: {error}")
                raise
            finally:
                self._inside = False
            if self._level >= logging.ERROR:
                self.failures.append(f"{label}: {self._said}")
            return done

        return watched


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
        """Carry out `set_up`, `evaluate`, or `resolve`, which needs no machine.

        Raises the errors of desktop_env, and EnvironmentFailure for a step of a set-up that it passes over.
        """
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
        log, logger = SetupLog(self._env.setup_controller, task["config"]), logging.getLogger(_LOGGER)
        level = logger.level
        logger.addHandler(log)
        logger.setLevel(logging.INFO)
        try:
            self._env.reset(task_config=task)
        except Exception as error:
            if log.failures:
                raise EnvironmentFailure(log.failures[0]) from error
            raise
        finally:
            logger.setLevel(level)
            logger.removeHandler(log)
        if failure := next(iter(log.failures), log.left):
            raise EnvironmentFailure(failure)
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
