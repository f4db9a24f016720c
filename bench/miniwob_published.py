"""Measure the learned agent on MiniWoB++ as AgentLab's studies are set up, beside their published rows.

BrowserGym's 125 tasks, 5 seeds of each, at most 10 actions, no search. The learned agent is a specialised model of a few hundred thousand
parameters: other seeds of 59 of the tasks trained it. The published rows are language models that were not trained on them. Their figures
were not measured here, and prompts, observations and machines differ. Seeds 50000 to 50004: outside all ranges of
exact/learning/builtin/split.json, and used by no other bench.

    python bench/miniwob_published.py --json bench/results/miniwob_published.json    goes on from --work after an interruption
    python bench/miniwob_published.py --quick        compute every figure from the records, and attempt ten of them again
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _common
import msgspec
from _attempts import LEXICAL, attempt, folder_of, name_of, tasks_of
from _records import conclude, differing, read_records, write_records

from exact.benchmarks.miniwob.suite import BROWSERGYM
from exact.config import Config, load
from exact.evaluation.plan import AGENTS
from exact.evaluation.statistics import bootstrap, rate
from exact.evaluation.summary import grouped
from exact.evaluation.table import published_beside
from exact.learning.builtin.split import load_split

SEEDS, ACTIONS = range(50000, 50005), 10
AGENT_KINDS = ("lexical", "learned")
RECORDS, RESULT = (_common.ROOT / "bench" / "results" / f"miniwob_published.{end}" for end in ("jsonl.gz", "json"))


class Record(msgspec.Struct, frozen=True):
    """One attempt."""

    agent: str
    task: str
    score: float
    actions: int


def settings(name: str) -> Config:
    """Return the configuration of an agent."""
    sections: dict[str, Any] = {**AGENTS["react"], **LEXICAL, "browser": {"screenshots": False}, "limits": {"actions": ACTIONS}}
    if name == "learned":
        sections["policy"] = {"kind": "learned"}
    return load(None, [f"name={name}", *(f"{key}={json.dumps(value)}" for key, value in sections.items())])


async def attempted(agents: Sequence[str], ids: Sequence[str], work: Path, parallel: int, noise: _common.Noise) -> list[Record]:
    """Attempt tasks. An attempt without a score, which an infrastructure failed, ends the bench: start it again."""
    wanted = set(ids)
    tasks = [each for each in tasks_of(BROWSERGYM, SEEDS) if each.id in wanted]
    results = await attempt(folder_of(work, tasks, {name: settings(name) for name in agents}), parallel, noise)
    if lost := [each.task for each in results if each.score is None]:
        sys.exit(f"{len(lost)} attempts have no score, the first at {lost[0]}: run again")
    return [Record(each.agent, each.task, each.score, each.actions) for each in results if each.score is not None]


def show(records: Sequence[Record]) -> list[_common.Figure]:
    """Print success by part beside the published rows, and return the figures."""
    split = load_split()
    parts = {
        "all 125": set(BROWSERGYM),
        "trained on": {name.partition("/")[2] for name in split.training},
        "held out": {name.partition("/")[2] for name in split.held_out},
    }
    parts["apart"] = parts["all 125"] - parts["trained on"] - parts["held out"]
    rows, figures = list[list[str]](), list[_common.Figure]()
    for agent in AGENT_KINDS:
        cells = []
        for part, names in parts.items():
            scores = {each.task: each.score for each in records if each.agent == agent and name_of(each.task) in names}
            found = rate(grouped(scores))
            cells.append(str(found))
            figures.append(_common.Figure(f"{agent}_{part.replace(' ', '_')}", found.mean))
        rows.append([agent, *cells])
    scores_of = {agent: {each.task: each.score for each in records if each.agent == agent} for agent in AGENT_KINDS}
    gains = {task: score - scores_of["lexical"][task] for task, score in scores_of["learned"].items()}
    parted = [{task: gain for task, gain in gains.items() if name_of(task) in names} for names in parts.values()]
    rows.append(["learned - lexical, paired", *(str(bootstrap(grouped(each))) for each in parted)])
    rows += [[f"{each.agent}, {each.model} (published)", f"{each.success:.3f}", "", "", ""] for each in published_beside("miniwob", 125)]
    _common.table(["success", *parts], rows)
    return figures


async def quick(noise: _common.Noise, args: Any) -> int:
    """Recompute the figures from the records, and attempt ten recorded rows again."""
    records = read_records(RECORDS, Record)
    figures = show(records)
    wrong = differing(figures, RESULT)
    drawn, work = random.Random(len(records)).sample(records, 10), _common.ROOT / ".bench" / "miniwob_published_quick"
    shutil.rmtree(work, ignore_errors=True)
    for agent in AGENT_KINDS:
        of = {each.task: each.score for each in drawn if each.agent == agent}
        again = {each.task: each.score for each in await attempted([agent], [*of], work / agent, 2, noise)} if of else {}
        wrong += [f"{agent} {task}: {again[task]} instead of {score}" for task, score in of.items() if again[task] != score]
    code = conclude(wrong, len(drawn))
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), {})
    return code


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "miniwob_published")
    options.add_argument("--parallel", type=int, default=3)
    args, noise = options.parse_args(), _common.Noise()
    if args.quick:
        return await quick(noise, args)
    records = await attempted(AGENT_KINDS, [each.id for each in tasks_of(BROWSERGYM, SEEDS)], args.work, args.parallel, noise)
    figures = show(records)
    if args.json:
        write_records(RECORDS, records)
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), {"seeds": [*SEEDS], "actions": ACTIONS})
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
