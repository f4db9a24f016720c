"""An agent that adds a name to the register, and a process that carries its way out again: `python -m tests.e2e.rerunning RUN OUT URL`.

With EXACT_TEST_HANGS the agent never answers.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import exact
from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import PersonQuestion

GOAL = "Add Ann to the register."
BROWSER = {"sandbox": "never", "screenshots": False, "settle_seconds": 1.0}
SEARCH = {"algorithm": "mcts", "iterations": 6, "k": 3}


class Registrar:
    """Policy and value function that know the way by the roles of elements, and count how often they are asked."""

    def __init__(self, name: str = "Ann") -> None:
        self.name, self.asked = name, 0

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self.asked += 1
        if os.environ.get("EXACT_TEST_HANGS"):
            sys.stdout.write("asked\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        seen = context.observation
        links = [each for each in seen.elements if each.role == "link"]
        box = next((each for each in seen.elements if each.role == "textbox"), None)
        button = next((each for each in seen.elements if each.role == "button"), None)
        if seen.title == "Done":
            texts = ['stop "done"']
        elif box is not None and button is not None:
            texts = [f"click [{button.id}]" if box.value else f'fill [{box.id}] "{self.name}"', f"click [{links[-1].id}]"]
        elif seen.title == "Notice":
            texts = [f"click [{each.id}]" for each in links]
        else:
            texts = [f"click [{each.id}]" for each in reversed(links)] or ["go_back"]
        return tuple(Proposal(action=actions.parse(text), prior=1 / len(texts)) for text in texts[:k])

    async def evaluate(self, context: Context) -> Evaluation:
        self.asked += 1
        seen, last = context.observation, context.history[-1].action.key if context.history else ""
        filled = any(each.role == "textbox" and each.value for each in seen.elements)
        worth = {"Form": 0.6 if filled else 0.4, "Done": 0.9, "Notice": 0.3, "News": 0.1}.get(seen.title, 0.2)
        if context.unseen:
            worth = 0.8 if filled and last.startswith("click") else 0.1
        return Evaluation(value=1.0 if context.terminated and seen.title == "Done" else 0.0 if context.terminated else worth)


async def work(url: str, agent: Registrar | None = None, *, depth: int = 3, **more: Any) -> exact.Solution[Any]:
    """Attempt the goal."""
    known = agent or Registrar()
    config = exact.Config.parse({"search": {**SEARCH, "depth": depth}, "reflection": {"kind": "none"}, "browser": BROWSER})
    return await exact.solve(GOAL, url=url, agent=exact.Agent(policy=known, value=known), config=config, **more)


async def yes(text: str, question: PersonQuestion) -> bool:
    return True


if __name__ == "__main__":
    asyncio.run(work(sys.argv[3], replay=sys.argv[1], out=sys.argv[2], approve=yes))
