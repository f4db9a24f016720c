"""What a user of OpenEnv does, run by the interpreter that has its package. Prints one JSON object.

Usage: client.py URL errors|latency|search|played|idle
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from openenv.core.generic_client import GenericEnvClient


async def errors(url: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with GenericEnvClient(base_url=url) as first:
        found["fields"] = sorted((await first.reset(seed=0)).observation)
        for name, call in {
            "unknown_key": lambda: first.step({"action": "noop()"}),
            "unknown_task": lambda: first.reset(task_name="mase"),
        }.items():
            try:
                await call()
            except RuntimeError as error:
                found[name] = str(error)
        step = await first.step({"action_str": 'go "up"'})
        found["refused"] = [step.observation["error"], step.observation["last_action_error"], step.reward, step.done]
        async with GenericEnvClient(base_url=url) as second, GenericEnvClient(base_url=url) as third:
            await second.reset()
            await third.reset()
            try:
                async with GenericEnvClient(base_url=url) as another:
                    await another.reset()
            except RuntimeError as error:
                found["full"] = str(error)
        for _ in range(200):  # the place is free again a moment after the second has closed
            try:
                async with GenericEnvClient(base_url=url) as fourth:
                    found["again"] = (await fourth.reset()).done
                    break
            except RuntimeError:
                await asyncio.sleep(0.05)
        found["state"] = await first.state()
    return found


async def latency(url: str) -> dict[str, Any]:
    async with GenericEnvClient(base_url=url) as client:
        await client.reset(seed=0)
        took = []
        for _ in range(200):
            began = time.perf_counter()
            await client.step({"action_str": "noop()"})
            took.append(time.perf_counter() - began)
    return {"ms": sorted(1000 * each for each in took)}


async def search(url: str) -> dict[str, Any]:
    """Go through the maze by this package's client, with a restore and a fork, or by replay where there are none."""
    from exact.environments.openenv import openenv_factory
    from exact.environments.toy.maze import maze, way_out
    from exact.task import Outcome, Task

    task = Task(id="toy/maze?seed=0", instruction="", seed=0, metadata={"task_name": "maze"})
    async with openenv_factory(url) as environments, environments.open(simulation=True) as environment:
        start = await environment.reset(task)
        first, *rest = way_out(maze())
        at = await environment.step(environment.actions.parse(f'go "{first}"'))
        found: dict[str, Any] = {
            "fidelity": environment.capabilities.fidelity,
            "verbs": list(environment.actions.verbs),
            "goal": start.instruction,
        }
        snapshot = await environment.snapshot()
        await environment.step(environment.actions.parse(f'go "{rest[0]}"'))
        found["restored"] = (await environment.restore(snapshot)).fingerprint == at.observation.fingerprint
        async with environments.fork(snapshot, simulation=True) as other:
            for move in rest:
                last = await other.step(other.actions.parse(f'go "{move}"'))
            found["end"] = [last.terminated, other.reward(), (await other.evaluate(Outcome(actions=()))).value]
    return found


async def played(url: str) -> dict[str, Any]:
    """Begin an episode and do nothing once."""
    async with GenericEnvClient(base_url=url, message_timeout_s=200) as client:
        start = (await client.reset(seed=0)).observation
        step = await client.step({"action_str": "noop()"})
    return {"goal": start["goal"], "text": start["text"], "error": step.observation["error"], "done": step.done}


async def idle(url: str) -> dict[str, Any]:
    """Take the only session and leave it idle until another client gets its place; then ask for a step in it."""
    async with GenericEnvClient(base_url=url) as first:
        await first.reset()
        refused, end = 0, time.monotonic() + 60
        while True:
            try:
                async with GenericEnvClient(base_url=url) as second:
                    await second.reset()
                break
            except RuntimeError:
                refused += 1
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.05)
        try:
            await first.step({"action_str": "noop()"})
            said = ""
        except (RuntimeError, ConnectionError) as error:
            said = str(error) or type(error).__name__
    return {"refused": refused, "said": said}


WAYS = {"errors": errors, "latency": latency, "search": search, "played": played, "idle": idle}
if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(WAYS[sys.argv[2]](sys.argv[1]))))
