"""Measure whether what the learned agent learned on MiniWoB++ transfers to Trac, Wagtail and MoinMoin.

For a task that is set from outside, the learned policy proposes what the lexical agent proposes. Here its model is asked all the same:
before training (the lexical scores over wider candidates) and after each round, without and with a search, beside the lexical agent and
the imitation of its wins. Nothing was trained on these applications. The plan was committed before any run: bench/plans/learning.md.
Trac and Wagtail run in the sandbox; the wiki runs on this machine, in the virtual environment that bench/third_party.py names.

    python bench/learning_transfer.py --json bench/results/learning_transfer.json     goes on from --work
    python bench/learning_transfer.py --rows imitation                                some of the rows
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import _common
import msgspec
import third_party
from learning import weights_of
from sites import ACTIONS, shared

from exact.action import ActionSpace
from exact.agents.agent import Agent, build_agent
from exact.agents.base import Policy
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.builtin.value import LexicalValue
from exact.agents.learned.agent import LearnedAgent, LearnedPolicy
from exact.agents.learned.network import load
from exact.benchmarks import registry
from exact.benchmarks.open import open_environments
from exact.benchmarks.own.files import read
from exact.config import Config, parse
from exact.context import Context, Proposal
from exact.environments.base import EnvironmentFactory
from exact.evaluation.plan import AGENTS
from exact.evaluation.statistics import bootstrap, rate
from exact.learning.builtin.split import load_split
from exact.models.base import ChatModel
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

WEIGHTS: Mapping[str, str] = {
    "untrained": "round-0", "round_1": "round-1", "round_2": "round-2", "learned": "round-3", "imitation": "imitation",
    "rmcts_untrained": "round-0", "rmcts_learned": "round-3",
}  # fmt: skip
"""Rows that ask a model, and the weights of each, as bench/learning.py names them."""
ROWS = ("lexical", *WEIGHTS)
STEPS = 40
"""Environment steps of a search, replays included."""
PAIRS = (
    *((row, "untrained") for row in ("round_1", "round_2", "learned", "imitation", "rmcts_untrained")),
    ("rmcts_learned", "learned"),
    ("learned", "lexical"),
    ("untrained", "lexical"),
)
PARTS = ("trac", "wagtail", "moin")
COSTS = ("actions", "transitions")
WORK = _common.ROOT / ".bench" / "learning_transfer"


class AskedAnyway:
    """The learned policy, whose model is asked for tasks that are set from outside too."""

    def __init__(self, weights: Path) -> None:
        self._policy = LearnedPolicy(LearnedAgent(load(str(weights))))

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        return await self._policy.rank(context, actions, k)


def builder(row: str) -> Callable[[Config, Callable[[str], ChatModel]], Agent]:
    policy: Policy = LexicalPolicy() if row == "lexical" else AskedAnyway(weights_of(WEIGHTS[row]))
    return lambda config, models: Agent(policy=policy, value=LexicalValue(), reflector=build_agent(config, models).reflector)


def settings(row: str, sandbox: str) -> Config:
    browser = {"screenshots": False, "sandbox": sandbox, "settle_seconds": 10.0}
    searches = row.startswith("rmcts")
    base = AGENTS["rmcts" if searches else "react"]
    search = {**base["search"], "iterations": 96} if searches else base["search"]
    reflection = {**base["reflection"], "exclude_same_task": True} if searches else base["reflection"]
    limits = {"actions": ACTIONS, **({"transitions": STEPS} if searches else {})}
    return parse({"name": row, "search": search, "reflection": reflection, "limits": limits, "browser": browser})


async def attempted(row: str, part: str, tasks: Sequence[Task], config: Config, opened: Any, work: Path) -> list[ResultLine]:
    """Attempt the tasks of an application with one row, those that have an end already excepted."""
    folder = work / f"{row}-{part}"
    if not (folder / "run.json").exists():
        create(folder, tuple(tasks), config)
    run, config = reopen(folder)
    done = {line.task for line in run.results() if line.status != "failed"}
    async with Runner(folder=run, config=config, open_environments=opened, build_agent=builder(row)).session() as once:
        for task in run.manifest.tasks:
            if task.id not in done:
                line = await once(task)
                run.add_result(line)
                print(f"{row} {line.task}: {line.score}", file=sys.stderr)
    return list({line.task: line for line in run.results()}.values())


async def on_sites(row: str, part: str, work: Path) -> list[ResultLine]:
    config = settings(row, "required")
    tasks = registry.expand([id for id in load_split().transfer if id.startswith(f"{part}/")])
    async with shared(config.browser) as opened:
        return await attempted(row, part, tasks, config, opened, work)


async def on_wiki(row: str, work: Path) -> list[ResultLine]:
    """Attempt the tasks of the wiki, which is new for each row, or read what was attempted."""
    kept = work / f"{row}-moin.jsonl"
    if kept.exists():
        return [msgspec.json.decode(line, type=ResultLine) for line in kept.read_bytes().splitlines()]
    port, config = third_party.free_port(), settings(row, "never")

    @asynccontextmanager
    async def opened(task: Task) -> AsyncIterator[EnvironmentFactory]:
        async with open_environments(task, config, benchmark=False) as environments:
            yield environments

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "wiki"
        with third_party.made(folder), third_party.server(third_party.MOIN, folder, port):
            tasks = read(third_party.site_files(third_party.MOIN, folder / "site", port, "outside"))
            lines = await attempted(row, "moin", tasks, config, opened, folder)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return lines


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=WORK)
    options.add_argument("--parts", default=",".join(PARTS))
    options.add_argument("--rows", default=",".join(ROWS), help="by comma")
    args = options.parse_args()
    if (args.quick or "moin" in args.parts) and not third_party.MOIN.interpreter().exists():
        _common.lacks(f"MoinMoin is not installed: there is no {third_party.MOIN.interpreter()}: see bench/third_party.py --help")
    os.environ["MOIN_PASSWORD"] = third_party.PASSWORD
    noise = _common.Noise()
    noise.probe()
    parts = ["moin"] if args.quick else args.parts.split(",")
    work = _common.ROOT / ".bench" / "learning_transfer_quick" if args.quick else args.work
    if args.quick:
        shutil.rmtree(work, ignore_errors=True)
    found = {row: asyncio.run(measure(row, parts, work)) for row in (["learned"] if args.quick else args.rows.split(","))}
    noise.probe()
    scores = {row: {line.task.partition("?")[0]: line.score for line in lines if line.score is not None} for row, lines in found.items()}
    of = {part: lambda task, part=part: task.startswith(part) for part in parts} | {"all": lambda task: True}
    success = {row: {part: rate({t: [s] for t, s in each.items() if keep(t)}) for part, keep in of.items()} for row, each in scores.items()}
    cost = {row: {kind: statistics.fmean(getattr(line, kind) for line in lines) for kind in COSTS} for row, lines in found.items()}
    unscored = {row: sum(line.score is None for line in lines) for row, lines in found.items()}
    _common.table(["success", *of, *COSTS, "unscored"], [
        [row, *map(str, each.values()), *(f"{x:.1f}" for x in cost[row].values()), str(unscored[row])] for row, each in success.items()
    ])  # fmt: skip
    gains = {
        f"{a} - {b}": bootstrap({t: [scores[a][t] - scores[b][t]] for t in scores[a] if t in scores[b]})
        for a, b in PAIRS if a in scores and b in scores
    }  # fmt: skip
    print()
    _common.table(["gain", "all"], [[pair, str(each)] for pair, each in gains.items()])
    figures = [_common.Figure(f"transfer_{row}", each["all"].mean) for row, each in success.items()]
    if "learned - untrained" in gains:
        figures.append(_common.Figure("gain_transfer_low", gains["learned - untrained"].low))
    details = {"success": success, "gain": gains, "cost": cost, "scores": scores}
    _common.finish(args, figures, noise, _common.versions("exact-agent", "playwright"), details)
    return 0


async def measure(row: str, parts: Sequence[str], work: Path) -> list[ResultLine]:
    lines = list[ResultLine]()
    for part in parts:
        lines += await (on_wiki(row, work) if part == "moin" else on_sites(row, part, work))
    return lines


if __name__ == "__main__":
    sys.exit(main())
