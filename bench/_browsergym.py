"""BrowserGym in a separate process, controlled by JSON lines. Runs in BrowserGym's virtual environment; imports nothing of exact.

Arguments: the browser's executable, and `waits`, `no-waits` or `bare` (no waits, and no screenshot). Requests on stdin, an answer for
each on stdout: `{"open": {"task": ..., "seed": ...}}` -> `{"nodes": n}`; `{"steps": [[role, index], ...]}` ->
`{"seconds": [...], "state": [...]}`, where a step clicks the index-th element of that role in the last tree.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import browsergym.core.env as core
import browsergym.miniwob  # noqa: F401  (registers its tasks)
import gymnasium
import playwright.sync_api

STATES = ("checked", "selected", "expanded")


def use_browser(executable: str) -> None:
    """BrowserGym's task and chat windows are separate browsers, and only the first can be told which one: tell both here."""
    launch = playwright.sync_api.BrowserType.launch

    def launched(self: Any, **options: Any) -> Any:
        return launch(self, **{**options, "executable_path": executable})

    playwright.sync_api.BrowserType.launch = launched


class Guest:
    def __init__(self, mode: str) -> None:
        self.options: dict[str, Any] = {} if mode == "waits" else {"slow_mo": 0, "pre_observation_delay": 0.0}
        if mode == "bare":
            core.extract_screenshot = lambda page: None
        self.env: Any = None
        self.tree: list[dict[str, Any]] = []

    def open(self, task: str, seed: int) -> dict[str, Any]:
        if self.env:
            self.env.close()
        self.env = gymnasium.make(f"browsergym/miniwob.{task}", disable_env_checker=True, **self.options).unwrapped
        self.env.reset(seed=0)
        self.env.page.evaluate(f"Math.seedrandom({seed}); core.startEpisodeReal()")  # BrowserGym draws another seed from its own
        self.see(self.env.step("noop(0)")[0])
        return {"nodes": len(self.tree)}

    def steps(self, clicks: list[tuple[str, int]]) -> dict[str, Any]:
        seconds = []
        for role, index in clicks:
            bid = self.of_role(role)[index]["browsergym_id"]
            start = time.perf_counter()
            observation, _, terminated, _, _ = self.env.step(f"click({bid!r})")
            seconds.append(time.perf_counter() - start)
            if observation["last_action_error"] or terminated:
                raise RuntimeError(f"click on {role} {index}: {observation['last_action_error'] or 'the episode has ended'}")
            self.see(observation)
        return {"seconds": seconds, "state": [self.state(node) for role in sorted({r for r, _ in clicks}) for node in self.of_role(role)]}

    def see(self, observation: dict[str, Any]) -> None:
        self.tree = [node for node in observation["axtree_object"]["nodes"] if not node.get("ignored")]

    def of_role(self, role: str) -> list[dict[str, Any]]:
        return [node for node in self.tree if node["role"]["value"] == role and "browsergym_id" in node]

    @staticmethod
    def state(node: dict[str, Any]) -> str:
        return " ".join(p["name"] for p in node.get("properties", []) if p["name"] in STATES and p["value"]["value"] in (True, "true"))


def main() -> None:
    executable, mode = sys.argv[1:]
    use_browser(executable)
    guest = Guest(mode)
    for line in sys.stdin:
        request = json.loads(line)
        answer = guest.open(**request["open"]) if "open" in request else guest.steps(request["steps"])
        print(json.dumps(answer), flush=True)
    if guest.env:
        guest.env.close()
    core._get_global_playwright().stop()


if __name__ == "__main__":
    main()
