"""Use your own search algorithm by name: the package in examples/own_algorithm registers `climb` as an entry point.

Run: `pip install ./examples/own_algorithm`, then `python examples/04_own_algorithm.py`. Needs no browser and no model.
"""

import asyncio
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from exact.agents.agent import Agent
from exact.config import parse
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory, form, toy_task
from exact.runs.runner import Runner, create
from exact.search.registry import names


async def main():
    if "climb" not in names():
        sys.exit("the algorithm is not installed: pip install ./examples/own_algorithm")
    environment = form(4)
    config = parse({"search": {"algorithm": "climb"}, "reflection": {"kind": "none"}})
    with tempfile.TemporaryDirectory() as folder:
        run = create(Path(folder) / "run", (toy_task(environment),), config)
        runner = Runner(
            folder=run,
            config=config,
            open_environments=lambda task: nullcontext(ToyFactory(environment)),
            build_agent=lambda config, models: Agent(policy=ToyPolicy(environment), value=ToyValue(environment)),
        )
        for line in await runner.run():
            print(f"{line.task}: score {line.score}, {line.actions} actions, {line.transitions} steps, {line.evaluations} evaluations")


if __name__ == "__main__":
    asyncio.run(main())
