"""How many episodes does an instruct model solve alone, by ReAct, with the prompts of release 0.1 and with those of now?

Forty episodes are those of the first look: 20 tasks of MiniWoB++, seeds 1 and 2. Forty others are of tasks that nobody had looked at with
such a model. The plan was committed before any attempt: bench/plans/roles.md.

    python bench/react.py --record qwen2.5-coder-1.5b     attempt what is not recorded (an hour)
    python bench/react.py --again 4 --seed 1              repeat 4 random attempts of the records
    python bench/react.py --quick                         compute the figures from the records

  react_*               share of the known episodes that are solved with the prompts of now
  react_*_before        the same with those of release 0.1
  react_*_gain_low      lower end of the difference, over tasks
  react_*_other         share of the other episodes that are solved with the prompts of now; `_before` and `_gain_low` as above

Needs `shells/setup.sh --instruct`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import random
import shutil
import sys
from collections.abc import Sequence

import _common
import _llamacpp
from _attempts import attempt, folder_of, name_of, tasks_of
from _instruct import FOLDER
from _paired import gain, grouped, said
from _records import conclude, differing, read_records, write_records
from _role_states import TASKS
from search_pays import Attempt, given, recorded, solutions

from exact.benchmarks.miniwob import MiniWob
from exact.config import parse
from exact.evaluation.statistics import rate
from exact.task import Task

RECORDS, RESULT = (_common.ROOT / "bench" / "results" / f"react.{end}" for end in ("jsonl.gz", "json"))
WORK = _common.ROOT / ".bench" / "react"
SEEDS = (1, 2)
CANDIDATES = (
    *("book-flight", "choose-date", "choose-date-medium", "choose-date-nodelay", "click-button-sequence", "click-checkboxes-large"),
    *("click-checkboxes-soft", "click-collapsible-2", "click-scroll-list", "click-tab-2-medium", "daily-calendar"),
    *("email-inbox-forward", "email-inbox-forward-nl", "email-inbox-noscroll", "enter-date", "focus-text-2", "form-sequence-3"),
    *("login-user-popup", "multi-layouts", "multi-orderings", "odd-or-even", "phone-book", "read-table", "social-media-some"),
    *("text-transform", "tic-tac-toe", "unicode-test", "use-autocomplete-nodelay"),
)
"""Held-out tasks of the learned agent's split that need no point, no drag and no clock, and that no bench asked an instruct model about."""
OTHERS = tuple(sorted(CANDIDATES, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:20])
SETS = {"known": TASKS, "other": OTHERS}
PROMPTS = {"before": "v0.1", "now": ""}
"""What `prompts` of the configuration is in each arm."""
GOALS = {"0.5b": 0.4, "1.5b": 0.65}
PORT = 8491
"""Port of the model's server. It is in the configuration, which must be equal if attempts go on."""


def records() -> list[Attempt]:
    return read_records(RECORDS, Attempt) if RECORDS.exists() else []


def attempted(tasks: Sequence[Task], arm: str, row: str) -> list[Attempt]:
    """Attempt tasks with the prompts of an arm, in a folder that goes on if it was stopped and is removed at the end."""
    config = parse(given("react", f"http://127.0.0.1:{PORT}/v1", raised=False) | {"prompts": PROMPTS[arm]})
    work = WORK / row.replace(" ", "/") / name_of(tasks[0].id)
    results = asyncio.run(attempt(folder_of(work, tasks, {arm: config}), 2, _common.Noise()))
    shutil.rmtree(work)
    return [recorded(row, each) for each in results]


def record(model: str, threads: int) -> None:
    """Attempt what is not recorded, task by task with both prompts. Attempts are kept after each task."""
    with _llamacpp.serving(slots=4, context=6144, port=PORT, threads=threads, weights=FOLDER / f"{model}.gguf"):
        for (name, tasks), arm in itertools.product(SETS.items(), PROMPTS):
            row = f"{model} {name} {arm}"
            done = {each.task for each in records() if each.row == row}
            for task in tasks:
                if left := [each for each in tasks_of([task], SEEDS) if each.id not in done]:
                    write_records(RECORDS, [*records(), *attempted(left, arm, row)])


def again(count: int, seed: int, threads: int) -> _common.Figure:
    """Repeat random attempts of the records. Return the share that is solved as before, or not solved as before."""
    chosen, same, suite = random.Random(seed).sample([each for each in records() if each.score is not None], count), 0, MiniWob()
    for model in sorted({each.row.split()[0] for each in chosen}):
        with _llamacpp.serving(slots=4, context=6144, port=PORT, threads=threads, weights=FOLDER / f"{model}.gguf"):
            for each in (each for each in chosen if each.row.startswith(f"{model} ")):
                [fresh] = attempted([suite.task(each.task)], each.row.split()[2], f"again {each.row}")
                same += (fresh.score == 1) == (each.score == 1)
    return _common.Figure("agrees_again", same / count)


def show(kept: Sequence[Attempt]) -> list[_common.Figure]:
    """Print a row for each model and set of episodes, and return the figures."""
    solved, figures, rows = solutions(kept), [_common.Figure("attempts", len(kept))], list[list[str]]()
    for model, (name, tasks) in itertools.product(sorted({each.row.split()[0] for each in kept}), SETS.items()):
        before, now = (f"{model} {name} {arm}" for arm in PROMPTS)
        if not (solved.get(before) and solved.get(now)):
            continue
        size, ids = model.rpartition("-")[2], [f"miniwob/{each}" for each in tasks]
        gained = gain(solved, now, before, ids)
        shares = [rate(grouped(solved[row], ids)) for row in (before, now)]
        tokens = [f"{sum(some) / len(some):,.0f}" for row in (before, now) if (some := [each.tokens for each in kept if each.row == row])]
        rows.append([f"{model}, {name}", f"{len(solved[before])}, {len(solved[now])}", *map(said, shares), said(gained), *tokens])
        figure = f"react_{size.replace('.', '_')}" + "_other" * (name == "other")
        figures += [
            _common.Figure(figure, shares[1].mean, goal=GOALS.get(size) if name == "known" else None),
            _common.Figure(f"{figure}_before", shares[0].mean),
            _common.Figure(f"{figure}_gain_low", gained.low),
        ]
    _common.table(["model, episodes", "ended", "prompts of 0.1", "of now", "gain", "tokens with those of 0.1", "of now"], rows)
    return figures


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--record", nargs="+", metavar="MODEL", default=(), help="models of .bench/instruct, such as qwen2.5-coder-1.5b")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", type=int, metavar="N", help="repeat so many random attempts of the records")
    parser.add_argument("--seed", type=int, default=0, help="of what is repeated")
    return parser.parse_args()


def main() -> int:
    options, noise = parsed(), _common.Noise()
    models = {*options.record, *(each.row.split()[0] for each in records() if options.again)}
    if models and not (_llamacpp.available() and all((FOLDER / f"{each}.gguf").exists() for each in models)):
        _common.lacks("llama.cpp or the instruct models are not installed: run shells/setup.sh --instruct")
    for model in options.record:
        record(model, options.threads)
    if options.again:
        figure = again(options.again, options.seed, options.threads)
        _common.finish(options, [figure], noise, _common.versions("exact-agent"), {})
        return 0
    figures = show(records())
    wrong = differing(figures, RESULT) if options.quick and RESULT.exists() else []
    conclude(wrong, len(records()))
    _common.finish(options, figures, noise, _common.versions("exact-agent"), {})
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
