"""Run eight of WebArena's sync environments in one event loop, beside other coroutines.

Run: `python examples/sync_environments/run.py [count]`. Needs `shells/setup.sh --browsergym` or EXACT_BROWSERGYM.

Each is libwebarena's ScriptBrowserEnv in its own process. The tasks are local files.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from exact.environments.adapters.script_browser import OpenScriptBrowser, script_browsers

HERE = Path(__file__).parent


def tasks() -> list[dict[str, Any]]:
    """Return the tasks, with the addresses of the local pages."""
    found: list[dict[str, Any]] = json.loads((HERE / "tasks.json").read_text("utf-8"))
    for task in found:
        task["start_url"] = (HERE / task["start_url"]).as_uri()
        task["eval"]["reference_url"] = task["eval"]["reference_url"] and task["start_url"]
    return found


async def attempt(open: OpenScriptBrowser, task: dict[str, Any]) -> float:
    """Order the article, or read the price from the page, and return the evaluator's score."""
    async with open() as browser:
        state = await browser.reset(task)
        if task["task_id"] == "price-of-pears":
            price = re.search(r"'Pears'.*?'(\d+\.\d+)'", state.observation, re.S)
            await browser.end(price[1] if price else "")
            return (await browser.score()).value
        for button in ("Add quinces", "Order"):
            found = re.search(rf"\[(\d+)\] button '{button}'", state.observation)
            state = await browser.action(f"click [{found[1] if found else 0}]")
        await browser.end()
        return (await browser.score()).value


async def heartbeat(seconds: float) -> float:
    """Tick until cancelled and return the largest delay of a tick, in seconds."""
    latest = 0.0
    try:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(seconds)
            latest = max(latest, time.perf_counter() - before - seconds)
    except asyncio.CancelledError:
        return latest


async def main(number: int) -> None:
    beating = asyncio.create_task(heartbeat(0.01))
    async with script_browsers() as open:
        some = tasks()
        scores = await asyncio.gather(*(attempt(open, some[at % len(some)]) for at in range(number)))
    beating.cancel()
    print(f"{sum(scores):.0f} of {number} solved; the largest heartbeat delay was {1000 * await beating:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8))
