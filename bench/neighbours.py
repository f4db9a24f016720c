"""How much slower an environment is beside a page that floods its browser: a click in a neighbour, and a new environment.

    python bench/neighbours.py [--flood NAME]...

Each flood is a page of `tests/gate`, which would run for eight seconds. In these seconds a neighbour of the same browser clicks, and new
environments are opened, reset, used once and closed, one after the other, whether the flood was stopped meanwhile or not. Means are
compared with those before.

  click_beside_flood            largest ratio of the mean seconds of a click, of all floods
  environment_beside_flood      the same of a new environment
  failures_beside_flood         clicks and environments that failed
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from _common import ROOT, Figure, Noise, finish, parser, table, versions
from _flooding import FLOODS as NAMED

sys.path.insert(0, str(ROOT))

from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task
from tests.gate.attacks_neighbours import SECONDS
from tests.gate.neighbour import click, opened, timed
from tests.safety.attack import environments

FLOODS = (
    "frames_churned", "frames_of_other_sites_churned", "refused_from_workers", "refused_pictures_and_sockets", "titles_and_history",
    "console_of_the_page", "console_of_workers", "console_of_long_lines", "streams_without_end", "stream_of_long_messages",
    "stream_as_document", "addresses_of_long_frames", "states_of_large_entries", "names_of_large_frames",
)  # fmt: skip
ROUNDS = 3
"""Times that each flood runs."""
CAP = 60.0
"""Most seconds of a click or of a new environment."""


@dataclass
class Beside:
    """Seconds of clicks and of new environments, before a flood and beside it, and what failed."""

    clicks: list[float] = field(default_factory=list)
    news: list[float] = field(default_factory=list)
    clicks_beside: list[float] = field(default_factory=list)
    news_beside: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stopped: int = 0
    """Rounds in which the flood was ended before its time."""

    def ratios(self) -> tuple[float, float]:
        """Return how many times slower clicks and new environments are in the seconds of the flood, by means."""
        return (
            statistics.fmean(self.clicks_beside or [CAP]) / statistics.fmean(self.clicks),
            statistics.fmean(self.news_beside or [CAP]) / statistics.fmean(self.news),
        )


@dataclass
class Served:
    """Addresses of a flood and of a quiet page, and the process that serves them."""

    quiet: str
    start: str
    origins: list[str]
    process: asyncio.subprocess.Process

    async def begins(self) -> None:
        """Wait until the flood begins."""
        assert self.process.stdout
        await self.process.stdout.readline()


@asynccontextmanager
async def served(name: str) -> AsyncIterator[Served]:
    """Serve a flood in a process of its own."""
    program = ROOT / "bench" / "_flooding.py"
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), name, stdin=PIPE, stdout=PIPE)
    assert process.stdin and process.stdout
    try:
        yield Served(**json.loads(await process.stdout.readline()), process=process)
    finally:
        process.stdin.close()
        await process.wait()


async def flooded(name: str, made: Served, factory: EnvironmentFactory, beside: Environment, seen: Observation, found: Beside) -> None:
    """Use a neighbour and open new environments, first at rest, then while a page floods the browser."""
    quiet = made.quiet
    for _ in range(4):
        found.clicks += [await timed(click(beside, seen, "Quiet")) for _ in range(3)]
        found.news.append(await opened(factory, quiet, "Quiet"))
    ends, pressed = asyncio.Event(), asyncio.Event()

    async def floods() -> None:
        task = Task(id=f"bench/{name}", instruction="Look around.", start=made.start, origins=tuple(made.origins))
        with suppress(EnvironmentFailure):
            async with factory.open(simulation=False) as environment:
                first = await environment.reset(task)
                pressed.set()
                with suppress(ActionError):
                    await click(environment, first, "Go")
                await ends.wait()

    running = asyncio.create_task(floods())
    await asyncio.wait((running, asyncio.create_task(pressed.wait())), return_when=asyncio.FIRST_COMPLETED)
    with suppress(TimeoutError):
        await asyncio.wait_for(made.begins(), 10)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for _ in range(3):
            await one(click(beside, seen, "Quiet"), found.clicks_beside, found, f"{name}: a click")
        await one(opened(factory, quiet, "Quiet"), found.news_beside, found, f"{name}: a new environment")
    found.stopped += running.done()
    ends.set()
    await asyncio.wait_for(running, CAP)


async def one(doing: Any, times: list[float], found: Beside, what: str) -> None:
    """Time something, or note that it failed."""
    try:
        times.append(await asyncio.wait_for(timed(doing), CAP))
    except (ActionError, EnvironmentFailure, TimeoutError) as error:
        found.failures.append(f"{what}: {str(error)[:200] or 'no answer'}")


async def measure(names: list[str], rounds: int, noise: Noise) -> dict[str, Beside]:
    """Return what the neighbours of each flood suffered."""
    found = dict[str, Beside]()
    for name in names:
        found[name] = Beside()
        for _ in range(rounds):
            async with served(name) as made, environments("process") as factory, factory.open(simulation=True) as beside:
                noise.probe()  # here the browser of the last flood is gone
                seen = await beside.reset(Task(id="bench/quiet", instruction="Look around.", start=made.quiet))
                await flooded(name, made, factory, beside, seen, found[name])
        print(f"{name}: {json.dumps(found[name].__dict__)}", file=sys.stderr)
    return found


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--flood", action="append", choices=[*NAMED], help="only this flood")
    given, noise = options.parse_args(), Noise()
    names = given.flood or list(FLOODS[:2] if given.quick else FLOODS)
    found = asyncio.run(measure(names, 1 if given.quick else ROUNDS, noise))
    ratios = {name: each.ratios() for name, each in found.items()}
    rows = list[tuple[str, ...]]()
    for name, each in found.items():
        slowest = (max(times, default=CAP) for times in (each.clicks_beside, each.news_beside))
        shown = (*(f"{ratio:.2f}" for ratio in ratios[name]), *(f"{seconds:.1f}" for seconds in slowest))
        rows.append((name, *shown, str(len(each.news_beside)), str(len(each.failures)), str(each.stopped)))
    table(("flood", "click", "environment", "slowest click, s", "slowest environment, s", "environments", "failures", "stopped"), rows)
    for each in found.values():
        print(*each.failures, sep="\n", end="\n" if each.failures else "")
    figures = [
        Figure("click_beside_flood", max(each[0] for each in ratios.values()), 2, at_least=False),
        Figure("environment_beside_flood", max(each[1] for each in ratios.values()), 2, at_least=False),
        Figure("failures_beside_flood", sum(len(each.failures) for each in found.values()), 0, at_least=False),
    ]
    finish(given, figures, noise, versions("playwright"), {"floods": {name: each.__dict__ for name, each in found.items()}})


if __name__ == "__main__":
    main()
