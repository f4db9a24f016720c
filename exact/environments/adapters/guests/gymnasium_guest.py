"""Guest for any Gymnasium environment: maps its spaces to verbs and text, both ways.

Runs in the environment's own virtual environment, which has Gymnasium.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy
from gymnasium import spaces

if TYPE_CHECKING:
    from exact.environments.adapters.guests.guest_parts import ActionError, digest, png, written
else:
    from guest_parts import ActionError, digest, png, written

MAX_VERBS = 64
"""Largest discrete space whose actions have a verb each."""
EXAMPLES = 8
"""Number of example actions of another space that an observation shows."""
STOP_HELP = "end the attempt here; the environment takes no step, so the total reward stays as it is, and the text is for the record only"
NUMBERS = 400
"""Largest array whose numbers are written out."""


class GymnasiumGuest:
    """One Gymnasium environment, made when it is opened."""

    def __init__(
        self,
        id: str,
        options: dict[str, Any] | None = None,
        imports: list[str] | None = None,
        success: float | None = None,
        isolated: bool = True,
        deterministic: bool | None = None,
    ) -> None:
        """Make the environment.

        `id`, `options`: as for `gymnasium.make`. `imports`: modules that register it. `success`: total reward from which an episode counts
        as solved; by default the environment's own threshold, else any positive total.
        """
        for module in imports or []:
            importlib.import_module(module)
        self._env: Any = gymnasium.make(id, disable_env_checker=True, **(options or {}))
        own = self._env.spec.reward_threshold if self._env.spec else None
        self._success: float | None = success if success is not None else own
        self._verbs = _verbs(self._env)
        self._total, self._ended, self._info = 0.0, True, dict[str, Any]()
        pictures = self._env.render_mode == "rgb_array"
        self.capabilities = {
            "fidelity": "replay", "isolated": isolated, "deterministic": deterministic, "screenshots": pictures, "evaluates": True,
        }  # fmt: skip
        act = {"name": "act", "form": ['"text"'], "help": f"an action of {_space_text(self._env.action_space)}, in JSON"}
        self.actions = [*({"name": word} for word in self._verbs), *([] if self._verbs else [act])]
        self.actions.append({"name": "stop", "form": ['"text"'], "help": STOP_HELP, "final": True})

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        self._env.action_space.seed(task["seed"])
        given = json.loads(task["metadata"].get("options") or "null")
        observation, info = self._env.reset(seed=task["seed"], options=given)
        self._total, self._ended, self._info = 0.0, False, info
        return self._seen(observation)

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        if self._ended:
            raise ActionError("the episode is over: reset first")
        if action["name"] == "stop":
            self._ended = True
            return {"observation": None, "terminated": True, "reward": 0.0}
        observation, reward, terminated, truncated, self._info = self._env.step(self._action(action))
        reward = float(reward)
        if reward != reward or reward in (float("inf"), float("-inf")):
            raise ValueError(f"the environment gave the reward {reward}: a reward is a finite number")
        self._total += reward
        self._ended = bool(terminated or truncated)
        return {"observation": None if self._ended else self._seen(observation), "terminated": self._ended, "reward": reward}

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the total reward, and whether it suffices. A success reported in `info` takes precedence."""
        own = self._info.get("is_success", self._info.get("success"))
        success = bool(own) if own is not None else self._total >= self._success if self._success is not None else self._total > 0
        return {"value": float(success), "success": success, "raw": self._total, "reason": f"total reward {self._total:g}"}

    def close(self) -> None:
        self._env.close()

    def _action(self, action: dict[str, Any]) -> Any:
        """Return the element of the action space. Raises ActionError."""
        space = self._env.action_space
        if self._verbs:
            return space.start + self._verbs.index(action["name"])
        text = action["args"][0]
        try:
            value = text if isinstance(space, spaces.Text) else _read(space, json.loads(text))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise ActionError(f"{text!r} is not an action of {_space_text(space)}: {error}") from error
        if not space.contains(value):
            raise ActionError(f"{text!r} is not in {_space_text(space)}: such as {_example(space)}")
        return value

    def _seen(self, observation: Any) -> dict[str, Any]:
        """Return text and fingerprint of an observation, with a picture if the environment draws one."""
        picture = self._env.render() if self._env.render_mode in ("rgb_array", "ansi") else None
        shown = picture if isinstance(picture, str) else ""
        elements = [] if self._verbs else self._examples()
        text = "\n".join(part for part in (shown, _written(observation), written(elements)) if part)
        if _is_image(observation) and not hasattr(picture, "shape"):
            picture = observation
        return {
            "text": text,
            "fingerprint": digest([_identity(observation), shown]),
            "elements": elements,
            "screenshot": png(numpy.asarray(picture, dtype=numpy.uint8)) if hasattr(picture, "shape") else None,
        }

    def _examples(self) -> list[dict[str, Any]]:
        """Return example actions drawn from the space, always the same ones."""
        if isinstance(self._env.action_space, spaces.Text):
            return []
        self._env.action_space.seed(0)
        found = dict.fromkeys(_example(self._env.action_space) for _ in range(EXAMPLES))
        return [{"id": str(at), "role": "option", "name": name} for at, name in enumerate(found, 1)]


def _verbs(env: Any) -> list[str]:
    """Return a verb for each action of a small discrete space: its meaning if the environment has one, else `act_0`, `act_1`, ..."""
    space = env.action_space
    if not isinstance(space, spaces.Discrete) or space.n > MAX_VERBS:
        return []
    meanings: list[object] = getattr(env.unwrapped, "get_action_meanings", list)()
    named = [re.sub(r"\W+", "_", str(each)).strip("_").lower() for each in meanings]
    fit = len(set(named)) == len(named) == space.n and all(named) and "stop" not in named
    return named if fit else [f"act_{space.start + at}" for at in range(space.n)]


def _example(space: Any) -> str:
    return json.dumps(_plain(space.sample()), separators=(",", ":"), default=str)


def _space_text(space: Any) -> str:
    return re.sub(r", charset=[^)]*", "", " ".join(str(space).split()))[:300]


def _read(space: Any, value: Any) -> Any:
    """Convert plain data to an element of a space."""
    if isinstance(space, spaces.Dict):
        return {name: _read(part, value[name]) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_read(part, each) for part, each in zip(space.spaces, value))  # noqa: B905 - for Python 3.9
    if isinstance(space, spaces.Sequence):
        return tuple(_read(space.feature_space, each) for each in value)
    if isinstance(space, spaces.Discrete):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("an integer is expected")
        return value
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return numpy.asarray(value, dtype=space.dtype).reshape(space.shape)
    return value


def _plain(value: Any) -> Any:
    """Convert an element of a space to plain data."""
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _is_image(value: Any) -> bool:
    return isinstance(value, numpy.ndarray) and value.dtype == numpy.uint8 and value.ndim == 3 and value.shape[2] in (1, 3)


def _written(value: Any, name: str = "observation") -> str:
    """Return an observation as text, one line per part: `observation.position: [0.1,0.2]`."""
    if isinstance(value, dict):
        return "\n".join(_written(part, f"{name}.{key}") for key, part in value.items())
    if isinstance(value, tuple):
        return "\n".join(_written(part, f"{name}.{at}") for at, part in enumerate(value))
    if _is_image(value):
        return f"{name}: a picture of {value.shape[1]} x {value.shape[0]}"
    if isinstance(value, numpy.ndarray) and value.size > NUMBERS:
        return f"{name}: {value.size} numbers from {value.min():g} to {value.max():g}, digest {_identity(value)[:12]}"
    if isinstance(value, numpy.ndarray) and value.dtype.kind == "f":
        value = numpy.round(value.astype(float), 5)
    return f"{name}: {json.dumps(_plain(value), ensure_ascii=False, separators=(',', ':'))}"


def _identity(value: Any) -> Any:
    """Return plain data that is equal if and only if the value is."""
    if isinstance(value, dict):
        return {str(name): _identity(part) for name, part in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [_identity(part) for part in value]
    if isinstance(value, numpy.ndarray):
        return hashlib.blake2b(value.tobytes(), digest_size=16).hexdigest()
    return repr(_plain(value))
