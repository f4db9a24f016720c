"""Measure whether search teaches the learned agent, and whether what it learned searches better.

The plan, with rows, figures and rules, was committed before any run: bench/plans/learning.md. The weights of all rows and the record of
each attempt are in bench/results/learning/. Tasks and seeds are those of exact/learning/builtin/split.json.

    python bench/learning.py --keep RUN                      copy the weights and records of a run of `exact train builtin`
    python bench/learning.py --controls RUN                  train the controls from it
    python bench/learning.py --json bench/results/learning.json      attempt the test; goes on from --work after an interruption
    python bench/learning.py --validate greedy_1,greedy_3    attempts on validation seeds, which decide nothing
    python bench/learning.py --quick                         compute every figure from the records, and attempt ten of them again
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import _common
import msgspec
import numpy as np
from _attempts import LEXICAL, attempt, folder_of
from _controls import ShuffledValue
from _greedy import follow, started
from _paired import Attempt, Scores, gain, grouped, kept, scores
from _records import differing, read_records, write_records

from exact.agents.agent import Agent, build_agent
from exact.agents.base import Policy
from exact.agents.learned.network import FORMAT, save, untrained
from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.suite import binary
from exact.config import Config, load
from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import EnvironmentFailure
from exact.evaluation.folder import Result
from exact.evaluation.local import BuildAgent
from exact.evaluation.plan import AGENTS
from exact.evaluation.statistics import rate
from exact.learning.builtin.split import load_split
from exact.models.base import ChatModel
from exact.task import Outcome, Task

FOLDER, RESULT = _common.ROOT / "bench" / "results" / "learning", _common.ROOT / "bench" / "results" / "learning.json"
RECORDS, TRAINING = FOLDER / "attempts.jsonl.gz", FOLDER / "training.jsonl.gz"
ACTIONS, STEPS = 15, 40
SEEDS, USED = 3, 12
"""Test seeds of each task, after those that earlier cycles have used. Rows with a search attempt the first of them."""
SEARCHED = 30
"""Tasks of each part that rows with a search attempt, the first by the hash of their name."""
ROUNDS = 3
DEAL_SEED = 0


class Row(NamedTuple):
    """One agent."""

    weights: str = ""
    """Name of its weights in FOLDER; empty for the lexical agent, `round-0` for the untrained model, which is made here."""
    value: str = ""
    """Kind of its value function, if it searches: learned, constant or shuffled."""
    seen_only: bool = False
    """Whether it attempts training tasks alone."""


ROWS: Mapping[str, Row] = {
    "lexical": Row(),
    "greedy_0": Row("round-0"),
    "greedy_1": Row("round-1"),
    "greedy_2": Row("round-2"),
    "greedy_3": Row("round-3"),
    "imitation": Row("imitation"),
    "shuffled_outcomes": Row("shuffled"),
    "rmcts_0": Row("round-0", "learned"),
    "rmcts_3": Row("round-3", "learned"),
    "rmcts_3_constant": Row("round-3", "constant", seen_only=True),
    "rmcts_3_shuffled": Row("round-3", "shuffled", seen_only=True),
}
TRAINED = (*(f"round-{round}" for round in range(1, ROUNDS + 1)), "imitation", "shuffled")


def weights_of(name: str) -> Path:
    """Return the file of a row's weights. The untrained ones are made in .bench."""
    if name != "round-0":
        return FOLDER / f"{name}.npz"
    path = _common.ROOT / ".bench" / f"learning_round_0_{FORMAT}.npz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        save(untrained(0), path)
    return path


def settings(name: str) -> Config:
    """Return the configuration of a row."""
    row = ROWS[name]
    base: dict[str, Any] = {**AGENTS["rmcts" if row.value else "react"], **LEXICAL}
    options = {"weights": str(weights_of(row.weights))} if row.weights else {}
    if row.weights:
        base["policy"] = {"kind": "learned", "options": options}
    if row.value:
        base["value"] = {"kind": "constant"} if row.value == "constant" else {"kind": "learned", "options": options}
        base["search"] = {**base["search"], "iterations": 96}
        base["reflection"] = {**base["reflection"], "exclude_same_task": True}
    base |= {"browser": {"screenshots": bool(row.value)}, "limits": {"actions": ACTIONS, **({"transitions": STEPS} if row.value else {})}}
    return load(None, [f"name={name}", *(f"{key}={json.dumps(value)}" for key, value in base.items())])


def builders() -> dict[str, BuildAgent]:
    def shuffled(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        built = build_agent(config, models)
        return Agent(policy=built.policy, value=ShuffledValue(DEAL_SEED), reflector=built.reflector)

    return {name: shuffled for name, row in ROWS.items() if row.value == "shuffled"}


def tasks_of(name: str, part: str) -> list[str]:
    """Return the ids that a row attempts, of `test` or `validation`."""
    split, row = load_split(), ROWS[name]
    parts: list[Sequence[str]] = [split.training] if row.seen_only or part == "validation" else [split.training, split.held_out]
    if row.value:
        parts = [sorted(names, key=lambda task: hashlib.sha256(task.encode()).hexdigest())[:SEARCHED] for names in parts]
    seeds = split.seeds[part].take(SEEDS, USED)[: 1 if row.value else SEEDS]
    return [f"{task}?seed={seed}" for seed in seeds for names in parts for task in names]


async def attempted(name: str, ids: Sequence[str], work: Path, parallel: int, noise: _common.Noise) -> list[Attempt]:
    """Attempt tasks with one row, or read what was attempted."""
    if not ROWS[name].value:
        return await without_search(name, ids, work, parallel)
    suite = MiniWob()
    folder = folder_of(work / name, [suite.task(id) for id in ids], {name: settings(name)})
    return [recorded(name, result) for result in await attempt(folder, parallel, noise, builders())]


def recorded(name: str, result: Result) -> Attempt:
    return Attempt(
        name, result.task, result.score, result.raw, result.actions, result.transitions, result.evaluations, round(result.seconds, 1)
    )  # fmt: skip


async def without_search(name: str, ids: Sequence[str], work: Path, parallel: int) -> list[Attempt]:
    """Attempt tasks by the policy's first proposals, each in a freshly opened page, without a run folder. Goes on where it stopped."""
    file, suite = work / f"{name}.jsonl", MiniWob()
    found = kept_attempts(file)
    left = [id for id in reversed(ids) if id not in found]
    policy = build_agent(settings(name), lambda role: sys.exit(f"{name} asks a model")).policy

    async def work_on(environments: EnvironmentFactory) -> None:
        while left:
            task = suite.task(left.pop())
            for tries_left in (1, 0):
                try:
                    async with asyncio.timeout(300), environments.open(simulation=False) as environment:
                        found[task.id] = await episode(name, environment, policy, task)
                        break
                except (EnvironmentFailure, TimeoutError) as error:
                    if not tries_left:
                        found[task.id] = Attempt(name, task.id, None, None, 0, 0, 0, 0.0)
                        print(f"{task.id} failed: {error}", file=sys.stderr)
            add_attempt(file, found[task.id])

    if left:
        async with suite.environments(settings(name).browser) as environments, asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(work_on(environments))
    return [found[id] for id in ids]


def kept_attempts(file: Path) -> dict[str, Attempt]:
    """Return the scored attempts of a file by task, which need not exist. Those whose environment failed are made again."""
    found = [msgspec.json.decode(line, type=Attempt) for line in file.read_bytes().splitlines()] if file.exists() else []
    return {each.task: each for each in found if each.score is not None}


def add_attempt(file: Path, attempt: Attempt) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lines:
        lines.write(msgspec.json.encode(attempt) + b"\n")


async def episode(name: str, environment: Environment, policy: Policy, task: Task) -> Attempt:
    """Commit the policy's first proposal at each step, as ReAct does, and score the end."""
    began = time.monotonic()
    history = (await follow(environment, policy, await started(environment, task, ACTIONS)))[-1].history
    score = await environment.evaluate(Outcome(actions=tuple(each.action.key for each in history)))
    return Attempt(name, task.id, score.value, score.raw, len(history), len(history), 0, round(time.monotonic() - began, 1))


def hashes() -> dict[str, str]:
    """Return the SHA-256 of the records and of all weights."""
    files = [RECORDS, TRAINING, *(weights_of(name) for name in TRAINED)]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.exists()}


def pairs(last: int) -> list[tuple[str, str]]:
    """Return the pairs of rows that are compared, where the last round is `last`."""
    rounds = [(f"greedy_{round}", "greedy_0") for round in range(1, last + 1)]
    controls = [("imitation", "greedy_0"), ("shuffled_outcomes", "greedy_0"), ("greedy_0", "lexical"), (f"greedy_{last}", "lexical")]
    searches = [("rmcts_0", "greedy_0"), (f"rmcts_{last}", f"greedy_{last}"), (f"rmcts_{last}", "rmcts_0")]
    return [*rounds, *controls, *searches, *((f"rmcts_{last}_{value}", f"greedy_{last}") for value in ("constant", "shuffled"))]


def last_round(rows: Iterable[str]) -> int:
    """Return the last round of training that was attempted."""
    return max((int(row.removeprefix("greedy_")) for row in rows if row.startswith("greedy_")), default=ROUNDS)


def show(records: Sequence[Attempt]) -> tuple[dict[str, Any], list[_common.Figure]]:
    """Print the tables. Return what they hold, and the figures."""
    split = load_split()
    parts = {"seen": split.training, "held out": split.held_out}
    readings: dict[str, Callable[[Attempt], float | None]] = {
        "success": lambda each: each.score,
        "full reward": lambda each: None if each.score is None else binary(each.raw or 0.0),
    }
    shown: dict[str, Any] = {"gain": {}}
    for what, reading in readings.items():
        found = scores(records, reading)
        table = {row: {part: rate(grouped(found[row], names)) for part, names in parts.items()} for row in ROWS if row in found}
        shown[what] = table
        _common.table([what, *parts], [[row, *map(str, each.values())] for row, each in table.items()])
        print()
        gains = {
            f"{a} - {b}": {part: gain(found, a, b, names) for part, names in parts.items()}
            for a, b in pairs(last_round(found))
            if a in found and b in found
        }
        shown["gain"][what] = gains
        _common.table([f"gain, {what}", *parts], [[pair, *map(str, each.values())] for pair, each in gains.items()])
        print()
    costs = {row: [each for each in records if each.row == row] for row in ROWS}
    shown["cost"] = {
        row: {name: float(np.mean([getattr(each, name) for each in of])) for name in ("actions", "transitions", "evaluations", "seconds")}
        for row, of in costs.items()
        if of
    }
    shown["unscored"] = {row: sum(each.score is None for each in of) for row, of in costs.items() if of}
    _common.table(
        ["an attempt took", "actions", "steps", "values", "seconds", "attempts", "unscored"],
        [
            [row, *(f"{x:.1f}" for x in each.values()), str(len(costs[row])), str(shown["unscored"][row])]
            for row, each in shown["cost"].items()
        ],
    )
    found = scores(records, readings["success"])
    return shown, figures(found, split.training, split.held_out, shown)


def figures(found: Scores, seen: Sequence[str], held_out: Sequence[str], shown: dict[str, Any]) -> list[_common.Figure]:
    last = last_round(found)
    made = [
        _common.Figure("gain_search_seen_low", gain(found, f"rmcts_{last}", f"greedy_{last}", seen).low, goal=0.001),
        _common.Figure("gain_search_heldout_low", gain(found, f"rmcts_{last}", f"greedy_{last}", held_out).low, goal=0.001),
        _common.Figure("gain_learning_seen_low", gain(found, f"greedy_{last}", "greedy_0", seen).low, goal=0.10),
        _common.Figure("gain_learning_heldout_low", gain(found, f"greedy_{last}", "greedy_0", held_out).low),
    ]
    for row, base in (
        ("shuffled_outcomes", "greedy_0"),
        (f"rmcts_{last}_constant", f"greedy_{last}"),
        (f"rmcts_{last}_shuffled", f"greedy_{last}"),
    ):
        made.append(_common.Figure(f"gain_control_{row}_low", gain(found, row, base, seen).low, goal=0.0, at_least=False))
    if gain(found, "rmcts_0", "greedy_0", seen).low > 0:
        for name, row in (("kept_without_search", f"greedy_{last}"), ("kept_by_imitation", "imitation")):
            ratio = kept(found, row, "greedy_0", "rmcts_0", seen)
            shown[name] = ratio
            made.append(_common.Figure(name, ratio[0], goal=0.87 if row == f"greedy_{last}" else None))
    return [each for each in made if not math.isnan(each.value)]


def keep(run: Path) -> None:
    """Copy the weights of a finished run, and what it trained on: one line for each task and seed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for round in range(1, ROUNDS + 1):
        shutil.copy(run / f"round-{round}.npz", FOLDER / f"round-{round}.npz")
    shutil.copy(run / "run.json", FOLDER / "run.json")
    lines = [
        {"round": round, **json.loads(path.read_text())}
        for round in range(ROUNDS)
        for path in sorted((run / f"data-{round}").glob("*.json"))
    ]
    TRAINING.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0))


def controls(run: Path) -> None:
    """Train the controls from a finished run."""
    from exact.learning.builtin.controls import imitation, shuffled

    save(shuffled(run, print), FOLDER / "shuffled.npz")
    save(imitation(run, print), FOLDER / "imitation.npz")


async def speed() -> list[_common.Figure]:
    """Measure what the model takes for a recorded state, in milliseconds of this process's CPU time: medians over bench/states.jsonl.gz."""
    from judges import STATES, State

    from exact.agents.builtin.judge.situation import read_situation
    from exact.agents.builtin.value import LexicalValue
    from exact.agents.learned.agent import wide_candidates
    from exact.agents.learned.features import read_features
    from exact.agents.learned.network import forward
    from exact.environments.browser.act.grammar import PAGE_ACTIONS

    lines = gzip.decompress(STATES.read_bytes()).splitlines()
    contexts = [state.context for state in (msgspec.json.decode(line, type=State) for line in lines) if not state.context.terminated]
    parameters, reading, running = untrained(0).parameters, list[float](), list[float]()
    for context in contexts:
        began = time.process_time()
        situation = read_situation(context, context.history)
        value = (await LexicalValue().evaluate(context)).value
        features = read_features(context, situation, wide_candidates(situation, PAGE_ACTIONS), value)
        read = time.process_time()
        forward(parameters, features)
        running.append(time.process_time() - read)
        reading.append(read - began)
    return [
        _common.Figure("model_ms", 1000 * statistics.median(running), goal=2.0, at_least=False),
        _common.Figure("features_ms", 1000 * statistics.median(reading)),
    ]


async def quick(noise: _common.Noise, args: Any) -> int:
    """Recompute all figures, check the hashes, and attempt ten recorded rows again."""
    kept_hashes = json.loads(RESULT.read_text())["hashes"]
    records = read_records(RECORDS, Attempt)
    shown, made = show(records)
    measured = await speed()
    wrong = [name for name, digest in hashes().items() if kept_hashes.get(name) != digest]
    wrong += differing(made, RESULT)
    drawn = random.Random(len(records)).sample([each for each in records if not ROWS[each.row].value], 10)
    work = _common.ROOT / ".bench" / "learning_quick"
    shutil.rmtree(work, ignore_errors=True)
    for row in dict.fromkeys(each.row for each in drawn):
        of = [each for each in drawn if each.row == row]
        again = {each.task: each.score for each in await attempted(row, [each.task for each in of], work, 4, noise)}
        wrong += [f"{row} {each.task}: {again[each.task]} instead of {each.score}" for each in of if again[each.task] != each.score]
    print("\n" + ("the records do not match: " + "; ".join(wrong) if wrong else "figures, hashes and ten attempts match the records"))
    _common.finish(args, [*made, *measured], noise, _common.versions("exact-agent", "miniwob", "playwright"), shown)
    return 1 if wrong else 0


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--rows", default=",".join(ROWS), help="by comma")
    options.add_argument("--validate", default="", metavar="ROWS", help="rows to attempt on validation seeds")
    options.add_argument("--keep", type=Path, metavar="RUN", help="folder of a run of `exact train builtin`")
    options.add_argument("--controls", type=Path, metavar="RUN", help="folder of a run of `exact train builtin`")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "learning")
    options.add_argument("--parallel", type=int, default=6)
    args = options.parse_args()
    noise = _common.Noise()
    if args.keep:
        keep(args.keep)
        return 0
    if args.controls:
        controls(args.controls)
        return 0
    if args.quick:
        return await quick(noise, args)
    part, names = ("validation", args.validate.split(",")) if args.validate else ("test", args.rows.split(","))
    records = list[Attempt]()
    for name in names:
        found = await attempted(name, tasks_of(name, part), args.work / part, args.parallel, noise)
        records += found
        print(f"{name}: {sum(each.score or 0 for each in found):.0f} of {len(found)}", file=sys.stderr)
    shown, made = show(records)
    if part == "test" and args.json:
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_records(RECORDS, records)
        shown = {"hashes": hashes(), "seeds": SEEDS, "attempts": len(records), **shown}
        made += await speed()
    _common.finish(args, made, noise, _common.versions("exact-agent", "miniwob", "playwright"), shown)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
