"""Set up, judge and solve the tasks of OSWorld that need no network, on desktops in gVisor.

For each task of `osworld/@offline`: whether its set-up ends, the score of doing nothing, that of FAIL where it is infeasible, and that of a
solution by mouse and keyboard, with a snapshot, a restore and a fork in its middle. OSWorld's own desktop_env sets up and judges. Needs
`shells/setup.sh --osworld --sandbox`, and in EXACT_OSWORLD the folder of the tasks. The result is written after each task. With `--add`,
rows of the result for other tasks stay: each row says at which commit and when it was taken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from _common import Figure, Noise, commit, finish, lacks, parser, save, table, versions
from _osworld_solutions import SOLUTIONS, UNSOLVED, written

from exact.benchmarks.osworld.environment import OSWorldEnvironment, OSWorldFactory
from exact.benchmarks.osworld.format import of
from exact.benchmarks.osworld.suite import OPTIONS, OSWorld
from exact.config import BrowserConfig
from exact.errors import ExactError
from exact.observation import Observation
from exact.task import Outcome, Task

QUICK = ("os/bedcedc4", "os/b3d4a89c")
WAITS = 90
Row = dict[str, Any]


async def act(environment: OSWorldEnvironment, actions: tuple[str, ...], seen: Observation) -> Observation:
    for action in actions:
        if action.startswith("until "):
            seen = await until(environment, json.loads(action[len("until ") :]), seen)
            continue
        found = await environment.step(environment.actions.parse(written(action, seen)))
        assert found.observation is not None
        seen = found.observation
    return seen


async def until(environment: OSWorldEnvironment, text: str, seen: Observation) -> Observation:
    """Wait until the desktop shows a text. Raises LookupError."""
    for _ in range(WAITS):
        if text in seen.text:
            return seen
        found = await environment.step(environment.actions.parse("wait"))
        assert found.observation is not None
        seen = found.observation
    raise LookupError(f"{text!r} was not shown")


async def score(environment: OSWorldEnvironment, *actions: str) -> float | None:
    return (await environment.evaluate(Outcome(actions=actions))).raw


async def solve(environments: OSWorldFactory, environment: OSWorldEnvironment, actions: tuple[str, ...], seen: Observation) -> float | None:
    """Half of a solution, a return to that state, and the other half in a fork."""
    half = len(actions) // 2
    await act(environment, actions[:half], seen)
    snapshot = await environment.snapshot()
    seen = await environment.restore(snapshot)
    async with environments.fork(snapshot, simulation=True) as fork:
        await act(fork, actions[half:], seen)
        found = await score(fork)
    environments.drop(snapshot)
    return found


async def measure(environments: OSWorldFactory, environment: OSWorldEnvironment, task: Task) -> Row:
    """One row of the table. Whatever fails is said in it."""
    _, domain, id = task.id.split("?")[0].split("/")
    name = f"{domain}/{id.split('-')[0]}"
    row: Row = {"task": name, "set_up": False, "feasible": of(task).possible, "nothing": None, "fail": None, "solution": None, "reason": ""}
    begin = time.perf_counter()
    try:
        seen = await environment.reset(task)
        row |= {"set_up": True, "set_up_s": round(time.perf_counter() - begin, 1), "elements": len(seen.elements)}
        row["nothing"] = await score(environment)
        if not row["feasible"]:
            row["fail"] = await score(environment, "fail")
        elif name in SOLUTIONS:
            row["solution"] = await solve(environments, environment, SOLUTIONS[name], seen)
        row["reason"] = UNSOLVED.get(name, "")
    except (ExactError, LookupError) as error:
        row["reason"] = f"{type(error).__name__}: {error}"[:200]
    return row


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[OSWorldFactory, OSWorldEnvironment]]:
    os.environ[OPTIONS] = '{"action_space": "elements"}'
    async with OSWorld().environments(BrowserConfig()) as environments:
        assert isinstance(environments, OSWorldFactory)
        async with environments.open(simulation=True) as environment:
            yield environments, environment


async def rows(wanted: tuple[str, ...], noise: Noise) -> AsyncIterator[Row]:
    """The rows of the tasks, each as soon as it is there."""
    suite = OSWorld()
    if not (offline := suite.lists().get("offline")):
        lacks("no task files of OSWorld: set EXACT_OSWORLD to the folder of its tasks, as docs/benchmarks/osworld.md describes")
    ids = [id for id in offline if not wanted or any(id.startswith(f"osworld/{each}") for each in wanted)]
    async with opened() as (environments, environment):
        for id in ids:
            noise.probe()
            taken = {"commit": commit(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
            yield await measure(environments, environment, suite.task(id)) | taken


def figures_of(found: Sequence[Row]) -> list[Figure]:
    feasible, infeasible = [row for row in found if row["feasible"]], [row for row in found if not row["feasible"]]
    return [
        Figure("osworld_set_up", sum(row["set_up"] for row in found), len(found)),
        Figure("osworld_nothing_scores", sum((row["nothing"] or 0) > 0 for row in found), 0, at_least=False),
        Figure("osworld_fail_of_infeasible", sum(row["fail"] == 1.0 for row in infeasible), len(infeasible)),
        Figure(
            "osworld_solved_of_feasible", sum(row["solution"] == 1.0 and not row["nothing"] for row in feasible), min(20, len(feasible))
        ),
    ]


async def taken(given: argparse.Namespace, noise: Noise, before: Sequence[Row]) -> list[Row]:
    """Take rows and keep the result after each. `before`: rows of an earlier result."""
    wanted = tuple(given.task) or (QUICK if given.quick else ())
    found = {row["task"]: row for row in before}
    async for row in rows(wanted, noise):
        found[row["task"]] = row
        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)
        save(given, figures_of(list(found.values())), noise, VERSIONS, {"rows": list(found.values())})
    return list(found.values())


VERSIONS = versions("exact-agent", "jeepney", "mss", "python-xlib")


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("task", nargs="*", help="domain, or domain/id; by default all")
    options.add_argument("--add", action="store_true", help="keep the rows that the file of --json has for other tasks")
    given = options.parse_args()
    noise = Noise()
    before = json.loads(given.json.read_text())["rows"] if given.add and given.json and given.json.exists() else []
    found = asyncio.run(taken(given, noise, before))
    shown = ("task", "set_up", "nothing", "fail", "solution", "set_up_s", "reason")
    table(shown, [["" if row.get(key) is None else str(row[key]) for key in shown] for row in found])
    finish(given, figures_of(found), noise, VERSIONS, {"rows": found})


if __name__ == "__main__":
    main()
