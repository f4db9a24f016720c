"""Measure the gain and the cost of search for the built-in agent on the whole of MiniWoB++.

BrowserGym's 125 tasks, 5 seeds each (40 to 44, on which no agent was run before), 15 committed actions for every agent. Strata by the
rule of bench/strata.py, which knows no agent. The built-in agent was tuned on the tasks whose name's SHA-256 begins with an even
digit, with seeds from 100 on: those are the development half. Every figure is of the other half, held out; the development half is
shown apart. The half was held out, but not unseen: bench/plans/miniwob.md names the tasks that were run before, with other seeds.
The built-in agent is not a language model.

Agents, by default: react; best_of_n, best_first, tot, mcts and rmcts (mcts with reflections, none from the same task), each
with at most 40 environment steps a task, replays included. Controls: random; filter (ReAct with a one-step value filter); constant,
and shuffled (the value's own distribution, dealt out to states by a hash): neither must show a gain where information counts; and
oracle (informed of every score: headroom, labelled).
`mcts@15` caps the evaluations of a task and not its steps (100): the same search at 15, 30 and 60.

Success is of the committed actions in an environment that search never used. Intervals are 95 percent, bootstrapped over tasks, seeds
within. Tasks in which termination itself tells success, or where a restore replays seeded luck, are in no stratum: they are shown apart.

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
from pathlib import Path
from typing import Any

import _common
from _attempts import LEXICAL, PARALLEL, attempt, commits, folder_of, raw, show, tasks_of
from _controls import ShuffledValue

from exact.agents.agent import Agent, build_agent
from exact.benchmarks.miniwob.suite import BROWSERGYM, REWARDS
from exact.config import Config, load
from exact.evaluation.local import BuildAgent
from exact.evaluation.output import write_outputs
from exact.evaluation.plan import AGENTS
from exact.evaluation.summary import by_agent
from exact.models.base import ChatModel

SEEDS = (40, 41, 42, 43, 44)
DEVELOPMENT_SEEDS = (120, 121, 122, 123, 124)
"""Of runs that decide nothing: `--quick`, and `--half development`."""
ACTIONS, STEPS, JUDGED_STEPS = 15, 40, 100
"""The last where judgements are what is capped."""
DEFAULT = "react,best_of_n,best_first,tot,mcts,rmcts"
CONTROLS = "random,filter,constant,shuffled,oracle"
TELLING = ("click-test", "focus-text", "use-colorwheel", "use-colorwheel-2", "click-dialog", "guess-number")
"""Termination itself tells success: whoever looks where an episode ends knows the answer."""
LUCKY = ("click-pie", "click-pie-nodelay", "terminal", "stock-market", "visual-addition")
"""Upstream names them as not repeating with their seed: what a restore replays may be luck that a fresh environment does not give."""
STRATA = ("information", "ends", "form", "other")
QUICK, QUICK_STEPS = ("click-tab", "click-checkboxes", "login-user"), 25


def settings(name: str, steps: int = STEPS) -> Config:
    """Return an agent's configuration: `mcts`, or `mcts@30` for at most 30 evaluations. `steps`: environment steps for a task."""
    kind, _, most = name.partition("@")
    base = AGENTS["constant" if kind == "shuffled" else kind]
    limits: dict[str, int] = {"actions": ACTIONS} if kind in ("react", "random") else {"actions": ACTIONS, "transitions": steps}
    if most:
        limits |= {"evaluations": int(most), "transitions": JUDGED_STEPS}
    sections = {**LEXICAL, **base, "browser": {"screenshots": False}, "limits": limits}
    if kind == "rmcts":
        sections["reflection"] = {**base["reflection"], "exclude_same_task": True}
    if sections["search"]["algorithm"] not in ("react", "greedy"):
        sections["search"] = {**base["search"], "iterations": 96}
    return load(None, [f"name={name}", *(f"{key}={json.dumps(value)}" for key, value in sections.items())])


def builders(names: Sequence[str]) -> dict[str, BuildAgent]:
    """Return the builders of agents that differ from what their configuration names."""

    def shuffled(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        return Agent(policy=build_agent(config, models).policy, value=ShuffledValue(config.seed))

    return {name: shuffled for name in names if name.startswith("shuffled")}


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def held_out(name: str) -> bool:
    """Return whether the built-in agent was never tuned on a task."""
    return bool(int(digest(name)[0], 16) % 2)


def strata() -> dict[str, list[str]]:
    """Held-out tasks by stratum, but those shown apart."""
    found: dict[str, list[str]] = json.loads((_common.ROOT / "bench" / "strata.json").read_text())["strata"]
    return {kind: [name for name in found[kind] if name not in (*TELLING, *LUCKY)] for kind in STRATA}


def chosen(share: float) -> list[str]:
    """Return the first tasks by hash, a share of each half, in the order of the list and the held-out half first."""
    halves = [sorted((name for name in BROWSERGYM if held_out(name) is half), key=digest) for half in (True, False)]
    kept = {name for half in halves for name in half[: max(1, round(share * len(half)))]}
    return sorted((name for name in BROWSERGYM if name in kept), key=held_out, reverse=True)


def groups(names: Sequence[str]) -> dict[str, set[str]]:
    """Return the groups that are shown: the strata of the held-out half, all of it, and separately the other half."""
    out = {name for name in names if held_out(name)}
    apart = {name for name in names if name in (*TELLING, *LUCKY)}
    by_kind = {kind: out & set(found) for kind, found in strata().items()}
    elsewhere = out - by_kind["information"] - apart
    return {**by_kind, "not information": elsewhere, "held out": out - apart, "development": set(names) - out - apart, "apart": apart}


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
    options.add_argument("--parallel", type=int, default=PARALLEL, help="attempts at a time")
    options.add_argument("--fresh", action="store_true", help="forget what lies in --work")
    args = options.parse_args()
    names = list(QUICK) if args.quick else chosen(args.share)
    names = [name for name in names if args.half == "all" or held_out(name) is (args.half == "held-out")]
    agents = tuple(("react,mcts" if args.quick and args.agents == DEFAULT else args.agents).split(","))
    seeds = DEVELOPMENT_SEEDS[:2] if args.quick else DEVELOPMENT_SEEDS if args.half == "development" else SEEDS
    work = args.work.with_name("miniwob_quick") if args.quick else args.work
    if args.fresh or args.quick:
        shutil.rmtree(work, ignore_errors=True)
    configs = {agent: settings(agent, QUICK_STEPS if args.quick else STEPS) for agent in agents}
    folder = folder_of(work, tasks_of(names, seeds), configs)
    noise, began = _common.Noise(), time.monotonic()
    results = by_agent(await attempt(folder, args.parallel, noise, builders(folder.plan.agents)))
    write_outputs(folder, REWARDS)
    kinds = {kind: found for kind, found in groups(names).items() if found}
    shown = show(results, kinds, "held out" if "held out" in kinds else "development", (5, 10, 20, STEPS))
    seconds = time.monotonic() - began
    found = {
        "agents": list(results),
        "seeds": seeds,
        "names": names,
        "groups": {kind: sorted(each) for kind, each in kinds.items()},
        "commits": commits(folder),
        **shown,
        "results": raw(results),
    }
    print(f"\n{sum(map(len, results.values()))} attempts in {seconds:.0f} s of this session: {folder.path / 'index.html'}")
    _common.finish(args, figures(shown, names), noise, _common.versions("exact-agent", "miniwob", "playwright"), found)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
