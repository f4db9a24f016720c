"""Where does a search spend its budget, and what does it bring to spend it otherwise? Ablations on training tasks, at equal steps.

The plan was committed before the run: docs/results/when_search_helps.md. Rows are R-MCTS with the learned policy, 40 environment steps
and 15 actions; a name is a judge and, after `@`, what differs in the search. `oracle_0` is a perfect judge, which sees the rewards of
training tasks.

    python bench/search_ablations.py --minutes 30 --json bench/results/search_ablations.json    goes on from --work after an interruption
    python bench/search_ablations.py --quick     compute every figure from the records, and attempt five rows of greedy again
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import _common
import msgspec
from _attempts import attempt, folder_of
from _continuations import Continuations, NoisyOracle, RecordedValue
from _records import conclude, differing, read_records, write_records
from _when import counted, name_of
from _when_runs import BROWSER, OPTIONS, by_hash, settings
from learning import ACTIONS, Attempt, recorded

from exact.agents.agent import Agent, build_agent
from exact.agents.learned.agent import learned_policy
from exact.benchmarks.miniwob import MiniWob
from exact.config import Config
from exact.evaluation.folder import BenchFolder
from exact.evaluation.statistics import bootstrap, rate
from exact.learning.builtin.split import load_split
from exact.models.base import ChatModel
from exact.task import Task

SEED, TASKS = 10501, 35
RECORDS, RESULT = (_common.ROOT / "bench" / "results" / f"search_ablations.{end}" for end in ("jsonl.gz", "json"))
DIFFERENCES: Mapping[str, dict[str, Any]] = {
    "": {},
    "exhaust": {"revisit": "exhaust"},
    "mean": {"revisit": "exhaust", "backup": "mean"},
}
ROWS = ("greedy", *(f"{judge}{'@' if name else ''}{name}" for judge in ("learned", "oracle_0") for name in DIFFERENCES))


def row_settings(row: str) -> Config:
    """Return the configuration of a row."""
    judge, _, name = row.partition("@")
    config = settings(judge)
    return msgspec.structs.replace(config, name=row, search=msgspec.structs.replace(config.search, **DIFFERENCES[name]))


def oracle(row: str, labels: Continuations) -> Callable[[Config, Callable[[str], ChatModel]], Agent]:
    """Return what builds an agent with a perfect judge: the outcome that the policy alone reaches from a state."""

    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        judge = RecordedValue(row, NoisyOracle(0.0), labels, lambda _: None)
        return dataclasses.replace(build_agent(config, models), value=judge, episode_scores=None)

    return build


def tasks() -> list[Task]:
    """Return the tasks, refused unless they are for training."""
    split, ids = load_split(), [f"{name}?seed={SEED}" for name in by_hash(load_split().training)[:TASKS]]
    for id in ids:
        split.check_training(id)
    return [MiniWob().task(id) for id in ids]


async def run(
    work: Path, rows: Sequence[str], wanted: Sequence[Task], parallel: int, minutes: float, noise: _common.Noise
) -> list[Attempt]:
    """Attempt what is left, at most for so many minutes. Tasks begin in their order, with all rows."""
    async with MiniWob().environments(BROWSER) as environments:
        labels = Continuations(environments, learned_policy(OPTIONS), ACTIONS, work / "labels.jsonl")
        folder = folder_of(work / "attempts", wanted, {row: row_settings(row) for row in rows})
        try:
            async with asyncio.timeout(60 * minutes):
                await attempt(folder, parallel, noise, {row: oracle(row, labels) for row in rows if row.startswith("oracle")})
        except TimeoutError:
            print(f"\n{minutes:g} minutes are over: run it again to go on", file=sys.stderr)
    done = BenchFolder.open(work / "attempts").done()
    return [recorded(agent, result) for (agent, _), result in sorted(done.items())]


def show(records: Sequence[Attempt]) -> list[_common.Figure]:
    """Print the rows, and return the figures."""
    order = counted(records, ROWS, [task.id for task in tasks()])
    scores: dict[str, dict[str, float]] = {row: {} for row in ROWS}
    for each in records:
        if each.task in order and each.score is not None:
            scores[each.row][each.task] = each.score

    def gain(row: str, base: str) -> Any:
        return bootstrap({name_of(id): [score - scores[base][id]] for id, score in scores[row].items() if id in scores[base]})

    rows, figures = list[list[str]](), [_common.Figure("tasks", float(len(order)))]
    for row in ROWS:
        judge, _, name = row.partition("@")
        mine = [each for each in records if each.row == row and each.task in order]
        steps, actions = (sum(getattr(each, kind) for each in mine) / max(1, len(mine)) for kind in ("transitions", "actions"))
        apart = str(gain(row, judge)) if name else ""
        success = rate({name_of(id): [score] for id, score in scores[row].items()})
        rows.append([row, str(success), str(gain(row, "greedy")) if row != "greedy" else "", apart, f"{steps:.1f}", f"{actions:.1f}"])
        if name:
            figures.append(_common.Figure(f"{row.replace('@', '_')}_gain", gain(row, judge).mean))
    _common.table(["row", "success", "gain over greedy", "over the same judge", "steps", "actions"], rows)
    return figures


async def quick(noise: _common.Noise, args: Any) -> int:
    """Recompute the figures from the records, and attempt five recorded rows without a reward again."""
    records = read_records(RECORDS, Attempt)
    figures = show(records)
    wrong = differing(figures, RESULT)
    drawn = random.Random(len(records)).sample([each for each in records if each.row == "greedy"], 5)
    work = _common.ROOT / ".bench" / "search_ablations_quick"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    again = {each.task: each.score for each in await run(work, ["greedy"], [MiniWob().task(each.task) for each in drawn], 2, 5, noise)}
    wrong += [f"{each.task}: {again.get(each.task)} instead of {each.score}" for each in drawn if again.get(each.task) != each.score]
    code = conclude(wrong, len(drawn))
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), {})
    return code


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "search_ablations")
    options.add_argument("--parallel", type=int, default=6)
    options.add_argument("--minutes", type=float, default=30.0)
    args, noise = options.parse_args(), _common.Noise()
    if args.quick:
        return await quick(noise, args)
    args.work.mkdir(parents=True, exist_ok=True)
    records = await run(args.work, ROWS, tasks(), args.parallel, args.minutes, noise)
    figures = show(records)
    if args.json:
        write_records(RECORDS, records)
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), {"seed": SEED})
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
