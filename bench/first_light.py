"""Measure the gain and the cost of search for the built-in agent on MiniWoB++.

Forty tasks in three strata, fixed in bench/strata.json by the rule of bench/strata.py before any agent ran; three seeds each, on which no
agent was run before (docs/results/first_light.md tells which seeds and tasks have been seen). Agents: random; ReAct; ReAct with a one-step
value filter; R-MCTS with the built-in value, with a constant value (a control: must show no gain) and with an oracle's (headroom, labelled:
it sees the score of every episode that ended in search). The three searches differ in nothing but the value. The built-in agent is not a
language model. No reflection from another seed of the same task is ever shown.

At most 15 committed actions for every agent, and 100 environment steps a task, replays and commits included. Success is of the
committed actions in an environment that search never used. Intervals are 95 percent, bootstrapped over tasks, seeds within; gains are
paired on task and seed.

    python bench/first_light.py --json bench/results/first_light.json     all of it, about an hour; goes on from --work
    python bench/first_light.py --quick                                   a task of each stratum again: must agree with what is committed
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import _common
from _attempts import LEXICAL, PARALLEL, attempt, commits, folder_of, show, tasks_of

from exact.benchmarks.miniwob.suite import REWARDS
from exact.config import parse
from exact.evaluation.folder import Result
from exact.evaluation.output import write_outputs
from exact.evaluation.plan import AGENTS
from exact.evaluation.summary import by_agent

SEEDS = (12, 13, 14)
"""Those before have been seen, or begun."""
ACTIONS, STEPS = 15, 100
STRATA = ("information", "ends", "form")
CURVE = (5, 10, 20, 40, 100, 200)
"""Environment steps at which success is read."""
QUICK_AGENTS = ("react", "rmcts")
RESULT = _common.ROOT / "bench" / "results" / "first_light.json"


def agents(steps: int = STEPS) -> dict[str, dict[str, Any]]:
    """Return each agent's configuration. `steps`: environment steps for a task."""
    rmcts = {**AGENTS["rmcts"], "search": {**AGENTS["rmcts"]["search"], "iterations": 96}}
    found = {
        "random": AGENTS["random"],
        "react": AGENTS["react"],
        "filter": AGENTS["filter"],
        "rmcts": rmcts,
        "constant": {**rmcts, "value": {"kind": "constant"}},
        "oracle": {**rmcts, "value": {"kind": "oracle"}},
    }
    common = {"browser": {"screenshots": False}, "limits": {"actions": ACTIONS, "transitions": steps}}
    memory = {"exclude_same_task": True, "round": PARALLEL}
    return {name: {**LEXICAL, **each, **common, "reflection": {**each["reflection"], **memory}} for name, each in found.items()}


async def run(
    work: Path, names: Sequence[str], seeds: Sequence[int], settings: Mapping[str, Any], noise: _common.Noise
) -> tuple[dict[str, list[Result]], list[str]]:
    """Run the attempts by agent, and return them with the commits that made them. Results already in `work` are not made again."""
    configs = {name: parse({**each, "name": name}) for name, each in settings.items()}
    folder = folder_of(work, tasks_of(names, seeds), configs)
    results = by_agent(await attempt(folder, PARALLEL, noise))
    write_outputs(folder, REWARDS)
    print(f"{sum(map(len, results.values()))} attempts: {folder.path / 'index.html'}\n")
    return results, commits(folder)


def figures(shown: Mapping[str, Any]) -> list[_common.Figure]:
    """Return the headline figures: over all strata that were run, and the gains over those in which exploring reveals information."""
    found = [_common.Figure(f"{name}_success", shown["success"][name]["all"].mean) for name in ("react", "rmcts")]
    for name, least in (("rmcts", True), ("constant", False)):
        if "information" in (gain := shown["gain"].get(name, {})):
            of = "" if least else f"{name}_"
            found.append(_common.Figure(f"gain_{of}information_low", gain["information"].low, goal=0.001 if least else 0.0, at_least=least))
    return found


async def quick(work: Path, noise: _common.Noise) -> tuple[list[_common.Figure], dict[str, Any]]:
    """Run the first solved task of each stratum with the committed settings, and check that all agents end as before."""
    committed = json.loads(RESULT.read_text())
    scores = {name: found for name, found in committed["scores"].items() if name in QUICK_AGENTS}
    seeds, solver = committed["seeds"][:1], scores[QUICK_AGENTS[-1]]
    names = [next(name for name in some if solver[f"miniwob/{name}?seed={seeds[0]}"] == 1.0) for some in committed["chosen"].values()]
    shutil.rmtree(work, ignore_errors=True)
    results, _ = await run(work, names, seeds, {name: committed["agents"][name] for name in scores}, noise)
    pairs = [(name, each, scores[name][each.task]) for name, found in results.items() for each in found if each.task in scores[name]]
    rows = [[f"{name} {each.task}", str(before), str(each.score)] for name, each, before in pairs]
    _common.table(["agent and task", "committed", "now"], rows)
    agreement = sum(each.score == before for _, each, before in pairs) / len(pairs)
    found = [
        _common.Figure(name, each["value"], each["goal"], at_least=each["goal"] is None or (each["value"] >= each["goal"]) == each["met"])
        for name, each in committed["figures"].items()
    ]
    return [*found, _common.Figure("agreement", agreement, goal=0.9)], {"rows": rows}


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "first_light", help="where the runs lie")
    options.add_argument("--fresh", action="store_true", help="forget what lies in --work")
    options.add_argument("--strata", nargs="+", choices=STRATA, default=STRATA)
    options.add_argument("--agents", nargs="+", choices=list(agents()), default=list(agents()))
    options.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    options.add_argument("--steps", type=int, default=STEPS, help="environment steps a task")
    args, noise = options.parse_args(), _common.Noise()
    versions = _common.versions("exact-agent", "miniwob", "playwright")
    if args.quick:
        found, details = await quick(args.work.with_name("first_light_quick"), noise)
        _common.finish(args, found, noise, versions, details)
        return 0
    if args.fresh:
        shutil.rmtree(args.work, ignore_errors=True)
    strata: dict[str, list[str]] = json.loads((_common.ROOT / "bench" / "strata.json").read_text())["chosen"]
    chosen, settings = {kind: strata[kind] for kind in args.strata}, {name: agents(args.steps)[name] for name in args.agents}
    names = [name for some in chosen.values() for name in some]
    results, made_by = await run(args.work, names, args.seeds, settings, noise)
    shown = show(results, {**{kind: set(some) for kind, some in chosen.items()}, "all": set(names)}, "all", CURVE)
    details = {
        "seeds": args.seeds,
        "chosen": chosen,
        "agents": settings,
        "commits": made_by,
        **shown,
        "scores": {name: {each.task: each.score for each in found} for name, found in results.items()},
        "raw": {name: {each.task: each.raw for each in found} for name, found in results.items()},
        "steps": {name: {each.task: each.transitions for each in found} for name, found in results.items()},
    }
    _common.finish(args, figures(shown), noise, versions, details)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
