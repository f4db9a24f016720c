"""A session of two goals with the register, and a process that holds it: `python -m tests.e2e.sessions OUT URL`.

With EXACT_TEST_HANGS the agent never answers once the second goal has a text in the form.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import exact
from exact.action import ActionSpace
from exact.context import Context

GOALS = ("Add Ann", "Add Bob")
SETTINGS = {
    "search": {"algorithm": "react", "k": 1},
    "reflection": {"kind": "none"},
    "browser": {"sandbox": "never", "screenshots": False, "settle_seconds": 1.0},
}


class Clerk:
    """Adds the name that a goal ends with, and counts how often it is asked."""

    def __init__(self) -> None:
        self.seen = list[Context]()

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> list[str]:
        self.seen.append(context)
        seen, name = context.observation, context.instruction.split()[-1]
        links = {each.name: each for each in seen.elements if each.role == "link"}
        box = next((each for each in seen.elements if each.role == "textbox"), None)
        button = next((each for each in seen.elements if each.role == "button"), None)
        sent = any(taken.observation.title == "Form" and taken.action.name == "click" for taken in context.history)
        if context.instruction.startswith("Type") and box is not None and box.value == name:
            return ['stop "typed"']
        if seen.title == "Done":
            return ['stop "added"' if sent else "go_back"]
        if box is None or button is None:
            return [f"click [{links['Forms'].id}]"]
        if box.value != name:
            return [f'fill [{box.id}] "{name}"']
        if os.environ.get("EXACT_TEST_HANGS") and context.instruction == GOALS[1]:
            sys.stdout.write("typed\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        return [f"click [{button.id}]"]

    async def evaluate(self, context: Context) -> float:
        return 0.5


def arguments(clerk: Clerk | None = None, **more: Any) -> dict[str, Any]:
    """Return the arguments of a session with the register."""
    known = clerk or Clerk()
    return {"agent": exact.Agent(policy=known, value=known), **more}


def first(url: str, out: Path | None = None, clerk: Clerk | None = None, **browser: Any) -> dict[str, Any]:
    """Return the arguments of a session that begins."""
    config = exact.Config.parse(SETTINGS | {"browser": {**SETTINGS["browser"], **browser}})
    return arguments(clerk, url=url, config=config, out=out)


async def work(out: Path, url: str) -> None:
    async with exact.session(**(arguments(resume=out) if (out / "run.json").exists() else first(url, out))) as session:
        for goal in GOALS:
            await session.solve(goal)
            sys.stdout.write("ended\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2]))
