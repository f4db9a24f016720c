"""Measure the value of forkable environments on the 60 tasks of Trac and Wagtail, where simulated actions change the server.

The same search (MCTS without a memory) returns to a state in three ways: `environment`, snapshots of browser and server together in
gVisor; `page`, snapshots of the page only; `replay`, a fresh browser and the actions again. In the latter two one server runs beside the
browser, as in other benchmarks: it is reset before each attempt and keeps the writes of the search.

Two agents are measured. The built-in one runs on all tasks, with controls in forked environments: random, ReAct, ReAct with a one-step
value filter, best of n at equal steps, the search with a constant and with a shuffled value (neither may show a gain), and with an oracle
(informed in each state whether stopping there would succeed: headroom). It was tuned on the tasks whose name's SHA-256 begins with an even
digit: its figures are of the other half. Multi-step tasks are those that the task files call medium or hard. A search spends all its steps
before the first committed action, so some arms run again with a cap for each action in place of one for all (`..._each`: at most 6
searched steps an action). On the tasks that write, a second agent knows the reference path (`guided_...`, see _guided.py: an oracle, no
result about agents): it always finds the next action, so arms differ only in their restores. The figures `world_vs_replay_...` are of that
one.

Success has two conditions: the site is in the state that the task asks for, and the committed actions alone lead there in a fresh forked
environment. A write that only the search made counts for nothing (`false 1`), and one that the search left behind is not forgiven
(`spoiled`). Corrupted siblings are states that differ when they are restored (`drifted`). Caps are equal for all arms of an agent.
Intervals are 95 percent: bootstrapped over tasks, and exact where all tasks end alike. Gains are paired on the task; wins and losses are
tested by McNemar's exact test. Tasks were written before any agent ran.

    python bench/sites.py --json bench/results/sites.json     all of it: about 12 hours on two quiet cores; resumes from --work
    python bench/sites.py --arms environment --part held-out  one arm, on the tasks that the agent was not tuned on
    python bench/sites.py --as-is                             the results in --work, finished or not
    python bench/sites.py --references                        every reference and wrong sequence, beside and inside gVisor: about 25 minutes
    python bench/sites.py --quick                             one destructive task under `environment` and `replay`, under a minute
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import _common
import msgspec
from _controls import ShuffledValue
from _guided import guided

from exact.agents.agent import Agent, build_agent
from exact.benchmarks import registry
from exact.config import BrowserConfig, Config, parse
from exact.environments.base import EnvironmentFactory
from exact.errors import InfrastructureError
from exact.evaluation.folder import Replay
from exact.evaluation.replay import finished_state, replay
from exact.evaluation.statistics import bootstrap, differences, mcnemar, rate
from exact.models.base import ChatModel
from exact.runs.environment_cache import EnvironmentCache
from exact.runs.journal.store import RunFolder
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

ACTIONS, STEPS = 8, 16
EACH = 6
"""Searched steps for each action, where the cap is not one for all: as many as there are proposals in a state."""
GUIDED_ACTIONS, GUIDED_STEPS = 14, 60
"""The longest reference has ten."""
SEARCH = {"algorithm": "mcts", "iterations": 12, "k": 6, "c": 1.0, "backup": "max", "discount": 0.97, "final": "lower_bound", "depth": 4}
EMBEDDED = {**SEARCH, "prefetch": 0}
"""The built-in agent thinks for no time: what is prepared meanwhile only takes the processors from attempts beside it."""
WHOLE = {"algorithm": "best_of_n", "iterations": 12, "k": 6, "backup": "max", "discount": 0.97, "depth": 4, "prefetch": 0}
INSIDE = BrowserConfig(screenshots=False, sandbox="required", settle_seconds=10.0)
BESIDE = BrowserConfig(screenshots=False, sandbox="never", settle_seconds=30.0, answer_seconds=60.0)
WRITES = ("trac/@writes", "wagtail/@writes")
QUICK = ("trac/21",)


def arms() -> dict[str, dict[str, Any]]:
    """Return each arm's configuration. Arms that are guided by the reference come first."""
    common: dict[str, Any] = {"reflection": {"kind": "none"}}
    inside = {"screenshots": False, "sandbox": "required", "settle_seconds": 10.0}
    beside = {"screenshots": False, "sandbox": "never", "speculation": "free", "settle_seconds": 10.0}
    capped = {"actions": ACTIONS, "transitions": STEPS}
    each = {"search": {**EMBEDDED, "limits": {"transitions": EACH}}, "limits": {"actions": ACTIONS}}
    plain = {**common, "browser": inside, "limits": {"actions": ACTIONS}}
    told = {"search": {**SEARCH, "iterations": 5, "k": 4}, "limits": {"actions": GUIDED_ACTIONS, "transitions": GUIDED_STEPS}}
    return {
        "guided_world": {**common, **told, "browser": inside},
        "guided_replay": {**common, **told, "browser": beside},
        "guided_page": {**common, **told, "browser": {**beside, "page_snapshots": True}},
        "world": {**common, "search": EMBEDDED, "browser": inside, "limits": capped},
        "replay": {**common, "search": EMBEDDED, "browser": beside, "limits": capped},
        "page": {**common, "search": EMBEDDED, "browser": {**beside, "page_snapshots": True}, "limits": capped},
        "react": {**plain, "search": {"algorithm": "react"}},
        "random": {**plain, "search": {"algorithm": "react"}, "policy": {"kind": "random"}},
        "filter": {**plain, "search": {"algorithm": "greedy", "k": SEARCH["k"], "prefetch": 0}, "limits": capped},
        "best_of_n": {**common, "search": WHOLE, "browser": inside, "limits": capped},
        "constant": {**common, "search": EMBEDDED, "browser": inside, "limits": capped, "value": {"kind": "constant"}},
        "shuffled": {**common, "search": EMBEDDED, "browser": inside, "limits": capped},
        "oracle": {**common, "search": EMBEDDED, "browser": inside, "limits": capped, "value": {"kind": "oracle"}},
        "world_each": {**common, **each, "browser": inside},
        "constant_each": {**common, **each, "browser": inside, "value": {"kind": "constant"}},
        "oracle_each": {**common, **each, "browser": inside, "value": {"kind": "oracle"}},
    }


def held_out(id: str) -> bool:
    """Return whether the built-in agent was never tuned on a task."""
    return bool(int(hashlib.sha256(id.partition("?")[0].encode()).hexdigest()[0], 16) % 2)


def groups(tasks: Sequence[Task]) -> dict[str, set[str]]:
    """Return the groups of tasks for the built-in agent.

    They are the held-out half, its multi-step tasks, its writing tasks, and separately the other half.
    """
    out = {task.id for task in tasks if held_out(task.id)}
    long = {task.id for task in tasks if task.metadata.get("difficulty") != "easy"}
    writing = {task.id for task in registry.expand(WRITES)}
    return {"held out": out, "multi-step": out & long, "that write": out & writing, "development": {task.id for task in tasks} - out}


def shuffled(config: Config, models: Callable[[str], ChatModel]) -> Agent:
    """Build the built-in policy with a value function whose values are random."""
    return Agent(policy=build_agent(config, models).policy, value=ShuffledValue(config.seed))


@asynccontextmanager
async def worlds_of(task: Task, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
    async with registry.suite(task.id).environments(config) as environments:
        yield environments


def shared(config: BrowserConfig) -> EnvironmentCache:
    """Open the environments of one site at a time."""
    return EnvironmentCache(lambda task: task.id.partition("/")[0], lambda task: worlds_of(task, config))


async def attempt(name: str, settings: Mapping[str, Any], tasks: Sequence[Task], work: Path, only: Callable[[Task], bool]) -> RunFolder:
    """Attempt tasks with one arm, limited by `only`. Results already in `work` are not made again."""
    config, folder = parse({"name": name, **settings}), work / name
    if not (folder / "run.json").exists():
        create(folder, tuple(tasks), config)
    run, config = reopen(folder)
    done = {line.task for line in run.results() if line.status != "failed"}
    began, left = time.monotonic(), [task for task in tasks if only(task) and task.id not in done]
    made = guided if name.startswith("guided") else {"shuffled": shuffled}.get(name)
    async with (
        shared(config.browser) as opened,
        Runner(folder=run, config=config, open_environments=opened, build_agent=made).session() as once,
    ):
        for number, task in enumerate(left, 1):
            run.add_result(await once(task))
            print(f"\r{name:10} {number:3} of {len(left)}  {time.monotonic() - began:5.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return run


async def replayed(run: RunFolder) -> dict[str, Replay]:
    """Replay the committed actions of each attempt in fresh environments, and read results that exist.

    Attempts whose live environment was fresh and took these actions only are not replayed.
    """
    path = run.path / "replays.jsonl"
    known = [msgspec.json.decode(line, type=Replay) for line in path.read_bytes().splitlines()] if path.exists() else []
    found = {each.task: each for each in known}
    _, config = reopen(run.path)
    if config.browser.sandbox == "required":
        fresh = [line for line in run.results() if line.score is not None and not line.promoted and line.task not in found]
        found |= {line.task: Replay(task=line.task, score=line.score, match="same") for line in fresh}
    async with shared(INSIDE) as opened:
        for task in run.manifest.tasks:
            if task.id in found or (state := finished_state(run, config, task)) is None:
                continue
            try:
                async with opened(task) as environments:
                    found[task.id] = await replay(environments, task, state, run.blobs)
            except InfrastructureError as error:
                print(f"{task.id}: not replayed: {error}", file=sys.stderr)
                continue
            with path.open("ab") as file:
                file.write(msgspec.json.encode(found[task.id]) + b"\n")
    return found


def commits(run: RunFolder) -> dict[str, int]:
    """Return the commits with which an arm's attempts began, and the number of attempts with each."""
    found: Counter[str] = Counter()
    for journal in sorted(run.path.glob("tasks/*/journal.jsonl")):
        with journal.open("rb") as file:
            found[json.loads(file.readline())["versions"].get("commit", "unknown")] += 1
    return dict(found)


def row(run: RunFolder, again: Mapping[str, Replay]) -> dict[str, Any]:
    """Return the row of the table for one arm."""
    lines = {line.task: line for line in run.results()}
    ended = [line for line in lines.values() if line.status != "failed"]
    left = {line.task: line.score for line in ended if line.score is not None}
    alone = {task: each.score for task, each in again.items() if each.score is not None and task in left}
    scores = {task: min(left[task], score) for task, score in alone.items()}
    return {
        "success": rate({task: [score] for task, score in scores.items()}),
        "left": statistics.fmean(list(left.values()) or [0.0]),
        "false": sum(left[task] > score for task, score in alone.items()),
        "spoiled": sum(left[task] < score for task, score in alone.items()),
        "scores": scores,
        "told": None if any(line.informed is None for line in ended) else sum(line.informed or 0 for line in ended),
        "corrupted": sum(line.drifted for line in ended),
        **{key: statistics.fmean([getattr(line, key) for line in ended] or [0.0]) for key in ("seconds", "transitions", "actions")},
        "commits": commits(run),
        "failed": len(lines) - len(ended),
        "attempts": len(scores),
    }


def gains(one: Mapping[str, Any], other: Mapping[str, Any], only: set[str] | None = None) -> dict[str, list[float]]:
    """Differences of success on the tasks that both finished."""
    mine, theirs = ({task: score for task, score in each["scores"].items() if only is None or task in only} for each in (one, other))
    return differences(mine, theirs, {task: task for task in mine})


def told(found: Mapping[str, list[float]]) -> str:
    """Format a gain with its interval, the numbers of tasks won and lost, and its p-value."""
    wins, losses = sum(each[0] > 0 for each in found.values()), sum(each[0] < 0 for each in found.values())
    return f"{bootstrap(found)}, {wins} : {losses}, p {mcnemar(wins, losses):.2g}"


def label(name: str, found: Mapping[str, Any]) -> str:
    """Return an arm's name, marked as an oracle, and as void where no environment gave it a score."""
    if name.startswith("guided"):
        return f"{name} (ORACLE)"
    return name + ("" if not name.startswith("oracle") else " (ORACLE, VOID)" if found["told"] == 0 else " (ORACLE)")


def show(rows: Mapping[str, Any], kinds: Mapping[str, set[str]]) -> None:
    """Print the result of each arm, its success by kind of task, and the gain of searches over the policy in each kind."""
    header = [
        "arm",
        "success",
        "as left",
        "false 1",
        "spoiled",
        "corrupted",
        "s a task",
        "steps",
        "actions",
        "failed",
        "gain of guided_world",
    ]
    _common.table(
        header,
        [
            [
                label(name, each),
                str(each["success"]),
                f"{each['left']:.3f}",
                *(str(each[key]) for key in ("false", "spoiled", "corrupted")),
                *(f"{each[key]:.1f}" for key in ("seconds", "transitions", "actions")),
                str(each["failed"]),
                told(gains(rows["guided_world"], each)) if name.startswith("guided") and name != "guided_world" in rows else "",
            ]
            for name, each in rows.items()
        ],
    )
    embedded = {name: each for name, each in rows.items() if not name.startswith("guided")}
    if not embedded:
        return
    print()
    heads = [f"{kind} ({len(found)})" for kind, found in kinds.items()]
    table = [[label(name, each), *(share(each, found) for found in kinds.values())] for name, each in embedded.items()]
    _common.table(["success", *heads], table)
    for first, second in (("world", ""), ("", "react")):
        pairs = [(name, (first or name, second or name)) for name in embedded if name != (first or second)]
        table = [
            [label(name, embedded[name]), *(told(gains(embedded[one], embedded[two], found)) for found in kinds.values())]
            for name, (one, two) in pairs
            if one in embedded and two in embedded
        ]
        if table:
            print()
            _common.table([f"gain of {first} over" if first else f"gain over {second}", *heads], table)


def within(found: Mapping[str, Any], only: set[str]) -> Any:
    """Success on some tasks."""
    return rate({task: [score] for task, score in found["scores"].items() if task in only})


def share(found: Mapping[str, Any], only: set[str]) -> str:
    """Return a note on the number of tasks for the table, where an arm has not run all."""
    count = len(only & set(found["scores"]))
    return f"{within(found, only)}{'' if count == len(only) else f' of {count}'}" if count else ""


def figures(rows: Mapping[str, Any], kinds: Mapping[str, set[str]], *, claims: bool) -> list[_common.Figure]:
    found = [_common.Figure("world_success", within(rows["world"], kinds["held out"])[0])] if "world" in rows else []
    for caps in ("", "_each"):
        over = {
            name: bootstrap(gains(rows[name + caps], rows["react"], kinds["multi-step"]))
            for name in ("world", "oracle", "constant")
            if {name + caps, "react"} <= set(rows) and not (name == "oracle" and rows[name + caps]["told"] == 0)
        }
        if "world" in over:
            found.append(_common.Figure(f"gain_multi_step{caps}_low", over["world"].low, goal=0.001 if claims else None))
        if "oracle" in over:
            found.append(_common.Figure(f"headroom_multi_step{caps}", over["oracle"].mean))
        if "constant" in over:
            goal = 0.0 if claims else None
            found.append(_common.Figure(f"gain_constant_multi_step{caps}_low", over["constant"].low, goal=goal, at_least=False))
    if {"guided_world", "guided_replay"} <= set(rows):
        environment, other = rows["guided_world"], rows["guided_replay"]
        found += [
            _common.Figure("world_vs_replay_success", bootstrap(gains(environment, other)).mean, goal=0.001 if claims else None),
            _common.Figure("world_vs_replay_time", environment["seconds"] / max(other["seconds"], 1e-9)),
            _common.Figure("world_corrupted", environment["corrupted"], goal=0, at_least=False),
            _common.Figure("replay_corrupted", other["corrupted"]),
        ]
    return found


async def references(args: Any) -> int:
    """Walk all reference and wrong sequences: the applications beside the browser, then with it inside gVisor."""
    sys.path.insert(0, str(_common.ROOT))
    from exact.benchmarks.sites.suite import trac, wagtail
    from tests.benchmarks.sites.walk import scores

    noise, wrong, walked = _common.Noise(), dict[str, str](), 0
    for mode, config in (("process", BESIDE), ("gVisor", INSIDE)):
        for site in (trac(), wagtail()):
            async with site.environments(config) as environments:
                for id in site.ids():
                    wrong |= {f"{name} ({mode})": why for name, why in (await scores(environments, site, [id])).items()}
                    walked += 1
                    print(f"\r{mode:8} {id:12} {len(wrong)} wrong", end="", file=sys.stderr, flush=True)
            noise.probe()
    print(file=sys.stderr)
    for name, why in wrong.items():
        print(f"{name}: {why}")
    found = [_common.Figure("tasks_walked", walked), _common.Figure("references_wrong", len(wrong), goal=0, at_least=False)]
    _common.finish(args, found, noise, _common.versions("exact-agent", "playwright"), {"wrong": wrong})
    return 1 if wrong else 0


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "sites", help="where the runs lie")
    options.add_argument("--arms", default="", help="only these, by comma")
    options.add_argument("--part", choices=["all", "held-out", "multi-step"], default="all", help="of the tasks, for the built-in agent")
    options.add_argument("--fresh", action="store_true", help="forget what lies in --work")
    options.add_argument("--as-is", action="store_true", help="run nothing: show what lies in --work, finished or not")
    options.add_argument("--references", action="store_true", help="walk the reference sequences instead")
    args = options.parse_args()
    if args.references:
        return await references(args)
    chosen = dict(list(arms().items())[:2]) if args.quick else arms()
    work, tasks = args.work, registry.expand(QUICK if args.quick else ["trac/*", "wagtail/*"])
    tasks = sorted(tasks, key=lambda task: not held_out(task.id))  # what is held out comes first, so that a part of a run says something
    writing, kinds = registry.expand(WRITES), groups(tasks)
    if args.quick:
        work = args.work.with_name("sites_quick")
        limits = {"actions": 3, "transitions": 8}
        chosen = {name: {**each, "limits": limits, "search": {**SEARCH, "iterations": 3, "k": 3}} for name, each in chosen.items()}
    if args.fresh or args.quick:
        shutil.rmtree(work, ignore_errors=True)
    noise, rows = _common.Noise(), dict[str, Any]()

    def only(task: Task) -> bool:
        return args.part == "all" or task.id in kinds[args.part.replace("held-out", "held out")]

    for name, settings in chosen.items():
        if (args.arms and name not in args.arms.split(",")) or (args.as_is and not (work / name / "run.json").exists()):
            continue
        if not args.as_is:  # else the noise would be of this moment, not of the run
            noise.probe()
        run = (
            RunFolder.open(work / name)
            if args.as_is
            else await attempt(name, settings, writing if name.startswith("guided") and not args.quick else tasks, work, only)
        )
        again = await replayed(run)
        rows[name] = row(run, again)
    show(rows, kinds)
    parts = {kind: sorted(found) for kind, found in kinds.items()}
    details = {"arms": chosen, "rows": json.loads(json.dumps(rows)), "tasks": [task.id for task in tasks], "groups": parts}
    _common.finish(args, figures(rows, kinds, claims=not args.quick), noise, _common.versions("exact-agent", "playwright"), details)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
