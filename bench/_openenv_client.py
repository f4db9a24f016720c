"""What bench/openenv.py runs in OpenEnv's virtual environment. Usage: python -P _openenv_client.py URL steps|episodes N [SESSIONS]"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from openenv.core.generic_client import GenericEnvClient

STEPS = ('press "Tab"', 'press "Shift+Tab"')
WAY = ('go "on"',) * 4


async def steps(url: str, count: int) -> list[tuple[float, float]]:
    """Milliseconds of each step at the client, and in the environment itself."""
    found = []
    async with GenericEnvClient(base_url=url) as client:
        await client.reset(seed=1)
        for number in range(count + 5):
            began = time.perf_counter()
            step = await client.step({"action_str": STEPS[number % 2]})
            took = time.perf_counter() - began
            if number >= 5:
                found.append((1000 * took, 1000 * step.observation["metadata"]["browsergym_info"]["seconds"]))
            if step.done:
                await client.reset(seed=1)
    return found


async def episodes(url: str, count: int, sessions: int) -> int:
    """Solve the chain `count` times in each of the sessions, side by side; how many episodes were won."""

    async def one() -> int:
        won = 0
        async with GenericEnvClient(base_url=url, message_timeout_s=300) as client:
            for seed in range(count):
                await client.reset(seed=seed % 8)
                for action in WAY:
                    step = await client.step({"action_str": action})
                won += step.done and step.reward == 1.0
        return won

    return sum(await asyncio.gather(*(one() for _ in range(sessions))))


if __name__ == "__main__":
    url, what, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    print(json.dumps(asyncio.run(steps(url, count) if what == "steps" else episodes(url, count, int(sys.argv[4])))))
