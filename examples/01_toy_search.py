"""Search a toy environment of five rooms with your own policy and value function, and journal the run.

Run: `python examples/01_toy_search.py`. Needs no browser and no model.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import nullcontext
from pathlib import Path

from exact import ActionSpace, Context, Evaluation, Proposal
from exact.agents.agent import Agent
from exact.config import parse
from exact.environments.toy.factory import ToyFactory, deceptive_chain, toy_task
from exact.runs.runner import Runner, create


class LinkPolicy:
    """Policy that proposes every link of the page with equal prior."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        links = [element.name for element in context.observation.elements if element.role == "link"][:k]
        return tuple(Proposal(action=actions.action("go", link), prior=1 / len(links)) for link in links)


class DepthValue:
    """Value function that prefers depth. At the end of an episode it knows only the actions taken."""

    async def evaluate(self, context: Context) -> Evaluation:
        went_right = any(taken.action.args[0] == "right" for taken in context.history)
        return Evaluation(value=min(1.0, 0.2 + 0.1 * len(context.history) + 0.4 * went_right))


async def main() -> None:
    environment, config = deceptive_chain(3), parse({"name": "by_hand", "search": {"iterations": 20}, "reflection": {"kind": "none"}})
    with tempfile.TemporaryDirectory() as folder:
        run = create(Path(folder) / "run", (toy_task(environment),), config)
        runner = Runner(
            folder=run,
            config=config,
            open_environments=lambda task: nullcontext(ToyFactory(environment)),
            build_agent=lambda config, models: Agent(policy=LinkPolicy(), value=DepthValue()),
        )
        for line in await runner.run():
            print(f"{line.task}: score {line.score}, {line.actions} actions, {line.transitions} steps, {line.evaluations} evaluations")


if __name__ == "__main__":
    asyncio.run(main())
