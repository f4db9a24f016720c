"""Measure steps a second on MiniWoB++: exact's browser environment against BrowserGym, and the cost of isolation.

A step is one click and the observation after it. Each contender clicks the same elements in the same order on the same page with the same
problem, in the same browser binary, served by the same server, in alternating rounds. Afterwards the pages must be in the same state, or
the bench fails. The clicks of the chosen pages do not end the episode: click-checkboxes-large (toggles, few changes of the DOM) and
click-tab-2 (every click shows another text).

BrowserGym returns at least its DOM snapshot, accessibility tree, boxes and visibility of elements, and always a screenshot. exact returns
the accessibility tree with boxes and visibility, as objects and as text, and a fingerprint. It waits until the page is quiet, which
BrowserGym does not check, and checks whether the episode has ended; `+ screenshot` adds the PNG. Converting BrowserGym's tree into text,
which its agents do next, is not counted.

  browsergym                as published: 0.5 s before each observation, 0.1 s for each browser command (`slow_mo`)
  browsergym, no waits      both set to 0
  browsergym, bare          no waits and no screenshot
  exact                     accessibility tree
  exact + screenshot
  exact, unguarded          no interception of requests, and no wall in front of the browser
  exact, guest              the whole environment with its browser in its own process, behind frames over stdio
  exact, gVisor             browser and server in a sandbox, in a fork restored from a snapshot; Playwright outside

The figures compare `exact` (a click and the accessibility tree with boxes) with BrowserGym as published and without its waits. Both of
these also take a screenshot, which cannot be turned off, so three more figures compare equal content: `exact + screenshot` with them, and
`exact` with `bare`. `guard_cost` is seconds of a step of `exact` over seconds of the same step unguarded, and `guard_first_page_ms` how
much later the first page of a fresh environment is there, at the median. `guest_vs_native` and `gvisor_vs_native` are seconds of a step
there over seconds of the same step of `exact`. The last contender is left out where environments do not fork. The fork is not paused
between its rounds, because only idle environments pause.
BrowserGym has a virtual environment of its own, which the first run makes (it needs the package index then).

    python bench/browser_step.py --json bench/results/browser_step.json
    python bench/browser_step.py --profile      what a step of `exact` is made of
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import _phases
from _common import ROOT, Figure, Noise, finish, interval, parser, table, versions
from _peers import make_venv
from _unguarded import unguarded

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.pages import serve
from exact.benchmarks.miniwob.suite import HEIGHT, WIDTH, page_setup
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.environments.browser import BrowserFactory, find_browser
from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
from exact.environments.reward import miniwob_pages
from exact.errors import EnvironmentFailure
from exact.observation import Element, Observation

BROWSERGYM = "browsergym-miniwob==0.14.3"
STATES = ("checked", "expanded", "selected")
PAGES = {"click-checkboxes-large": ("checkbox", 6), "click-tab-2": ("tab", 3)}
"""Page to the role that is clicked, and how many elements of it in turn."""
SEED = 1
AWAKE = 3600.0
"""Seconds without a step after which an environment is paused."""

Clicks = list[tuple[str, int]]
"""Role, and which of that role in document order."""


class Contender(Protocol):
    async def open(self, task: str) -> int:
        """Begin a task; the number of nodes in its tree."""
        ...

    async def steps(self, clicks: Clicks) -> tuple[list[float], list[str]]:
        """Seconds of each step, and the states afterwards of the elements clicked on."""
        ...


class Ours:
    """Also in a guest. An environment that forks is measured in a branch of where its task begins."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.seen: Observation

    async def open(self, task: str) -> int:
        self.seen = await self.environment.reset(MiniWob().task(f"miniwob/{task}?seed={SEED}"))
        if self.environment.capabilities.fidelity == "full":
            self.seen = await self.environment.restore(await self.environment.snapshot())
        return len(self.seen.elements)

    async def steps(self, clicks: Clicks) -> tuple[list[float], list[str]]:
        seconds = []
        for role, index in clicks:
            action = self.environment.actions.parse(f"click [{self.of_role(role)[index].id}]")
            start = time.perf_counter()
            transition = await self.environment.step(action)
            seconds.append(time.perf_counter() - start)
            if transition.observation is None:
                raise RuntimeError(f"click on {role} {index}: the episode has ended")
            self.seen = transition.observation
        roles = sorted({role for role, _ in clicks})
        return seconds, [" ".join(s for s in STATES if s in element.states) for role in roles for element in self.of_role(role)]

    def of_role(self, role: str) -> list[Element]:
        return [element for element in self.seen.elements if element.role == role]


class BrowserGym:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def open(self, task: str) -> int:
        return int((await self.ask({"open": {"task": task, "seed": SEED}}))["nodes"])

    async def steps(self, clicks: Clicks) -> tuple[list[float], list[str]]:
        answer = await self.ask({"steps": clicks})
        return answer["seconds"], [" ".join(sorted(state.split())) for state in answer["state"]]

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        line = await self.process.stdout.readline()
        if not line:
            raise SystemExit("BrowserGym's process ended: its log is above")
        return dict(json.loads(line))


@dataclass
class Times:
    """Seconds of every step of one contender, a list for each round."""

    rounds: list[list[float]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Steps a second over all rounds."""
        return sum(map(len, self.rounds)) / sum(map(sum, self.rounds))

    def per_step(self) -> list[float]:
        return sorted(second for round in self.rounds for second in round)


@contextlib.asynccontextmanager
async def browsergym(python: Path, url: str, mode: str) -> AsyncIterator[BrowserGym]:
    """Open a BrowserGym guest. Its log is printed if it fails."""
    command = [python, ROOT / "bench" / "_browsergym.py", str(find_browser()), mode]
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env={**os.environ, "MINIWOB_URL": url}
        )
        assert process.stdin
        try:
            yield BrowserGym(process)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-4000:])
            raise
        finally:
            process.stdin.close()
            await process.wait()


@contextlib.asynccontextmanager
async def contenders(python: Path) -> AsyncIterator[dict[str, Contender]]:
    """Open all contenders side by side."""
    modes = {"browsergym": "waits", "browsergym, no waits": "no-waits", "browsergym, bare": "bare"}
    async with contextlib.AsyncExitStack() as stack:
        url = f"http://{await stack.enter_async_context(serve(miniwob_pages()))}/miniwob/"
        found: dict[str, Contender] = {}
        for name, mode in modes.items():
            found[name] = await stack.enter_async_context(browsergym(python, url, mode))
        for name, screenshots in {"exact": False, "exact + screenshot": True}.items():
            environments = await stack.enter_async_context(MiniWob().environments(BrowserConfig(screenshots=screenshots)))
            found[name] = Ours(await stack.enter_async_context(environments.open(simulation=False)))
        found["exact, unguarded"] = Ours(await stack.enter_async_context((await stack.enter_async_context(bare())).open(simulation=False)))
        guests = WorkerFactory(EnvironmentSpec(f"{ROOT / 'bench' / '_guest.py'}:environments", paths=(ROOT,)))
        found["exact, guest"] = Ours(await stack.enter_async_context(guests.open(simulation=False)))
        try:
            forks = await stack.enter_async_context(MiniWob().forking_factory(BrowserConfig(screenshots=False)))
        except EnvironmentFailure as error:
            print(f"without the gVisor column: {error}")
        else:
            forks.store.idle = AWAKE
            found["exact, gVisor"] = Ours(await stack.enter_async_context(forks.open(simulation=False)))
        yield found


@contextlib.asynccontextmanager
async def bare() -> AsyncIterator[BrowserFactory]:
    """Open environments without the guard."""
    config = BrowserConfig(screenshots=False, width=WIDTH, height=HEIGHT)
    async with serve(miniwob_pages()) as address:
        setup = page_setup(address)
        async with unguarded(config, setup.hosts) as browser:
            yield BrowserFactory(browser, setup, config, isolated=True)


async def first_pages(rounds: int) -> list[float]:
    """Return for each round how many milliseconds later the first page of a fresh environment is there with the guard than without."""
    task, later = MiniWob().task(f"miniwob/click-tab-2?seed={SEED}"), []
    async with MiniWob().environments(BrowserConfig(screenshots=False)) as guarded, bare() as free:
        for number in range(-1, rounds):  # round -1 warms up
            seconds = []
            for kind in (guarded, free) if number % 2 else (free, guarded):
                async with kind.open(simulation=False) as environment:
                    start = time.perf_counter()
                    await environment.reset(task)
                    seconds.append(time.perf_counter() - start)
            if number >= 0:
                later.append(1000 * (seconds[0] - seconds[1]) * (1 if number % 2 else -1))
    return later


async def measure(python: Path, *, rounds: int, steps: int) -> tuple[dict[str, dict[str, Times]], dict[str, dict[str, int]], Noise]:
    """Return times by contender and page, tree sizes by page and contender, and the noise."""
    noise, sizes = Noise(), dict[str, dict[str, int]]()
    async with contenders(python) as field_:
        times = {name: {page: Times() for page in PAGES} for name in field_}
        for page, (role, count) in PAGES.items():
            sizes[page] = dict(zip(field_, await asyncio.gather(*(contender.open(page) for contender in field_.values())), strict=True))
            clicks = [(role, (i + 1) % count) for i in range(steps)]
            for number in range(-1, rounds):  # round -1 warms up
                ends = {}
                for name, contender in field_.items():
                    noise.probe()
                    seconds, ends[name] = await contender.steps(clicks if number >= 0 else clicks[:2])
                    if number >= 0:
                        times[name][page].rounds.append(seconds)
                if len({tuple(end) for end in ends.values()}) != 1:
                    raise SystemExit(f"{page}: the contenders reached different states: {ends}")
    return times, sizes, noise


async def profile(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each part of the steps of `exact`, by page."""
    found = dict[str, dict[str, list[float]]]()
    async with MiniWob().environments(BrowserConfig(screenshots=False)) as environments, environments.open(simulation=False) as environment:
        ours = Ours(environment)
        for page, (role, count) in PAGES.items():
            await ours.open(page)
            await ours.steps([(role, 1), (role, 0)])  # warms up
            with _phases.timed(_phases.ACTION) as found[page]:
                await ours.steps([(role, (number + 1) % count) for number in range(rounds)])
    return found


def ratio(times: dict[str, dict[str, Times]], ours: str, theirs: str) -> tuple[float, float, float]:
    """Return the ratio of steps a second: median, smallest and largest over the rounds of all pages."""
    pairs = [pair for page in PAGES for pair in zip(times[ours][page].rounds, times[theirs][page].rounds, strict=True)]
    return interval([statistics.fmean(b) / statistics.fmean(a) for a, b in pairs])


def main() -> None:
    asked = parser(__doc__ or "")
    asked.add_argument("--profile", action="store_true", help="print what a step of exact is made of, and nothing else")
    options = asked.parse_args()
    if options.profile:
        for page, parts in asyncio.run(profile(60)).items():
            table([f"a step on {page}", "ms, median"], _phases.rows(parts, 1))
        return
    rounds, steps = (2, 2) if options.quick else (12, 6)
    python = make_venv(BROWSERGYM, lock="browsergym.txt")
    times, sizes, noise = asyncio.run(measure(python, rounds=rounds, steps=steps))

    rows = []
    for name, pages in times.items():
        every = sorted(second for page in pages.values() for second in page.per_step())
        cells = [f"{pages[page].rate:.1f}" for page in PAGES]
        rows.append([name, *cells, f"{statistics.median(every) * 1000:.0f}", f"{every[int(0.9 * (len(every) - 1))] * 1000:.0f}"])
    table(["steps/s", *PAGES, "median ms", "p90 ms"], rows)
    pairs = {
        "steps_vs_browsergym_bare": ("exact", "browsergym, bare", None),
        "steps_with_screenshot_vs_browsergym": ("exact + screenshot", "browsergym", None),
        "steps_with_screenshot_vs_browsergym_nowait": ("exact + screenshot", "browsergym, no waits", None),
        "steps_vs_browsergym": ("exact", "browsergym", 30.0),
        "steps_vs_browsergym_nowait": ("exact", "browsergym, no waits", 7.0),
    }
    ratios = {figure: ratio(times, ours, theirs) for figure, (ours, theirs, _) in pairs.items()}
    print()
    for figure, (ours, theirs, _) in pairs.items():
        middle, low, high = ratios[figure]
        print(f"{ours} / {theirs}: {middle:.1f} (rounds {low:.1f} to {high:.1f})")
    figures = [Figure(name, ratios[name][0], goal) for name, (_, _, goal) in pairs.items()]
    ratios["guard_cost"] = ratio(times, "exact, unguarded", "exact")
    print("exact / exact, unguarded, seconds: {:.3f} (rounds {:.2f} to {:.2f})".format(*ratios["guard_cost"]))
    later = interval(asyncio.run(first_pages(3 if options.quick else 20)))
    ratios["guard_first_page_ms"] = later
    print("first page, exact - exact, unguarded: {:.0f} ms (rounds {:.0f} to {:.0f})".format(*later))
    figures.append(Figure("guard_cost", ratios["guard_cost"][0], 1.1, at_least=False))
    figures.append(Figure("guard_first_page_ms", later[0], 50.0, at_least=False))
    for figure, name, most in (("guest_vs_native", "exact, guest", None), ("gvisor_vs_native", "exact, gVisor", 1.6)):
        if name in times:
            ratios[figure] = ratio(times, "exact", name)
            print("{} / exact, seconds: {:.2f} (rounds {:.2f} to {:.2f})".format(name, *ratios[figure]))
            figures.append(Figure(figure, ratios[figure][0], most, at_least=False))
    details = {
        "rounds": rounds,
        "steps_a_round": steps,
        "tree_nodes": sizes,
        "ratio_median_low_high": {name: [round(value, 3) for value in values] for name, values in ratios.items()},
        "seconds": {n: {p: [[round(s, 5) for s in r] for r in t.rounds] for p, t in pages.items()} for n, pages in times.items()},
    }
    finish(options, figures, noise, {**versions("exact-agent", "playwright", "miniwob"), "browsergym": BROWSERGYM}, details)


if __name__ == "__main__":
    main()
