"""The runs of bench/when_search_helps.py: episodes of the learned agent alone, searches with judges of known quality, and worlds."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import _common
import msgspec
from _attempts import attempt, folder_of
from _continuations import Continuations, Judged, NoisyOracle, RecordedValue
from _controls import ShuffledValue
from _greedy import follow, started
from _when import AloneEpisode, Valued, write
from _worlds import Played, alone, jobs, played
from learning import ACTIONS, STEPS, recorded

from exact.agents.agent import Agent, build_agent
from exact.agents.base import ValueFunction
from exact.agents.builtin.value import LexicalValue
from exact.agents.learned.agent import learned_policy, learned_value
from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig, Config, load
from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import EnvironmentFailure
from exact.evaluation.folder import BenchFolder
from exact.evaluation.plan import AGENTS
from exact.learning.builtin.split import load_split
from exact.models.base import ChatModel
from exact.task import Outcome, Task

WORK = _common.ROOT / ".bench" / "when_search_helps"
BROWSER = BrowserConfig(screenshots=False)
RELIABILITY_SEEDS = range(40000, 40003)
"""Outside the split's training, validation and test seeds."""
PAGES_SEED = 10500
"""One of the split's training seeds that no training has used."""
PAGES_TASKS = 40
"""Training tasks that are attempted at most, the first by the hash of their name."""
GAMES = range(200)

DEVIATIONS: Mapping[str, float] = {"oracle_0": 0.0, "oracle_0.3": 0.3, "oracle_0.5": 0.5, "oracle_1": 1.0, "oracle_2": 2.0}
"""Oracles by the standard deviation of their error."""
OWN: Mapping[str, str] = {"learned": "learned", "lexical": "lexical", "constant": "constant", "shuffled": "constant"}
"""Judges that do not see the reward, by the kind that their configuration names."""
OPTIONS: Mapping[str, str] = {}
"""Options of the learned agent: the weights of the package."""

Record = TypeVar("Record", bound=msgspec.Struct)


def settings(row: str) -> Config:
    """Return the configuration of a row: `rmcts` of `exact bench` as in bench/learning.py, with the learned policy after training."""
    base: dict[str, Any] = dict(AGENTS["react" if row == "greedy" else "rmcts"])
    base["policy"] = {"kind": "learned", "options": OPTIONS}
    base |= {"browser": {"screenshots": False}, "limits": {"actions": ACTIONS, **({} if row == "greedy" else {"transitions": STEPS})}}
    if row != "greedy":
        kind = OWN.get(row, "oracle")
        base["value"] = {"kind": kind, **({"options": OPTIONS} if kind == "learned" else {})}
        base["search"] = {**base["search"], "iterations": 96}
        base["reflection"] = {**base["reflection"], "exclude_same_task": True}
    return load(None, [f"name={row}", *(f"{key}={json.dumps(value)}" for key, value in base.items())])


def builder(row: str, labels: Continuations, keep: Callable[[Judged], None]) -> Callable[[Config, Callable[[str], ChatModel]], Agent]:
    """Return what builds the agent of a row, whose evaluations are kept."""

    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        agent = build_agent(config, models)
        judge: ValueFunction | NoisyOracle = agent.value
        if row == "shuffled":
            judge = ShuffledValue()
        elif row in DEVIATIONS:
            judge = NoisyOracle(DEVIATIONS[row])
        return dataclasses.replace(agent, value=RecordedValue(row, judge, labels, keep), episode_scores=None)

    return build


def by_hash(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def pages_tasks(count: int = PAGES_TASKS) -> list[Task]:
    """Return the tasks of the pages, refused unless they are for training."""
    split, ids = load_split(), [f"{name}?seed={PAGES_SEED}" for name in by_hash(load_split().training)[:count]]
    for id in ids:
        split.check_training(id)
    return [MiniWob().task(id) for id in ids]


async def run_pages(work: Path, tasks: Sequence[Task], rows: Sequence[str], parallel: int, minutes: float, noise: _common.Noise) -> None:
    """Attempt what is left in an existing folder, at most for so many minutes. Tasks begin in their order, with all rows."""
    file = work / "states.jsonl"

    def keep(found: Judged) -> None:
        with file.open("ab") as lines:
            lines.write(msgspec.json.encode(found) + b"\n")

    async with MiniWob().environments(BROWSER) as environments:
        labels = Continuations(environments, learned_policy(OPTIONS), ACTIONS, work / "labels.jsonl")
        folder = folder_of(work / "attempts", tasks, {row: settings(row) for row in rows})
        build = {row: builder(row, labels, keep) for row in rows if row != "greedy"}
        try:
            async with asyncio.timeout(60 * minutes):
                await attempt(folder, parallel, noise, build)
        except TimeoutError:
            print(f"\n{minutes:g} minutes are over: run it again to go on", file=sys.stderr)


def keep_pages(work: Path) -> None:
    """Write the records of what was attempted. Of two evaluations of one state by one row, the last one counts."""
    folder = BenchFolder.open(work / "attempts")
    write("attempts", [recorded(agent, result) for (agent, _), result in sorted(folder.done().items())])
    judged = {(each.row, each.task, each.state): each for each in lines_of(work / "states.jsonl", Judged)}
    write("states", [judged[key] for key in sorted(judged)])


ROWS = ("greedy", *DEVIATIONS, *OWN)


async def valued(environment: Environment, task: Task) -> AloneEpisode:
    """Run one episode, and return the values of its states."""
    learned, lexical = learned_value(OPTIONS), LexicalValue()
    contexts = await follow(environment, learned_policy(OPTIONS), await started(environment, task, ACTIONS))
    score = await environment.evaluate(Outcome(actions=tuple(step.action.key for step in contexts[-1].history)))
    states = [
        Valued(
            task.id, len(each.history), each.terminated,
            round((await learned.evaluate(each)).value, 4), round((await lexical.evaluate(each)).value, 4), score.success,
        )
        for each in contexts
    ]  # fmt: skip
    return AloneEpisode(task.id, states)


def lines_of(file: Path, kind: type[Record]) -> list[Record]:
    """Return the records of a file, which need not exist."""
    return [msgspec.json.decode(line, type=kind) for line in file.read_bytes().splitlines()] if file.exists() else []


async def run_reliability(file: Path, ids: Sequence[str], parallel: int) -> list[AloneEpisode]:
    """Run the episodes that are left in an existing folder, each in a freshly opened page."""
    found = {each.task: each for each in lines_of(file, AloneEpisode) if each.states}
    left = [id for id in reversed(ids) if id not in found]

    async def work_on(environments: EnvironmentFactory) -> None:
        while left:
            task = MiniWob().task(left.pop())
            found[task.id] = await _once_more(environments, task)
            with file.open("ab") as lines:
                lines.write(msgspec.json.encode(found[task.id]) + b"\n")

    if left:
        async with MiniWob().environments(BROWSER) as environments, asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(work_on(environments))
    return [found[id] for id in ids]


async def _once_more(environments: EnvironmentFactory, task: Task) -> AloneEpisode:
    """Run an episode, twice where its environment failed."""
    for _ in range(2):
        try:
            async with asyncio.timeout(180), environments.open(simulation=False) as environment:
                return await valued(environment, task)
        except (EnvironmentFailure, TimeoutError) as error:
            print(f"{task.id} failed: {error}", file=sys.stderr)
    return AloneEpisode(task.id, [])


def reliability_ids() -> list[str]:
    split = load_split()
    return [f"{name}?seed={seed}" for seed in RELIABILITY_SEEDS for names in (split.held_out, split.training) for name in names]


def run_worlds(work: Path) -> None:
    """Play the cells that are left, and write the records."""
    file = work / "worlds.jsonl"
    done = {(each.search, each.kind, each.sd, each.budget): each for each in lines_of(file, Played)}
    cells = jobs(quick=False)
    for number, cell in enumerate(cells, 1):
        if cell not in done:
            done[cell] = played(cell, GAMES)
            with file.open("ab") as kept:
                kept.write(msgspec.json.encode(done[cell]) + b"\n")
        print(f"\r{number:4} of {len(cells)}", end="", file=sys.stderr, flush=True)
    write("worlds", [Played("policy alone", "", 0.0, 0, alone(GAMES), []), *(done[cell] for cell in cells)])
