"""Search an environment that does not import `exact`, in its own process and in any Python, by best-first search.

Run: `python examples/05_any_environment.py [path of a Python 3.9 or newer] [--sandbox]`. Needs no browser and no model. With
`--sandbox` gVisor snapshots and forks its process; without, the search restores states by reset and replay.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from exact import ActionSpace, Context, EnvironmentFactory, Evaluation, Proposal, Task
from exact.agents.agent import Agent
from exact.config import parse
from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
from exact.environments.sandbox.factory import sandboxed_factory
from exact.runs.runner import Runner, create

LIGHTS = Path(__file__).parent / "own_environment" / "lights.py"


class EverySwitch:
    """Policy that proposes every switch with equal prior."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        switches = context.observation.elements
        return tuple(Proposal(action=actions.action("press", each.id), prior=1 / len(switches)) for each in switches)


class Brightness:
    """Value function: the share of lamps that are on. An episode ends when all are on."""

    async def evaluate(self, context: Context) -> Evaluation:
        lamps = context.observation.elements
        return Evaluation(value=1.0 if context.terminated else 0.8 * sum("on" in each.name.split() for each in lamps) / len(lamps))


async def main(python: str, sandbox: bool) -> None:
    task = Task(id="lights/5", instruction="Turn all lamps on.")
    config = parse({"search": {"algorithm": "best_first", "iterations": 40, "k": 5, "commit": "plan"}, "reflection": {"kind": "none"}})
    agent = Agent(policy=EverySwitch(), value=Brightness())
    with tempfile.TemporaryDirectory() as folder:
        run = create(Path(folder) / "run", (task,), config)
        factory, log = EnvironmentSpec(f"{LIGHTS}:Lights", {"lamps": 5}, python=Path(python)), run.path / "guest.log"

        def environments(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
            return sandboxed_factory(factory, log=log) if sandbox else nullcontext(WorkerFactory(factory, log=log))

        runner = Runner(folder=run, config=config, open_environments=environments, build_agent=lambda *_: agent)
        for line in await runner.run():
            print(f"{line.task}: score {line.score} after {line.actions} actions; it said {len(log.read_text().splitlines())} lines")


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if each != "--sandbox"]
    asyncio.run(main(given[0] if given else sys.executable, "--sandbox" in sys.argv))
