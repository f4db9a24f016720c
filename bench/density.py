"""Measure how many forked browser environments one machine holds: memory of an idle and of a working one, forks a second, and the end.

A page of MiniWoB++ is walked down to depth 3 in a sandbox and kept as a snapshot. Environments are forked from it, one after another, and
stay open. Eight of them then click and observe, while 24 stand idle. Then more are forked, until memory is short, a fork fails, a fork
takes ten times as long as the first ones, or there are as many as `--most`.

Memory is measured in two ways: what the machine has less available than before the first environment, so that images in memory, page
tables and the kernel's part count; and the sum of the proportional set sizes of all processes. The larger one is the figure.

    python bench/density.py [--quick] [--most N] [--json FILE]
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import _common
from _environments import CONFIG, boxes, walk

from exact.benchmarks.miniwob import MiniWob
from exact.environments.base import Snapshot
from exact.environments.browser import BrowserEnvironment
from exact.environments.browser.fork.factory import ForkingFactory
from exact.environments.pool.capacity import measure_usage
from exact.errors import EnvironmentFailure

IDLE, WORKING, QUICK_IDLE, QUICK_WORKING = 24, 8, 6, 2
RESERVE = 2 << 30
"""Bytes of available memory below which no more are forked."""
SLOW = 10
"""A fork that takes this many times the median of the first ones ends the growth."""
MIB = 2**20


def available() -> int:
    """Return the bytes of memory that the machine has available."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


@dataclass
class Population:
    """Open environments, and what each of them took."""

    factory: ForkingFactory
    snapshot: Snapshot
    stack: AsyncExitStack
    free: int
    """Bytes of memory that were available before the first environment."""
    environments: list[BrowserEnvironment] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    async def add(self) -> float:
        """Fork one more, and return the seconds until its first observation. Raises EnvironmentFailure."""
        began = time.perf_counter()
        self.environments.append(await self.stack.enter_async_context(self.factory.fork(self.snapshot, simulation=True)))
        self.seconds.append(time.perf_counter() - began)
        return self.seconds[-1]

    async def grow(self, count: int, noise: _common.Noise) -> None:
        """Fork until there are that many."""
        while len(self.environments) < count:
            await self.add()
            noise.probe()

    async def fill(self, most: int, noise: _common.Noise) -> str:
        """Fork until something ends it, and return what."""
        usual = statistics.median(self.seconds)
        while len(self.environments) < most:
            if available() < RESERVE:
                return f"less than {RESERVE >> 30} GiB of memory available"
            try:
                if await self.add() > SLOW * usual:
                    return f"a fork took {self.seconds[-1]:.1f} s, in place of {usual:.2f} s"
            except EnvironmentFailure as error:
                return f"a fork failed: {error}"
            noise.probe()
        return "not reached"

    def used(self) -> dict[str, float]:
        """Return memory in MiB, and the number of processes."""
        usage = measure_usage()
        return {"machine_mib": (self.free - available()) / MIB, "process_mib": usage.memory / MIB, "processes": usage.processes}


async def work(environment: BrowserEnvironment, until: float) -> list[float]:
    """Click the boxes of a page in turn until a moment; the seconds of each step, its observation included."""
    site, found = boxes(), list[float]()
    seen = environment.observation
    while time.perf_counter() < until:
        began = time.perf_counter()
        transition = await environment.step(site.action(environment, seen, len(found)))
        assert transition.observation is not None
        seen = transition.observation
        found.append(time.perf_counter() - began)
    return found


async def measure(idle: int, working: int, seconds: float, most: int, noise: _common.Noise) -> dict[str, Any]:
    """Return all measurements, in the order of the docstring."""
    free = available()
    async with AsyncExitStack() as stack:
        factory = await stack.enter_async_context(MiniWob().forking_factory(CONFIG))
        scout = await stack.enter_async_context(factory.open(simulation=True))
        _, kept = await walk(boxes(), scout, 3, (3,))
        held = await stack.enter_async_context(AsyncExitStack())
        population = Population(factory, kept[3], held, free)
        alone = population.used()
        await population.grow(idle, noise)
        at_rest = population.used()
        await population.grow(idle + working, noise)
        until = time.perf_counter() + seconds
        steps = await asyncio.gather(*(work(each, until) for each in population.environments[-working:]))
        at_work = population.used()
        first = list(population.seconds)
        end = await population.fill(most, noise)
        at_end, count = population.used(), len(population.environments)
        with suppress(EnvironmentFailure):
            began = time.perf_counter()
            await held.aclose()
        return {
            "first": first, "alone": alone, "at_rest": at_rest, "at_work": at_work,
            "steps": [step for each in steps for step in each], "seconds": seconds,
            "end": end, "at_end": at_end, "count": count, "later": population.seconds[len(first) :],
            "close_s": time.perf_counter() - began,
        }  # fmt: skip


def main() -> None:
    options = _common.parser(__doc__ or "")
    options.add_argument("--most", type=int, default=64, metavar="N", help="environments at most")
    given = options.parse_args()
    idle, working = (QUICK_IDLE, QUICK_WORKING) if given.quick else (IDLE, WORKING)
    noise = _common.Noise()
    noise.probe()
    most = idle + working if given.quick else given.most
    found = asyncio.run(measure(idle, working, 5.0 if given.quick else 20.0, most, noise))
    noise.probe()
    rows = [
        ("the first one, with its snapshot", found["alone"]),
        (f"{idle} idle", found["at_rest"]),
        (f"{idle} idle, {working} working", found["at_work"]),
        (f"{found['count']}, {working} of them worked", found["at_end"]),
    ]
    cells = [[name, *(f"{each[key]:.0f}" for key in ("machine_mib", "process_mib", "processes"))] for name, each in rows]
    _common.table(["environments", "MiB of the machine", "MiB of processes", "processes"], cells)
    rate, median = len(found["steps"]) / found["seconds"], statistics.median(found["steps"])
    print(f"\n{working} working environments: {rate:.1f} steps a second together, {median * 1000:.0f} ms a step at the median")
    print(f"where it ends: {found['end']} ({found['count']} environments; all closed in {found['close_s']:.1f} s)")
    alone, at_rest, at_work = (max(found[name]["machine_mib"], found[name]["process_mib"]) for name in ("alone", "at_rest", "at_work"))
    figures = [_common.Figure("idle_fork_mib", (at_rest - alone) / idle)]
    if not given.quick:  # the others depend on how many there are
        figures += [
            _common.Figure("working_fork_mib", (at_work - at_rest) / working),
            _common.Figure("forks_per_second", len(found["first"]) / sum(found["first"])),
            _common.Figure("steps_per_second", rate),
            _common.Figure("environments_at_end", found["count"], idle + working),
            _common.Figure("density_gib", at_work / 1024, 8, at_least=False),
        ]
    _common.finish(given, figures, noise, _common.versions("exact-agent", "playwright", "miniwob"), found)


if __name__ == "__main__":
    main()
