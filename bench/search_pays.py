"""Measure whether search pays with a small instruct model: what a perfect judge would gain, by how often the model succeeds alone.

The plan, with tasks, seeds and the decision, was committed before any attempt: bench/plans/search_pays.md.

    python bench/search_pays.py --headroom qwen2.5-coder-1.5b     attempt what is not recorded (hours)
    python bench/search_pays.py --raised qwen2.5-coder-1.5b       the same with raised proposals
    python bench/search_pays.py --collect                         search for the successes that proposals are trained on (no model)
    python bench/search_pays.py --trained qwen2.5-coder-0.5b      train them if they are not, and the same with them
    python bench/search_pays.py --preferred qwen2.5-coder-0.5b    train these on preferences, and the same with them
    python bench/search_pays.py --again 4 --seed 1                repeat 4 random attempts of the records
    python bench/search_pays.py --quick                           compute the figures from the records
    python bench/search_pays.py --json bench/results/search_pays.json --plot docs/images/search_pays.svg

Needs `shells/setup.sh --instruct`, and `--train` for trained proposals.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import random
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import _common
import _llamacpp
import msgspec
from _attempts import attempt, folder_of, name_of, tasks_of
from _instruct import FOLDER
from _paired import Scores, gain, grouped, said, scores
from _pays_training import ADAPTERS, LEARNER, adapter, collect, lacking
from _plot import Point, Series, relation
from _records import conclude, differing, read_records, write_records

from exact.benchmarks.miniwob import MiniWob
from exact.config import Config, parse
from exact.evaluation.folder import Result
from exact.evaluation.plan import AGENTS
from exact.evaluation.statistics import rate
from exact.task import Task

RECORDS = _common.ROOT / "bench" / "results" / "search_pays.jsonl.gz"
RESULT = _common.ROOT / "bench" / "results" / "search_pays.json"
WORK = _common.ROOT / ".bench" / "search_pays"
CANDIDATES = (
    *("choose-list", "click-checkboxes", "click-checkboxes-transfer", "click-collapsible", "click-dialog-2", "click-link", "click-menu"),
    *("click-option", "click-tab", "click-tab-2-hard", "click-test-2", "copy-paste", "copy-paste-2", "email-inbox-delete"),
    *("email-inbox-important", "email-inbox-reply", "email-inbox-star-reply", "enter-password", "enter-text", "enter-text-2"),
    *("enter-text-dynamic", "enter-time", "find-word", "form-sequence-2", "login-user", "navigate-tree", "number-checkboxes"),
    *("order-food", "read-table-2", "sign-agreement", "simple-algebra", "simple-arithmetic", "social-media", "use-autocomplete"),
)
"""Training tasks of the learned agent's split that need no point, no drag and no clock."""
SELECTION, MEASURED = (10601, 10602, 10603), (10611, 10612)
"""Seeds that put a task into its stratum, and seeds of the headroom."""
STRATA = ("sometimes", "never", "always")
PARTS = {"headroom": "", "raised": " with raised proposals", "trained": " with trained proposals", "preferred": " with preferred proposals"}
"""What is measured of a stratum, and how tables call it."""
GOAL = 0.15
"""Least lower end of a stratum's gain for which a comparison is run."""


class Attempt(msgspec.Struct, frozen=True):
    """The record of one attempt."""

    row: str
    """Model, part and arm: `qwen2.5-coder-0.5b selection react`."""
    task: str
    score: float | None
    actions: int
    transitions: int
    calls: int
    tokens: int
    seconds: float


def ordered() -> list[str]:
    return sorted(CANDIDATES, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def settings(arm: str, base_url: str, *, raised: bool = False) -> Config:
    """Return the configuration of an arm: `react` or `oracle`. `raised`: proposals are the likeliest of all offered actions."""
    return parse(given(arm, base_url, raised=raised))


def given(arm: str, base_url: str, *, raised: bool) -> dict[str, Any]:
    """Return the configuration of an arm as a file writes it."""
    model = {
        "provider": "llamacpp", "model": "local", "base_url": base_url, "max_tokens": 128, "timeout": 1200.0,
        "temperature": 0.3 if arm == "react" else 0.8, "price": {"input": 0, "output": 0},
    }  # fmt: skip
    parts: dict[str, Any] = {
        "models": {"policy": model},
        "view": {"history": 3, "observation_tokens": 1500},
        "policy": {"kind": "llm", "samples": 1, "elements": "label", "grammar": "action", "thoughts": False},
        "search": {"algorithm": "react", "k": 1},
        "value": {"kind": "constant"},
        "reflection": {"kind": "none"},
        "limits": {"money": 0, "calls": 400, "actions": 6, "transitions": 400, "seconds": 7200},
        "browser": {"screenshots": False},
    }
    if arm == "oracle":
        parts["search"] = {**AGENTS["rmcts"]["search"], "k": 4, "iterations": 8, "depth": 4}
        parts["value"] = {"kind": "oracle"}
        parts["policy"]["samples"] = 4
    if raised:
        parts["policy"] |= {"form": "likeliest", "elements": "id"}
        parts["limits"]["calls"] = 4000  # of one token each
    return parts


def part(model: str, name: str, tasks: Sequence[str], seeds: Sequence[int], arms: Sequence[str], parallel: int) -> None:
    """Attempt one part of the plan, task by task, and keep its records. The model is being served."""
    for task, arm in itertools.product(tasks, arms):
        row, wanted = f"{model} {name} {arm}", tasks_of([task], seeds)
        if not {each.id for each in wanted} <= {each.task for each in records() if each.row == row}:
            results = attempted(row, wanted, parallel, WORK / model / name / task / arm)
            write_records(RECORDS, [*records(), *(recorded(row, each) for each in results)])


def attempted(row: str, tasks: Sequence[Task], parallel: int, work: Path) -> list[Result]:
    """Attempt tasks as a row does, in a folder that goes on if it was stopped and is removed at the end."""
    model, name, arm = row.split()
    config = settings(arm, f"http://127.0.0.1:{port_of(model)}/v1", raised=name != "headroom")
    results = asyncio.run(attempt(folder_of(work, tasks, {arm: config}), parallel, _common.Noise()))
    shutil.rmtree(work)
    return results


def port_of(model: str) -> int:
    """Return the port of a model's server. It is in the configuration, which must be equal if a row goes on."""
    return 8471 + len(model) % 7


@contextmanager
def serving(model: str, name: str, threads: int) -> Iterator[None]:
    """Serve a model as a part needs it: with its adapter, which is trained if there is none, or without."""
    weights = FOLDER / f"{model}.gguf"
    trained = adapter(name, WORK / model / name / "training", weights) if name in ADAPTERS else None
    with _llamacpp.serving(slots=4, context=6144, port=port_of(model), threads=threads, weights=weights, adapter=trained):
        yield


def recorded(row: str, result: Result) -> Attempt:
    return Attempt(
        row, result.task, result.score, result.actions, result.transitions, result.calls, result.tokens, round(result.seconds, 1)
    )


def records() -> list[Attempt]:
    return read_records(RECORDS, Attempt) if RECORDS.exists() else []


def strata(model: str, kept: Sequence[Attempt]) -> Mapping[str, list[str]]:
    """Return the tasks whose selection has ended, by stratum, in order."""
    by_task: dict[str, list[float]] = {}
    for each in kept:
        if each.row == f"{model} selection react" and each.score is not None:
            by_task.setdefault(name_of(each.task), []).append(float(each.score == 1))
    found: dict[str, list[str]] = {name: [] for name in STRATA}
    for name in ordered():
        if len(solved := by_task.get(name, [])) == len(SELECTION):
            found["never" if not any(solved) else "always" if all(solved) else "sometimes"].append(name)
    return found


def headroom(model: str, parallel: int, threads: int, tasks: int, name: str) -> None:
    """Attempt one of `PARTS` of a model, of at most so many tasks of a stratum; before it, what puts tasks into strata."""
    with serving(model, name, threads):
        if name not in ADAPTERS:
            part(model, "selection", ordered(), SELECTION, ("react",), parallel)
        for stratum in ("sometimes", "never"):
            measured = strata(model, records())[stratum][:tasks]
            for task in measured:
                if most(model, name, measured, records()) >= GOAL:
                    part(model, name, [task], MEASURED, ("react", "oracle"), parallel)


def again(count: int, seed: int, parallel: int, threads: int) -> _common.Figure:
    """Repeat random attempts of the records. Return the share whose score is the same."""
    chosen, same, suite = random.Random(seed).sample([each for each in records() if each.score is not None], count), 0, MiniWob()
    for row in sorted({each.row for each in chosen}):
        model, name, _ = row.split()
        before = {each.task: each.score for each in chosen if each.row == row}
        shutil.rmtree(work := WORK / "again", ignore_errors=True)
        with serving(model, name, threads):
            results = attempted(row, [suite.task(id) for id in before], parallel, work)
        same += sum(each.score == before[each.task] for each in results)
    return _common.Figure("agrees_again", same / count)


def most(model: str, name: str, tasks: Sequence[str], kept: Sequence[Attempt]) -> float:
    """Return the highest lower end of the oracle's gain on some tasks that is still possible: what has no score may gain 1."""
    solved, (react, oracle) = solutions(kept), (f"{model} {name} {arm}" for arm in ("react", "oracle"))
    ids = [each.id for each in tasks_of(tasks, MEASURED)]
    found = {row: {id: solved.get(row, {}).get(id, otherwise) for id in ids} for row, otherwise in ((react, 0.0), (oracle, 1.0))}
    return gain(found, oracle, react, [id.partition("?")[0] for id in ids]).low


def solutions(kept: Sequence[Attempt]) -> Scores:
    """Return 1 for each attempt that solved its task and 0 for each other one that ended, by row and id."""
    return scores(kept, lambda each: None if each.score is None else float(each.score == 1))


def show(kept: Sequence[Attempt]) -> tuple[dict[str, Any], list[_common.Figure]]:
    """Print the strata of each model, and return details and figures."""
    solved = solutions(kept)
    figures = [_common.Figure("attempts", len(kept))]
    details, rows = dict[str, Any](), list[list[str]]()
    for model in sorted({each.row.partition(" ")[0] for each in kept}):
        for (stratum, names), (name, called) in itertools.product(strata(model, kept).items(), PARTS.items()):
            ids = [f"miniwob/{each}" for each in names]
            react, oracle = (f"{model} {name} {arm}" for arm in ("react", "oracle"))
            if name != "headroom" and not solved.get(react):
                continue
            gained = gain(solved, oracle, react, ids)
            cells = [said(rate(grouped(solved.get(row, {}), ids))) for row in (react, oracle)]
            tokens = [_mean(kept, row, names) for row in (react, oracle)]
            rows.append([f"{model}, {stratum}{called}", str(len(names)), str(gained.tasks), *cells, said(gained), *tokens])
            details[f"{model} {stratum}{called}"] = {
                "tasks": names, "measured": gained.tasks, "gain": [gained.mean, gained.low, gained.high],
            }  # fmt: skip
            if gained.tasks > 1:
                size = model.rpartition("-")[2].replace(".", "_")
                figures.append(
                    _common.Figure(f"oracle_gain_low_{size}_{stratum}" + f"_{name}" * (name != "headroom"), gained.low, goal=GOAL)
                )
    header = ["model, stratum", "tasks", "attempts", "ReAct", "oracle search", "gain", "tokens of ReAct", "of the search"]
    _common.table(header, rows)
    return details, figures


def learnt(kept: Sequence[Attempt]) -> list[_common.Figure]:
    """Print what trainings change on the episodes of raised proposals. Return the gain of the model alone over its search before."""
    solved, figures, rows = solutions(kept), list[_common.Figure](), list[list[str]]()
    for name, stratum in itertools.product(ADAPTERS, ("sometimes", "never")):
        ids = [f"miniwob/{each}" for each in strata(LEARNER, kept)[stratum]]
        alone, searched, before, base = (f"{LEARNER} {part} {arm}" for part in (name, "raised") for arm in ("react", "oracle"))
        gained = [gain(solved, row, of, ids) for row, of in ((alone, before), (searched, base), (alone, base))]
        if gained[0].tasks > 1:
            rows.append([f"{stratum}{PARTS[name]}", str(gained[0].tasks), *map(said, gained)])
            figures.append(_common.Figure(f"alone_over_search_before_0_5b_{stratum}_{name}", gained[2].mean))
    if rows:
        _common.table(["stratum of the 0.5B", "tasks", "ReAct less before", "search less before", "ReAct less search before"], rows)
    return figures


def plotted(kept: Sequence[Attempt]) -> str:
    """Return the gain of the oracle in each stratum by ReAct's success there, as SVG. Strata of fewer than two tasks are left out."""
    solved, points = solutions(kept), dict[str, list[Point]]()
    for model, (name, called) in itertools.product(sorted({each.row.partition(" ")[0] for each in kept}), PARTS.items()):
        react, oracle = (f"{model} {name} {arm}" for arm in ("react", "oracle"))
        for stratum, names in strata(model, kept).items():
            ids = [f"miniwob/{each}" for each in names]
            gained = gain(solved, oracle, react, ids)
            if gained.tasks > 1:
                at = rate(grouped({id: solved[react][id] for id in solved[react] if id in solved[oracle]}, ids)).mean
                size = model.rpartition("-")[2].upper()
                points.setdefault(f"{size}{called or ', sampled'}", []).append(
                    Point(at, gained.mean, gained.low, gained.high, hollow=stratum == "never")
                )
    series = [Series(name.replace(" with", ","), some, joined=False) for name, some in points.items()]
    title = "What a perfect judge gains over ReAct, by how often ReAct succeeds"
    xs, ys = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], [-0.2, 0.0, 0.2, 0.4, 0.6, 0.8]
    return relation(series, x="success of ReAct", y="gain, with 95 percent interval", title=title, xs=xs, ys=ys)


def _mean(kept: Sequence[Attempt], row: str, names: Sequence[str]) -> str:
    some = [each.tokens for each in kept if each.row == row and name_of(each.task) in names]
    return f"{sum(some) / len(some):,.0f}" if some else ""


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--headroom", metavar="MODEL", help="model of .bench/instruct to attempt the plan's tasks with")
    parser.add_argument("--raised", metavar="MODEL", help="the same with the likeliest of all offered actions as proposals")
    parser.add_argument("--trained", choices=(LEARNER,), help="the same with proposals of a model that was trained on searches")
    parser.add_argument("--preferred", choices=(LEARNER,), help="the same with that model after a training on preferences")
    parser.add_argument("--collect", action="store_true", help="search for what proposals are trained on")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", type=int, metavar="N", help="repeat so many random attempts of the records")
    parser.add_argument("--seed", type=int, default=0, help="of what is repeated")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="file to draw the gains in")
    parser.add_argument("--tasks", type=int, default=10, help="most tasks of a stratum")
    return parser.parse_args()


def main() -> int:
    options, noise = parsed(), _common.Noise()
    if options.collect:
        collect(WORK / "collected", given("react", "http://127.0.0.1:1/v1", raised=True))
        return 0
    wanted = {name: model for name in PARTS if (model := getattr(options, name))}
    repeated = {tuple(each.row.split()[:2]) for each in records() if options.again}
    models = {*wanted.values(), *(model for model, _ in repeated)}
    if models and not (_llamacpp.available() and all((FOLDER / f"{each}.gguf").exists() for each in models)):
        _common.lacks("llama.cpp or the instruct models are not installed: run shells/setup.sh --instruct")
    if needed := next(filter(None, map(lacking, {*wanted, *(name for _, name in repeated)})), ""):
        _common.lacks(needed)
    for name, model in wanted.items():
        headroom(model, options.parallel, options.threads, options.tasks, name)
    if options.again:
        figure = again(options.again, options.seed, options.parallel, options.threads)
        _common.finish(options, [figure], noise, _common.versions("exact-agent"), {})
        return 0
    details, figures = show(records())
    figures += learnt(records())
    wrong = differing(figures, RESULT) if options.quick and RESULT.exists() else []
    conclude(wrong, len(records()))
    if options.plot:
        options.plot.write_text(plotted(records()), "utf-8")
    _common.finish(options, figures, noise, _common.versions("exact-agent"), details)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
