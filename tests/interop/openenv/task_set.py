"""verifiers' OpenEnv task set against a server, with scripted answers in place of a model. Prints one JSON list.

Usage: task_set.py URL
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from verifiers.v1.tasksets.openenv.taskset import OpenEnvConfig, OpenEnvEnv, OpenEnvTaskset

ANSWERS = (['go "on"'] * 4, ["I do not know.", '{"action_str": "go(\'on\')"}', '```json\n{"action_str": "noop()"}\n```', "stop"])


class Player:
    """An agent that gives its answers in turn, and then none."""

    def __init__(self, answers: list[str]) -> None:
        self.answers, self.shown, self.rewards, self.stopped = iter(answers), list[dict[str, Any]](), dict[str, float](), ""

    @asynccontextmanager
    async def interaction(self, task: Any) -> Any:
        yield SimpleNamespace(turn=self.turn, trace=SimpleNamespace(record_reward=self.rewards.__setitem__, stop=self.stop))

    async def turn(self, payload: str) -> Any:
        self.shown.append(json.loads(payload))
        return SimpleNamespace(terminated=False, last_reply=next(self.answers, ""))

    def stop(self, why: str) -> None:
        self.stopped = why


async def main(url: str) -> list[dict[str, Any]]:
    resets = [{"seed": seed, "task_name": "chain"} for seed in range(len(ANSWERS))]
    tasks, found = list(OpenEnvTaskset(OpenEnvConfig(base_url=url, resets=resets)).load()), []
    for task, answers in zip(tasks, ANSWERS, strict=True):
        player = Player(answers)
        await OpenEnvEnv.run(None, task, SimpleNamespace(player=player))  # it uses nothing of the object
        pages = [each["observation"] for each in player.shown]
        found.append({
            "rewards": player.rewards, "stopped": player.stopped, "required": player.shown[0]["action_schema"]["required"],
            "goal": pages[0]["goal"], "errors": [page["last_action_error"] for page in pages], "turns": len(pages),
        })  # fmt: skip
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1]))))
