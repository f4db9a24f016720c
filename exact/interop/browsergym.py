"""exact's agents in BrowserGym's and AgentLab's own loops. Standard library and BrowserGym only: it runs in their virtual environment.

Their environments cannot be restored, so the agent acts without a search: it takes the likeliest action of its policy. The policy runs in a
separate process with exact's Python, because AgentLab and exact want different versions of openai and Playwright.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import weakref
from dataclasses import dataclass
from typing import Any

from exact.environments.adapters.guests.browsergym_mapping import SUBSETS, elements_of, seen
from exact.environments.adapters.guests.guest_parts import png

try:
    from agentlab.agents.agent_args import AgentArgs as _Args
except ImportError:
    _Args = object
try:
    from browsergym.experiments.agent import Agent as _Agent
    from browsergym.experiments.agent import AgentInfo as _Info
except ImportError:
    _Agent, _Info = object, dict


class ExactAgent(_Agent):  # type: ignore[misc]
    """An agent with `get_action` and `obs_preprocessor`, for one episode. `close` ends its process; so does the end of this one."""

    def __init__(self, config: str = "rmcts_builtin", settings: tuple[str, ...] = (), python: str = "", screenshots: bool = False) -> None:
        """Start the agent's process.

        Args:
            config: Name of a shipped configuration of exact, or the path of one.
            settings: Overrides of its keys, such as `("policy.samples=5",)`.
            python: Interpreter in whose environment exact is installed. Empty: that of `EXACT_PYTHON`, else this one.
            screenshots: Whether the policy is sent pictures.
        """
        from browsergym.core.action.highlevel import HighLevelActionSet

        self.action_set = HighLevelActionSet(subsets=SUBSETS, multiaction=False)
        self._screenshots = screenshots
        interpreter = python or os.environ.get("EXACT_PYTHON") or sys.executable
        command = [interpreter, "-m", "exact.interop.browsergym_peer", config, *settings]
        self._peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._end = weakref.finalize(self, _end, self._peer)

    def obs_preprocessor(self, obs: dict[str, Any]) -> dict[str, Any]:
        """Return an observation of BrowserGym's as plain data: the parts that the policy may see, and the error of the last action.

        All is below one key: AgentLab counts the tokens of each text at the top, of a picture's too.
        """
        found = seen(obs, elements_of(obs))
        error, pixels = str(obs.get("last_action_error") or ""), obs.get("screenshot")
        picture = base64.b64encode(png(pixels)).decode() if self._screenshots and pixels is not None else None
        size = obs["screenshot"].shape[0] if pixels is not None else 720
        return {"exact": {"observation": found, "picture": picture, "error": error, "height": float(size)}}

    def get_action(self, obs: dict[str, Any]) -> tuple[str, Any]:
        """Return the next action in BrowserGym's form, and the agent's reasoning. `obs`: the result of `obs_preprocessor`.

        Raises RuntimeError with the reason if the policy did not answer, so that the attempt counts as an error and not as a failure.
        """
        assert self._peer.stdin is not None and self._peer.stdout is not None
        try:
            self._peer.stdin.write(json.dumps(obs["exact"]).encode() + b"\n")
            self._peer.stdin.flush()
            line = self._peer.stdout.readline()
        except OSError as error:
            raise RuntimeError(f"exact's process ended: {error}") from error
        if not line:
            raise RuntimeError(f"exact's process ended with status {self._peer.wait()}: its standard error says why")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["action"], _Info(think=answer["think"], stats=answer["stats"])

    def close(self) -> None:
        """End the agent's process."""
        self._end()


@dataclass
class ExactAgentArgs(_Args):  # type: ignore[misc]
    """Settings from which AgentLab's studies and BrowserGym's experiments make agents."""

    agent_name: str = "exact"
    config: str = "rmcts_builtin"
    """Name of a shipped configuration of exact, or the path of one."""
    settings: tuple[str, ...] = ()
    """Overrides of its keys."""
    python: str = ""
    """Interpreter in whose environment exact is installed. Empty: that of `EXACT_PYTHON`, else this one."""
    screenshots: bool = False
    """Whether the policy is sent pictures."""

    def make_agent(self) -> ExactAgent:
        """Return an agent for one episode."""
        return ExactAgent(self.config, tuple(self.settings), self.python, self.screenshots)

    def set_benchmark(self, benchmark: Any, demo_mode: Any) -> None:
        """Do nothing: the actions are the same in every benchmark."""

    def set_reproducibility_mode(self) -> None:
        """Sample at temperature 0."""
        self.settings = (*self.settings, "models.policy.temperature=0")

    def prepare(self) -> None:
        """Do nothing: each agent starts its own process."""

    def close(self) -> None:
        """Do nothing: each agent ends its own process."""


def _end(peer: subprocess.Popen[bytes]) -> None:
    for stream in (peer.stdin, peer.stdout):
        if stream is not None:
            stream.close()
    try:
        peer.wait(5)
    except subprocess.TimeoutExpired:
        peer.kill()
        peer.wait()
