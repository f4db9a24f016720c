"""Measure how often each route restores the state of an environment.

Each of BrowserGym's 125 MiniWoB++ tasks is walked for five random actions from three seeds. The final state is restored by reset and
replay and by a page snapshot, both in a second environment, and, where environments fork, by a snapshot of the whole environment. Each
arrival is compared by its fingerprint: exact, equivalent (volatile parts differ) or drifted. Unless it drifted, one more action in both
environments shows differences that a fingerprint cannot see. A refused snapshot is counted separately, and the next route is taken. After
a drift both environments are observed again after a wait, which separates states that change by themselves from lost ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from _common import Figure, Noise, finish, parser, table, versions

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.suite import BROWSERGYM
from exact.config import BrowserConfig
from exact.environments.base import Environment, Snapshot
from exact.environments.browser.fork.factory import ForkingFactory
from exact.environments.restore.waypoint import MATCHES, compare_states, state_key
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

STEPS, SEEDS, TRIES, LOOKS = 5, 3, 12, 4
"""Actions of a walk; seeds of a task; walks begun where actions end the episode; how often it is looked whether a page moves by itself."""
LIMIT = 120.0
"""Seconds for one episode on one route."""
ROUTES = ("replay", "page", "environment")
RESULTS = (*MATCHES, "refused", "failed", "not_run")
QUICK = ("click-button", "enter-text", "click-collapsible", "choose-list")
"""Tasks of a quick run, from one seed."""

Record = dict[str, Any]


@dataclass
class Book:
    """Results so far, kept in a file, from which a stopped run continues."""

    path: Path
    records: dict[tuple[str, str], Record] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Book:
        """Open the record of a folder. A torn last line is left out."""
        folder.mkdir(parents=True, exist_ok=True)
        book = cls(folder / "fidelity.jsonl")
        for line in book.path.read_text().splitlines() if book.path.exists() else ():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            book.records[record["task"], record["route"]] = record
        return book

    def write(self, record: Record) -> None:
        self.records[record["task"], record["route"]] = record
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


def candidates(seen: Observation, dice: random.Random) -> list[str]:
    """Actions on what is in view, in random order."""
    shown = [e for e in seen.elements if e.visible and e.box and e.box.width] or list(seen.elements)
    dice.shuffle(shown)
    return [
        f'fill [{e.id}] "{dice.choice(("a", "7", "ann"))}"' if e.role in ("textbox", "spinbutton", "searchbox") else f"click [{e.id}]"
        for e in shown
    ]


async def walk(environment: Environment, task: Task, path: Sequence[str]) -> Observation | None:
    """Reset and take a path; the state there, or None where the episode ended on the way. A refused action changes nothing."""
    seen: Observation | None = await environment.reset(task)
    for text in path:
        try:
            seen = (await environment.step(environment.actions.parse(text))).observation
        except ActionError:
            continue
        if seen is None:
            return None
    return seen


async def scout(environment: Environment, task: Task) -> tuple[list[str], Observation]:
    """Return a path of up to STEPS random actions that ends no episode, and the state to which it brings the environment."""
    dice, path, ends = random.Random(task.id), list[str](), set[tuple[int, str]]()
    seen: Observation | None = await environment.reset(task)
    assert seen is not None
    for _ in range(TRIES):
        while len(path) < STEPS:
            possible = [text for text in candidates(seen, dice) if (len(path), text) not in ends]
            if not possible:
                return path, seen
            try:
                after = (await environment.step(environment.actions.parse(possible[0]))).observation
            except ActionError:
                ends.add((len(path), possible[0]))
                continue
            if after is None:
                ends.add((len(path), possible[0]))
                break
            path.append(possible[0])
            seen = after
        else:
            return path, seen
        seen = await walk(environment, task, path)
        if seen is None:
            raise EnvironmentFailure("a path that ended nothing ends the episode the second time")
    return path, seen


@dataclass
class Bench:
    """One run of the measurement."""

    book: Book
    tasks: Sequence[Task]
    routes: Sequence[str]
    config: BrowserConfig
    noise: Noise
    paths: dict[str, asyncio.Future[list[str]]] = field(default_factory=dict)

    async def run(self) -> None:
        """Measure all routes. Forkable environments follow the paths that the others have found."""
        self.paths = {task.id: asyncio.get_running_loop().create_future() for task in self.tasks}
        async with asyncio.TaskGroup() as group:
            group.create_task(self.local())
            if "environment" in self.routes:
                group.create_task(self.forked())

    async def local(self) -> None:
        """Replay and page restores, in two environments of one browser."""
        async with pair(self.config) as environments:
            for task in self.tasks:
                self.noise.probe()
                known = self.book.records.get((task.id, "walk"))
                wanted = [route for route in self.routes if route != "environment" and (task.id, route) not in self.book.records]
                if known is None or wanted:
                    known = await self.guarded(task, "walk", partial(self.episode, task, environments, wanted))
                self.paths[task.id].set_result(known.get("path", []))

    async def episode(self, task: Task, environments: Sequence[Environment], wanted: Sequence[str]) -> Record:
        one, other = environments
        path, seen = await scout(one, task)
        kept: Snapshot | str = await kept_by(one) if "page" in wanted else ""
        goal = Goal(seen, onward(seen), await after(one, onward(seen)))
        for route in wanted:
            await self.guarded(task, route, partial(self.replay if route == "replay" else self.page, task, other, path, kept, goal))
        return {"path": path, "depth": len(path)}

    async def replay(self, task: Task, environment: Environment, path: list[str], kept: Snapshot | str, goal: Goal) -> Record:
        return await judged(await walk(environment, task, path), environment, goal)

    async def page(self, task: Task, environment: Environment, path: list[str], kept: Snapshot | str, goal: Goal) -> Record:
        if isinstance(kept, str):
            return {"result": "refused", "reason": kept}
        return await judged(await environment.restore(kept), environment, goal)

    async def forked(self) -> None:
        """Restores of whole environments: one environment walks, and a branch of each snapshot is what arrives."""
        async with MiniWob().forking_factory(self.config) as environments, AsyncExitStack() as stack:
            environment: Environment | None = None
            for task in self.tasks:
                path = await self.paths[task.id]
                if (task.id, "environment") in self.book.records:
                    continue
                if environment is None:
                    environment = await stack.enter_async_context(environments.open(simulation=True))
                found = await self.guarded(task, "environment", partial(self.environment, task, environments, environment, path))
                if found["result"] == "failed":
                    await stack.aclose()
                    environment = None

    async def environment(self, task: Task, environments: ForkingFactory, environment: Environment, path: list[str]) -> Record:
        seen = await walk(environment, task, path)
        if seen is None:
            return {"result": "failed", "reason": "the episode ended on a path that ended nothing elsewhere"}
        kept = await kept_by(environment)
        if isinstance(kept, str):
            return {"result": "refused", "reason": kept}
        async with environments.fork(kept, simulation=True) as branch:
            back = branch.observation
            if compare_states(state_key(seen), state_key(back)) == "drifted":
                found = {
                    "result": "drifted",
                    "moves": await moves(environment, seen) or await moves(branch, back),
                    "lines": different(seen, back),
                }
            else:
                goal = Goal(seen, onward(seen), await after(environment, onward(seen)))
                found = await judged(back, branch, goal)
        environments.drop(kept)
        return found

    async def guarded(self, task: Task, route: str, work: Callable[[], Awaitable[Record]]) -> Record:
        """Do one piece of work and record it; an infrastructure failure is recorded as such and not counted as a result."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(LIMIT):
                found = await work()
        except (EnvironmentFailure, ActionError, TimeoutError) as error:
            found = {"result": "failed", "reason": f"{type(error).__name__.rstrip('_')}: {error}"}
        found |= {"task": task.id, "route": route, "seconds": round(time.perf_counter() - began, 3)}
        self.book.write(found)
        print(f"{task.id} {route}: {found.get('result', found.get('depth'))} {found.get('reason', '')}".rstrip(), flush=True)
        return found


class Goal(NamedTuple):
    """State to which an environment is restored."""

    seen: Observation
    onward: str
    """One more action, and the mark of what it led to."""
    then: str


async def judged(got: Observation | None, environment: Environment, goal: Goal) -> Record:
    """Return how an environment arrived and, after an exact arrival, whether one more action has the same result."""
    if got is None:
        return {"result": "drifted", "reason": "the episode ended"}
    found: Record = {"result": compare_states(state_key(goal.seen), state_key(got))}
    if found["result"] != "drifted":
        found["on"] = compare_states(goal.then, await after(environment, goal.onward)) != "drifted"
    return found


async def kept_by(environment: Environment) -> Snapshot | str:
    """Return a snapshot, or the reason why there is none."""
    try:
        return await environment.snapshot()
    except EnvironmentFailure as error:
        return str(error)


def onward(seen: Observation) -> str:
    return (candidates(seen, random.Random(seen.fingerprint)) or ["wait"])[0]


async def moves(environment: Environment, seen: Observation) -> bool:
    """Return whether a state changes without an action. One look may miss what flickers."""
    for _ in range(LOOKS):
        if compare_states(state_key(seen), await after(environment, "wait")) == "drifted":
            return True
    return False


async def after(environment: Environment, text: str) -> str:
    """Return the mark of the state to which an action leads; a refusal has its own mark."""
    try:
        return state_key((await environment.step(environment.actions.parse(text))).observation)
    except ActionError:
        return "refused"


def different(one: Observation, other: Observation) -> list[str]:
    """Up to three lines that one state shows and the other does not."""
    a, b = one.text.splitlines(), other.text.splitlines()
    return [*(f"- {line}" for line in a if line not in b), *(f"+ {line}" for line in b if line not in a)][:3]


@asynccontextmanager
async def pair(config: BrowserConfig) -> AsyncIterator[Sequence[Environment]]:
    async with AsyncExitStack() as stack:
        environments = await stack.enter_async_context(MiniWob().environments(config))
        yield [await stack.enter_async_context(environments.open(simulation=True)) for _ in range(2)]


def name_of(task: str) -> str:
    return task.removeprefix("miniwob/").partition("?")[0]


def summary(book: Book, tasks: Sequence[Task], routes: Sequence[str]) -> Record:
    """Return counts and seconds by route, and the tasks that were not exact."""
    ids, found = {task.id for task in tasks}, Record()
    for route in routes:
        records = [record for (task, kind), record in book.records.items() if kind == route and task in ids]
        unlike = [record for record in records if record["result"] != "exact"]
        found[route] = {
            "counts": dict(Counter(record["result"] for record in records)) | {"not_run": len(tasks) - len(records)},
            "went_on_otherwise": sorted(record["task"] for record in records if record.get("on") is False),
            "moving": sorted({name_of(record["task"]) for record in records if record.get("moves")}),
            "seconds": round(statistics.median([record["seconds"] for record in records]), 3) if records else None,
            "not_exact": {r["task"]: {k: r[k] for k in ("result", "reason", "moves", "lines") if k in r} for r in unlike},
        }
    return found


def figures(routes: Record) -> list[Figure]:
    """Shares of the arrivals; refused snapshots are no arrivals."""
    found = []
    for route, of in routes.items():
        counts = Counter(of["counts"])
        arrived = sum(counts[each] for each in MATCHES)
        if arrived:
            found.append(Figure(f"{route}_exact", counts["exact"] / arrived))
            found.append(Figure(f"{route}_faithful", (counts["exact"] + counts["equivalent"]) / arrived))
            found.append(Figure(f"{route}_goes_on", 1 - len(of["went_on_otherwise"]) / arrived))
        if route == "environment":
            lost = sum(r["result"] == "drifted" and not r.get("moves") for r in of["not_exact"].values())
            found.append(Figure("world_lost", lost, goal=0, at_least=False))
    return found


def read_options() -> argparse.Namespace:
    options = parser(__doc__ or "")
    options.add_argument("--work", type=Path, metavar="DIR", help="keep what was found there, and go on from it")
    options.add_argument("--routes", default=",".join(ROUTES), metavar="LIST", help=f"of {', '.join(ROUTES)}")
    options.add_argument("--report", action="store_true", help="measure nothing: only what --work holds")
    options.add_argument("--tasks", metavar="LIST", help="names of tasks, instead of all 125")
    options.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="of each task")
    options.add_argument("--clock", type=int, default=0, metavar="MS", help="hold the page's clock, and run it so long after each action")
    return options.parse_args()


def main() -> None:
    options, noise = read_options(), Noise()
    routes = [route for route in ROUTES if route in options.routes.split(",")]
    try:
        find_runsc()
    except EnvironmentFailure as error:
        print(f"no environments that fork: {error}")
        routes = [route for route in routes if route != "environment"]
    names, seeds = (QUICK, 1) if options.quick else (BROWSERGYM, options.seeds)
    if options.tasks:
        names = tuple(options.tasks.split(","))
    suite = MiniWob()
    tasks = [suite.task(f"miniwob/{name}?seed={seed}") for seed in range(1, seeds + 1) for name in names]
    with tempfile.TemporaryDirectory() as scratch:
        book = Book.open(options.work or Path(scratch))
        config = BrowserConfig(screenshots=False, page_snapshots=True, clock=options.clock)
        for _ in range(20):
            noise.probe()
        if not options.report:
            asyncio.run(Bench(book, tasks, routes, config, noise).run())
        found = summary(book, tasks, routes)
        depths = Counter(book.records.get((task.id, "walk"), {}).get("depth", 0) for task in tasks)
    rows = [[route, *(str(of["counts"].get(each, 0)) for each in RESULTS), str(of["seconds"])] for route, of in found.items()]
    table(("route", *RESULTS, "seconds"), rows)
    for route, of in found.items():
        if odd := sorted({name_of(task) for task, record in of["not_exact"].items() if record["result"] == "drifted"}):
            print(f"{route}, drifted at least once: {', '.join(odd)}")
    details = {"tasks": len(names), "seeds": seeds, "clock": options.clock, "depths": dict(sorted(depths.items())), "routes": found}
    finish(options, figures(found), noise, versions("exact-agent", "playwright", "miniwob"), details)


if __name__ == "__main__":
    main()
