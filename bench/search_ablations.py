"""Where does a search spend its budget, and what does it bring to spend it otherwise? Ablations on training tasks, at equal steps.

The plan was committed before the run: bench/plans/when_search_helps.md. Rows are R-MCTS with the learned policy, 40 environment steps
and 15 actions; a name is a judge and, after `@`, what differs in the search. `oracle_0` is a perfect judge, which sees the rewards of
training tasks.

    python bench/search_ablations.py --part budget --json bench/results/search_ablations.json    goes on after an interruption
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
from typing import Any, NamedTuple

import _common
import msgspec
from _attempts import attempt, folder_of
from _continuations import Continuations, NoisyOracle, RecordedValue
from _novelty import novel
from _paired import Attempt
from _records import conclude, differing, read_records, write_records
from _when import counted, name_of
from _when_runs import BROWSER, by_hash, settings
from learning import ACTIONS, recorded

from exact.agents.agent import Agent, build_agent
from exact.agents.learned.agent import learned_policy
from exact.benchmarks.miniwob import MiniWob
from exact.config import Config
from exact.evaluation.folder import BenchFolder
from exact.evaluation.statistics import bootstrap, rate
from exact.learning.builtin.split import load_split
from exact.models.base import ChatModel
from exact.task import Task

TASKS = 35
RECORDS, RESULT = (_common.ROOT / "bench" / "results" / f"search_ablations.{end}" for end in ("jsonl.gz", "json"))


Build = Callable[[Config, Callable[[str], ChatModel]], Agent]


class Part(NamedTuple):
    """Ablations that were run together."""

    seed: int
    """Training seed that nothing else has used."""
    judges: tuple[str, ...]
    differences: Mapping[str, Mapping[str, Any]]
    """Sections of the configuration, and what is changed in them, by the name after `@`. A name means the same in every part."""
    suffix: str = ""
    """What the names of its figures end with."""

    @property
    def rows(self) -> tuple[str, ...]:
        return ("greedy", *(f"{judge}{'@' if name else ''}{name}" for judge in self.judges for name in ("", *self.differences)))


MEASURED: Mapping[str, str] = {"weights": str(RESULT.with_suffix(".npz"))}
"""Options of the learned agent: the weights that were measured, those of the third cycle of bench/learning.py."""
PARTS: Mapping[str, Part] = {
    "ends": Part(
        10501,
        ("learned", "oracle_0"),
        {"exhaust": {"search": {"revisit": "exhaust"}}, "mean": {"search": {"revisit": "exhaust", "backup": "mean"}}},
    ),
    "budget": Part(
        10502,
        ("learned",),
        {
            "think": {"search": {"think": 0.9}},
            "enough": {"search": {"enough": 0.9}},
            "early": {"search": {"early": True}},
            "sharp": {"search": {"temperature": 0.5}},
            "flat": {"search": {"temperature": 2.0}},
            "widening": {"search": {"widening": 1.0}},
            "novelty": {"search": {"widening": 1.0}},
            "snapshots": {"browser": {"page_snapshots": True}},
        },
    ),
    "again": Part(
        10503,
        ("lexical", "learned"),
        {"novelty": {"search": {"widening": 1.0}}, "snapshots": {"browser": {"page_snapshots": True}}},
        "_again",
    ),
}


def part_of(row: str) -> str:
    """Return the part with a row's difference; of a row without one, the first part."""
    return next(name for name, part in PARTS.items() if row in part.rows)


def row_settings(row: str) -> Config:
    """Return the configuration of a row."""
    judge, _, name = row.partition("@")
    config = settings(judge)
    changed = PARTS[part_of(row)].differences[name] if name else {}
    for section in ("policy", "value"):
        if (part := getattr(config, section)).kind == "learned":
            changed = {**changed, section: {"options": {**part.options, **MEASURED}}}
    sections = {section: msgspec.structs.replace(getattr(config, section), **change) for section, change in changed.items()}
    return msgspec.structs.replace(config, name=row, **sections)


def oracle(row: str, labels: Continuations) -> Build:
    """Return what builds an agent with a perfect judge: the outcome that the policy alone reaches from a state."""

    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        judge = RecordedValue(row, NoisyOracle(0.0), labels, lambda _: None)
        return dataclasses.replace(build_agent(config, models), value=judge, episode_scores=None)

    return build


def builders(rows: Sequence[str], labels: Continuations) -> dict[str, Build]:
    """Return what builds the agents of those rows that a configuration does not describe."""
    return {row: oracle(row, labels) for row in rows if row.startswith("oracle")} | {row: novel for row in rows if row.endswith("@novelty")}


def tasks(seed: int) -> list[Task]:
    """Return the tasks, refused unless they are for training."""
    split, ids = load_split(), [f"{name}?seed={seed}" for name in by_hash(load_split().training)[:TASKS]]
    for id in ids:
        split.check_training(id)
    return [MiniWob().task(id) for id in ids]


async def run(
    work: Path, rows: Sequence[str], wanted: Sequence[Task], parallel: int, minutes: float, noise: _common.Noise
) -> list[Attempt]:
    """Attempt what is left, at most for so many minutes. Tasks begin in their order, with all rows."""
    async with MiniWob().environments(BROWSER) as environments:
        labels = Continuations(environments, learned_policy(MEASURED), ACTIONS, work / "labels.jsonl")
        folder = folder_of(work / "attempts", wanted, {row: row_settings(row) for row in rows})
        try:
            async with asyncio.timeout(60 * minutes):
                await attempt(folder, parallel, noise, builders(rows, labels))
        except TimeoutError:
            print(f"\n{minutes:g} minutes are over: run it again to go on", file=sys.stderr)
    done = BenchFolder.open(work / "attempts").done()
    return [recorded(agent, result) for (agent, _), result in sorted(done.items())]


def show(records: Sequence[Attempt]) -> list[_common.Figure]:
    """Print the rows of each part, and return the figures."""
    figures = list[_common.Figure]()
    for name, part in PARTS.items():
        print(f"\n{name}: seed {part.seed}")
        figures += show_part(part, [each for each in records if each.task.endswith(f"seed={part.seed}")])
    return figures


def show_part(part: Part, records: Sequence[Attempt]) -> list[_common.Figure]:
    order = counted(records, part.rows, [task.id for task in tasks(part.seed)])
    scores: dict[str, dict[str, float]] = {row: {} for row in part.rows}
    for each in records:
        if each.task in order and each.score is not None:
            scores[each.row][each.task] = each.score

    def gain(row: str, base: str) -> Any:
        return bootstrap({name_of(id): [score - scores[base][id]] for id, score in scores[row].items() if id in scores[base]})

    rows, figures = list[list[str]](), [_common.Figure(f"tasks_{part.seed}", float(len(order)))]
    for row in part.rows:
        judge, _, name = row.partition("@")
        mine = [each for each in records if each.row == row and each.task in order]
        steps, actions = (sum(getattr(each, kind) for each in mine) / max(1, len(mine)) for kind in ("transitions", "actions"))
        apart = str(gain(row, judge)) if name else ""
        success = rate({name_of(id): [score] for id, score in scores[row].items()})
        rows.append([row, str(success), str(gain(row, "greedy")) if row != "greedy" else "", apart, f"{steps:.1f}", f"{actions:.1f}"])
        if name:
            figures.append(_common.Figure(f"{row.replace('@', '_')}_gain{part.suffix}", gain(row, judge).mean))
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
    options.add_argument("--part", choices=tuple(PARTS), default="ends", help="what is attempted; the records of the others are kept")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "search_ablations")
    options.add_argument("--parallel", type=int, default=6)
    options.add_argument("--minutes", type=float, default=30.0)
    args, noise = options.parse_args(), _common.Noise()
    if args.quick:
        return await quick(noise, args)
    if args.part == "budget":
        sys.exit("the part budget was measured with search.early, which is gone: run it at commit acdc23e4")
    part, work = PARTS[args.part], args.work / args.part
    work.mkdir(parents=True, exist_ok=True)
    made = await run(work, part.rows, tasks(part.seed), args.parallel, args.minutes, noise)
    kept = [each for each in read_records(RECORDS, Attempt) if not each.task.endswith(f"seed={part.seed}")]
    figures = show([*kept, *made])
    if args.json:
        write_records(RECORDS, [*kept, *made])
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), {})
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
