"""What a user of OpenEnv does, run by the interpreter that has its package. Prints one JSON object.

Usage: client.py URL errors|latency|search|played|idle|pictured|refused|answers|killed
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Observation
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
    from exact.environments.toy.known import maze, way_out
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


class PixelObservation(Observation):
    """An observation whose screenshot has the type that OpenEnv's `BrowserGymEnv` reads."""

    goal: str = ""
    screenshot: list[list[list[int]]] | None = None


class PixelClient(EnvClient[dict[str, str], PixelObservation, dict[str, Any]]):
    """A client with types of its own, as `BrowserGymEnv`, which is no package of the registry."""

    def _step_payload(self, action: dict[str, str]) -> dict[str, Any]:
        return {"action_str": action["action_str"], "metadata": {}}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[PixelObservation]:
        found = payload["observation"]
        observation = PixelObservation(goal=found["goal"], screenshot=found["screenshot"], metadata=found["metadata"])
        return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> dict[str, Any]:
        return payload


async def pictured(url: str) -> dict[str, Any]:
    """Look at a page as pixels and as a PNG, and at a call with another button and with the keys of another element."""
    from exact.environments.openenv import observed

    async with PixelClient(base_url=url) as client:
        first = await client.reset(seed=0, task_name="click-test")
        rows = first.observation.screenshot
        step = await client.step({"action_str": "noop()"})
    async with GenericEnvClient(base_url=url) as client:
        png = (await client.reset(seed=0, task_name="click-test", screenshot_format="png")).observation
        listed = (await client.reset(seed=0, task_name="click-test")).observation
        await client.reset(seed=0, task_name="enter-text")
        filled = await client.step({"action_str": "fill('1', 'a')"})
        pressed = [(await client.step({"action_str": each})).observation["error"] for each in ("press('1', 'b')", "press('2', 'Enter')")]
    return {
        "size": [len(rows), len(rows[0]), len(rows[0][0])], "again": len(step.observation.screenshot), "png": png["screenshot"][:8],
        "read": [observed(each).screenshot[:4].hex() for each in (png, listed)], "filled": filled.observation["error"], "pressed": pressed,
    }  # fmt: skip


async def refused(url: str) -> dict[str, Any]:
    """Repeat a refused action until the episode ends, by OpenEnv's client and by this package's."""
    from exact.environments.openenv import openenv_factory
    from exact.errors import ActionError
    from exact.task import Task

    async with GenericEnvClient(base_url=url) as client:
        await client.reset()
        steps = [await client.step({"action_str": 'go "up"'}) for _ in range(3)]
        state = await client.state()
    async with openenv_factory(url) as environments, environments.open(simulation=True) as environment:
        await environment.reset(Task(id="toy/chain?seed=0", instruction="", seed=0))
        ends = []
        for _ in range(3):
            try:
                ends.append((await environment.step(environment.actions.parse('go "up"'))).terminated)
            except ActionError:
                ends.append(None)
    return {"done": [each.done for each in steps], "errors": [each.observation["error"] for each in steps], "state": state, "ends": ends}


async def answers(url: str) -> dict[str, Any]:
    """Ask for what cannot be."""
    found: dict[str, Any] = {}
    async with GenericEnvClient(base_url=url) as client:
        await client.reset(task_name="maze", seed=3)
        state = await client.state()
        await client.reset(task_name=state["task_id"])
        found["same"] = (await client.state())["task_id"] == state["task_id"]
        for name, options in {
            "number": {"task_name": 7}, "list": {"task_name": ["maze"]}, "option": {"task": "maze"}, "seed": {"seed": "x"},
            "negative": {"seed": -1}, "two": {"task_name": state["task_id"], "seed": 4}, "fork": {"fork": 5},
            "long": {"task_name": "a" * 5000},
        }.items():  # fmt: skip
            try:
                found[name] = (await client.reset(**options)).observation["error"]
            except RuntimeError as error:
                found[name] = str(error)
        found["bid"] = (await client.step({"action_str": f"go('{'a' * 5000}')"})).observation["error"]
        found["empty"] = (await client.step({"action_str": ""})).observation["error"]
    async with GenericEnvClient(base_url=url) as client:
        try:
            await client.step({"action_str": "noop()"})
        except RuntimeError as error:
            found["before"] = str(error)
    return found


async def killed(url: str) -> dict[str, Any]:
    """Train against a server that is killed while a step is under way."""
    from exact.errors import ExactError
    from exact.learning.train.sessions import ClientSessions, asked

    async def episode(client: Any) -> None:
        await asked(client.reset())
        await asked(client.step({"action_str": "go"}))

    def trained() -> str:
        try:
            with ClientSessions(url, 1) as sessions:
                sessions.run(episode(*sessions.clients))
        except ExactError as error:
            return f"{type(error).__name__}: {error}"
        return ""

    return {"said": await asyncio.to_thread(trained)}


WAYS = {
    "errors": errors, "latency": latency, "search": search, "played": played, "idle": idle, "pictured": pictured, "refused": refused,
    "answers": answers, "killed": killed,
}  # fmt: skip
if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(WAYS[sys.argv[2]](sys.argv[1]))))
