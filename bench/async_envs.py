"""Measure how much sync environments in guests delay the event loop: 8 of WebArena's ScriptBrowserEnv work while a heartbeat ticks every
10 ms.

How late the heartbeat's ticks come is measured three times in turn: in an event loop that does nothing else, in one that does nothing
while another process drives the same environments (the machine's noise), and in the one that drives them. The figure is how much later
the latest tick came with the environments than with the noise alone. Needs `shells/setup.sh --browsergym`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from _common import ROOT, Figure, Noise, finish, parser, table, versions

from exact.environments.adapters.script_browser import OpenScriptBrowser, script_browsers

sys.path.insert(0, str(ROOT / "examples" / "sync_environments"))
import run as example

NUMBER, BEAT = 8, 0.01


class Heart:
    """Ticks every 10 ms and keeps how late each tick came, in seconds."""

    def __init__(self) -> None:
        self.late: list[float] = []

    async def beat(self) -> None:
        due = time.perf_counter() + BEAT
        while True:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            now = time.perf_counter()
            self.late.append(max(0.0, now - due))
            due = now + BEAT

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.beat())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def quantile(self, share: float) -> float:
        ordered = sorted(self.late)
        return ordered[int(share * (len(ordered) - 1))]


async def episodes(open: OpenScriptBrowser, number: int) -> int:
    """Attempt all of the example's tasks at once, and return the number that were solved."""
    tasks = example.tasks()
    return int(sum(await asyncio.gather(*(example.attempt(open, tasks[at % len(tasks)]) for at in range(number)))))


async def driven() -> None:
    """Make the attempts and nothing else: the load of another process beside an idle loop."""
    async with script_browsers() as open:
        print("open", flush=True)
        await episodes(open, NUMBER)


@asynccontextmanager
async def elsewhere() -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process that makes the attempts, in a folder where its environments can be opened."""
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, "--drive", stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        if await process.wait():
            raise SystemExit("async_envs: the environments that another process drives failed")


async def measure(rounds: int, noise: Noise) -> tuple[dict[str, Heart], int]:
    """Hearts by what ran beside them, for about the same time each; and how many attempts were solved."""
    hearts = {name: Heart() for name in ("nothing else", "driven elsewhere", "environments")}
    solved = 0
    async with script_browsers() as open:
        for _ in range(rounds):
            noise.probe()
            began = time.perf_counter()
            async with hearts["environments"].beating():
                solved += await episodes(open, NUMBER)
            seconds = time.perf_counter() - began
            async with elsewhere() as process, hearts["driven elsewhere"].beating():
                await process.wait()
            async with hearts["nothing else"].beating():
                await asyncio.sleep(min(seconds, 5.0))
    return hearts, solved


def main() -> None:
    asked = parser(__doc__ or "")
    asked.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.drive:
        asyncio.run(driven())
        return
    noise = Noise()
    rounds = 1 if options.quick else 4
    hearts, solved = asyncio.run(measure(rounds, noise))
    rows = [
        (name, *(f"{1000 * each:.1f}" for each in (heart.quantile(0.5), heart.quantile(0.99), max(heart.late))), str(len(heart.late)))
        for name, heart in hearts.items()
    ]
    table(("beside", "median ms late", "99th percentile", "latest", "ticks"), rows)
    print(f"{solved} of {rounds * NUMBER} attempts solved")
    beyond = max(hearts["environments"].late) - max(max(hearts[name].late) for name in ("nothing else", "driven elsewhere"))
    figures = [
        Figure("worst_tick_ms", 1000 * max(0.0, beyond), 50, at_least=False),
        Figure("solved_share", solved / (rounds * NUMBER), 1.0),
    ]
    details: dict[str, Any] = {
        "latest_ms": {name: round(1000 * max(heart.late), 2) for name, heart in hearts.items()},
        "p99_ms": {name: round(1000 * heart.quantile(0.99), 2) for name, heart in hearts.items()},
    }
    finish(options, figures, noise, versions("exact-agent"), details)


if __name__ == "__main__":
    main()
