"""Does search help the embedded agent on MiniWoB++ as a whole, by how much, at what cost?

BrowserGym's 125 tasks, 5 seeds each (35 to 39, on which no agent was run before), 15 committed actions for every agent. Strata by the
rule of bench/strata.py, which knows no agent. The embedded agent was tuned on the tasks whose name's SHA-256 begins with an even
digit, with seeds from 100 on: those are the development half. Every figure is of the other half, held out; the development half is
shown apart. The half was held out, but not unseen: docs/results/miniwob.md names the tasks that were run before, with other seeds.
The embedded agent is not a language model.

Agents, by default: react; best_of_n, best_first, tot, mcts and rmcts (mcts that remembers lessons, none from the same task), each
with at most 40 environment steps a task, replays included. Controls: random; filter (ReAct with a one-step value filter); constant,
and shuffled (the value's own distribution, dealt out to states by a hash): neither must show a gain where information counts; and
oracle (told every verdict: headroom, labelled).
`mcts@15` caps the judgements of a task and not its steps (100): the same search at 15, 30 and 60.

Success is of the committed actions in a world that search never used. Intervals are 95 percent, bootstrapped over tasks, seeds within.
Tasks in which termination itself tells success, or where a restore replays seeded luck, are in no stratum: they are shown apart.

    python bench/miniwob.py --json bench/results/miniwob.json     all of it; goes on from --work after an interruption
    python bench/miniwob.py --agents react,mcts --share 0.2        a fifth of the tasks, by hash
    python bench/miniwob.py --quick                                three tasks, two seeds, 25 steps, under 50 s
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import _common
from _controls import ShuffledValue

from exact.agents.agent import Agent, build
from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.names import BROWSERGYM
from exact.benchmarks.miniwob.rewards import REWARDS
from exact.config import Config, load
from exact.environments.base import Worlds
from exact.environments.pool_room import PoolLimits
from exact.evaluation.agents import AGENTS
from exact.evaluation.folder import BenchFolder, Result
from exact.evaluation.local import BuildAgent, LocalEngine, worlds_wanted
from exact.evaluation.output import write_outputs
from exact.evaluation.plan import Plan, Session
from exact.evaluation.schedule import Schedule
from exact.evaluation.statistics import Interval, bootstrap, rate
from exact.evaluation.summary import by_agent, grouped, row, scores, task_of, versus
from exact.models.base import ChatModel
from exact.task import Task

SEEDS = (35, 36, 37, 38, 39)
DEVELOPMENT_SEEDS = (120, 121, 122, 123, 124)
"""Of runs that decide nothing: `--quick`, and `--half development`."""
ACTIONS, STEPS, JUDGED_STEPS = 15, 40, 100
"""The last where judgements are what is capped."""
DEFAULT = "react,best_of_n,best_first,tot,mcts,rmcts"
CONTROLS = "random,filter,constant,shuffled,oracle"
EVALUATIONS = (15, 30, 60)
TELLING = ("click-test", "focus-text", "use-colorwheel", "use-colorwheel-2", "click-dialog", "guess-number")
"""Termination itself tells success: whoever looks where an episode ends knows the answer."""
LUCKY = ("click-pie", "click-pie-nodelay", "terminal", "stock-market", "visual-addition")
"""Upstream names them as not repeating with their seed: what a restore replays may be luck that a fresh world does not give."""
STRATA = ("information", "ends", "form", "other")
QUICK, QUICK_STEPS = ("click-tab", "click-checkboxes", "login-user"), 25


def settings(name: str, steps: int = STEPS) -> Config:
    """An agent's configuration: `mcts`, or `mcts@30` for at most 30 judgements. `steps`: in the environment, for a task."""
    kind, _, most = name.partition("@")
    base = AGENTS["constant" if kind == "shuffled" else kind]
    limits: dict[str, int] = {"actions": ACTIONS} if kind in ("react", "random") else {"actions": ACTIONS, "transitions": steps}
    if most:
        limits |= {"evaluations": int(most), "transitions": JUDGED_STEPS}
    sections = {**base, "browser": {"screenshots": False}, "limits": limits}
    if kind == "rmcts":
        sections["reflection"] = {**base["reflection"], "exclude_same_task": True}
    if sections["search"]["algorithm"] not in ("react", "greedy"):
        sections["search"] = {**base["search"], "iterations": 96}
    return load(None, [f"name={name}", *(f"{key}={json.dumps(value)}" for key, value in sections.items())])


def builders(names: Sequence[str]) -> dict[str, BuildAgent]:
    """How agents are put together that are not what their configuration names."""

    def shuffled(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        return Agent(policy=build(config, models).policy, value=ShuffledValue(config.seed))

    return {name: shuffled for name in names if name.startswith("shuffled")}


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def held_out(name: str) -> bool:
    """Whether the embedded agent was never tuned on a task."""
    return bool(int(digest(name)[0], 16) % 2)


def name_of(task: str) -> str:
    return task_of(task).partition("/")[2]


def strata() -> dict[str, list[str]]:
    """Held-out tasks by stratum, but those shown apart."""
    found: dict[str, list[str]] = json.loads((_common.ROOT / "bench" / "strata.json").read_text())["strata"]
    return {kind: [name for name in found[kind] if name not in (*TELLING, *LUCKY)] for kind in STRATA}


def chosen(share: float) -> list[str]:
    """The first tasks by hash, a share of each half, in the order of the list."""
    halves = [sorted((name for name in BROWSERGYM if held_out(name) is half), key=digest) for half in (True, False)]
    kept = {name for half in halves for name in half[: max(1, round(share * len(half)))]}
    return [name for name in BROWSERGYM if name in kept]


async def attempt(folder: BenchFolder, parallel: int, noise: _common.Noise) -> list[Result]:
    """All that is left of it."""
    sys.path.append(sys.path.pop(0))  # this file must not stand in for the wheel of its name
    suite, began = MiniWob(), time.monotonic()
    configs = {agent: folder.agent(agent)[1] for agent in folder.plan.agents}

    def open_worlds(task: Task, config: Config) -> AbstractAsyncContextManager[Worlds]:
        return suite.worlds(config.browser)

    def finished(result: Result, done: int, of: int) -> None:
        if done % max(1, of // 100) == 0:
            noise.probe()
        print(f"\r{done:5} of {of}  {time.monotonic() - began:6.0f} s", end="", file=sys.stderr, flush=True)

    limits = PoolLimits(worlds=parallel * max(map(worlds_wanted, configs.values())))
    async with LocalEngine(
        folder, open_worlds=open_worlds, key=lambda task: "miniwob", limits=limits, build=builders(folder.plan.agents), hang=300.0
    ) as engine:
        rounds = {agent: max(1, config.reflection.round) for agent, config in configs.items() if config.reflection.kind != "none"}
        results = await Schedule(folder=folder, engine=engine, parallel=parallel, rounds=rounds, finished=finished).run()
    print(file=sys.stderr)
    return results


def groups(names: Sequence[str]) -> dict[str, set[str]]:
    """What is shown: the strata of the held-out half, all of it, and apart from it the rest."""
    out = {name for name in names if held_out(name)}
    apart = {name for name in names if name in (*TELLING, *LUCKY)}
    by_kind = {kind: out & set(found) for kind, found in strata().items()}
    elsewhere = out - by_kind["information"] - apart
    return {**by_kind, "not information": elsewhere, "held out": out - apart, "development": set(names) - out - apart, "apart": apart}


def success(results: Sequence[Result], names: set[str]) -> Interval:
    return rate(grouped(scores(each for each in results if name_of(each.task) in names)))


def within(results: Sequence[Result], names: set[str], kind: str, most: float) -> Interval:
    """Success at a cost of at most so much: an attempt that took more was not solved."""
    kept = [each for each in results if name_of(each.task) in names]
    return bootstrap(grouped(scores(kept, lambda each: float(each.score == 1 and getattr(each, kind) <= most))))


def show(results: Mapping[str, Sequence[Result]], names: Sequence[str]) -> dict[str, Any]:
    """Print the tables; what they hold, as data."""
    kinds = {kind: found for kind, found in groups(names).items() if found}
    base = results["react"] if "react" in results else next(iter(results.values()))
    rows = {agent: row(agent, found, REWARDS) for agent, found in results.items()}
    head = [f"{kind} ({len(found)})" for kind, found in kinds.items()]
    table = {agent: {kind: success(found, names) for kind, names in kinds.items()} for agent, found in results.items()}
    gains = {
        agent: {kind: gain(found, base, names) for kind, names in kinds.items()} for agent, found in results.items() if found is not base
    }
    labelled = {agent: agent + (" (ORACLE)" if each.oracle else "") for agent, each in rows.items()}
    _common.table(["success", *head], [[labelled[agent], *map(str, each.values())] for agent, each in table.items()])
    print()
    _common.table([f"gain over {base[0].agent}", *head], [[labelled[agent], *map(str, each.values())] for agent, each in gains.items()])
    print()
    costs = {agent: [each.costs[kind] for kind in ("actions", "transitions", "evaluations", "seconds")] for agent, each in rows.items()}
    took = [
        [
            labelled[agent],
            *(f"{x:.1f}" for x in costs[agent]),
            *map(str, (each.drifted, each.failed, each.reruns)),
            *map(str, each.rewards.values()),
        ]
        for agent, each in rows.items()
    ]
    _common.table(["an attempt took", "actions", "steps", "values", "seconds", "drifted", "failed", "reruns", *REWARDS], took)
    print()
    out = kinds.get("held out", set(names))
    limits = [("transitions", most) for most in (5, 10, 20, STEPS)] + [("evaluations", most) for most in EVALUATIONS]
    curve = {agent: {f"{kind}<={most}": within(found, out, kind, most).mean for kind, most in limits} for agent, found in results.items()}
    _common.table(["held out, success at", *(f"{kind[:11]}<={most}" for kind, most in limits)],
                  [[labelled[agent], *(f"{x:.3f}" for x in each.values())] for agent, each in curve.items()])  # fmt: skip
    return {"success": table, "gain": gains, "costs": costs, "curve": curve}


def gain(results: Sequence[Result], base: Sequence[Result], names: set[str]) -> Interval:
    kept = [[each for each in found if name_of(each.task) in names] for found in (results, base)]
    return versus(*kept).gain


def figures(shown: Mapping[str, Any], names: Sequence[str]) -> list[_common.Figure]:
    part = "held out" if any(map(held_out, names)) else "development"
    found = [_common.Figure(f"success_{agent}", each[part].mean) for agent, each in shown["success"].items() if part in each]
    for agent in ("rmcts", "mcts"):
        each = shown["gain"].get(agent, {})
        if "information" in each:
            found.append(_common.Figure("gain_information_low", each["information"].low, goal=0.001))
        if "not information" in each:
            found.append(_common.Figure("gain_elsewhere_low", each["not information"].low, goal=-0.02))
        if each:
            break
    for control in ("constant", "shuffled"):
        if "information" in (each := shown["gain"].get(control, {})):
            found.append(_common.Figure(f"gain_{control}_information_low", each["information"].low, goal=0.0, at_least=False))
    return [each for each in found if not math.isnan(each.value)]


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--agents", default=DEFAULT, help=f"by comma; also {CONTROLS}, and mcts@15 for at most 15 judgements")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "miniwob", help="where the runs lie")
    options.add_argument("--share", type=float, default=1.0, help="of the tasks, by hash, of each half")
    options.add_argument("--half", choices=["all", "held-out", "development"], default="all")
    options.add_argument("--parallel", type=int, default=6, help="attempts at a time; with 3 a machine of two cores idles half the time")
    options.add_argument("--fresh", action="store_true", help="forget what lies in --work")
    args = options.parse_args()
    names = list(QUICK) if args.quick else chosen(args.share)
    names = [name for name in names if args.half == "all" or held_out(name) is (args.half == "held-out")]
    agents = tuple(("react,mcts" if args.quick and args.agents == DEFAULT else args.agents).split(","))
    seeds = DEVELOPMENT_SEEDS[:2] if args.quick else DEVELOPMENT_SEEDS if args.half == "development" else SEEDS
    work = args.work.with_name("miniwob_quick") if args.quick else args.work
    if args.fresh or args.quick:
        shutil.rmtree(work, ignore_errors=True)
    tasks = [MiniWob().task(f"miniwob/{name}?seed={seed}") for name in names for seed in seeds]
    folder = folder_of(work, tasks, {agent: settings(agent, QUICK_STEPS if args.quick else STEPS) for agent in agents})
    noise, began = _common.Noise(), time.monotonic()
    noise.probe()
    results = by_agent(await attempt(folder, args.parallel, noise))
    noise.probe()
    write_outputs(folder, REWARDS)
    shown = show(results, names)
    seconds = time.monotonic() - began
    found = {
        "agents": list(results),
        "seeds": seeds,
        "names": names,
        "groups": {kind: sorted(each) for kind, each in groups(names).items()},
        **shown,
    }
    raw = {agent: {each.task: [each.score, each.raw, each.transitions, each.evaluations] for each in of} for agent, of in results.items()}
    print(f"\n{sum(map(len, results.values()))} attempts in {seconds:.0f} s of this session: {folder.path / 'index.html'}")
    _common.finish(args, figures(shown, names), noise, _common.versions("exact-agent", "miniwob", "playwright"), {**found, "results": raw})
    return 0


def folder_of(work: Path, tasks: Sequence[Task], agents: Mapping[str, Config]) -> BenchFolder:
    """What lies in `work`, if it is of these tasks, with the agents that it lacks; else a new one."""
    session = Session(
        versions={"exact": _common.commit()},
        machine={key: str(value) for key, value in _common.machine().items()},
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if (work / "bench.json").exists():
        folder = BenchFolder.open(work)
        if folder.plan.tasks != tuple(tasks):
            sys.exit(f"{work} is of other tasks: choose another --work, or --fresh")
        other = folder.go_on(session, {agent: config for agent, config in agents.items() if agent not in folder.plan.agents})
        if other:
            print(f"{work} goes on by other code or elsewhere than before: {other}", file=sys.stderr)
        return folder
    plan = Plan(
        suite="miniwob",
        agents=tuple(agents),
        tasks=tuple(tasks),
        budget={"actions": ACTIONS, "transitions": STEPS},
        versions=session.versions,
        machine=session.machine,
        begun=session.begun,
    )
    return BenchFolder.create(work, plan, agents)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
