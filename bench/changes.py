"""Does a model that is shown changes answer as it does when it is shown whole states? SmolLM2-135M, trained on both, is asked in both ways.

The built-in agent solves eight tasks of MiniWoB++ that take several steps. `exact export imitation` writes its conversations twice: with
whole states, and with `policy.changes`. `exact train sft` trains one LoRA adapter on both. On other seeds, the model is asked at each state
after the first one, greedily, in both ways: the conversation so far is the recorded one. The figure is the share of states at which both
answers name the same action. States whose two prompts are equal, because the change is longer than the state, are left out. Where the
model guesses, two answers agree by chance alone, so the share at the states that it answers right from whole states is printed too.

    python bench/changes.py [--quick] [--steps N] [--states N] [--new N] [--tasks TASK,...] [--adapter FOLDER] [--rows FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _common import Figure, Noise, finish, lacks, parser, table
from grpo import PYTHON, SHOWN, VERSIONS
from sft import REACT, VIEW, environ, exact, served, trained

TASKS = (
    "click-checkboxes", "click-checkboxes-large", "login-user", "click-collapsible-2", "use-autocomplete", "enter-date", "click-tab-2",
    "choose-list",
)  # fmt: skip
TRAINED_SEED, NEW_SEED = 200, 8000
VIEWS = ("whole", "changes")


class Pair(NamedTuple):
    """One state, as it is asked about in both ways."""

    task: str
    whole: list[dict[str, str]]
    changes: list[dict[str, str]]
    right: str
    """The recorded answer."""


def exported(python: Path, first: int, seeds: int, folder: Path, tasks: Sequence[str] = TASKS) -> list[Path]:
    """Solve seeds of tasks, and return the two exports."""
    patterns = [f"miniwob/{task}?seed={first}..{first + seeds - 1}" for task in tasks]
    exact(python, "bench", *patterns, "--agent", REACT, "--own-budgets", "--no-reports", "--out", folder / "runs")
    files = []
    for view in VIEWS:
        text = VIEW.read_text().replace(
            "{kind: llm, form: conversation,", f"{{kind: llm, form: conversation, changes: {view == 'changes'},"
        )
        (folder / f"{view}.yaml").write_text(text)
        files.append(folder / f"{view}.jsonl")
        exact(python, "export", "imitation", folder / "runs", "--out", files[-1], "--view", folder / f"{view}.yaml")
    return files


def pairs(files: list[Path]) -> Iterator[Pair]:
    """Yield the states after the first one of each conversation whose prompts differ."""
    lines = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    for whole, changes in zip(*lines, strict=True):
        for at, turn in enumerate(whole["messages"]):
            if turn["role"] == "assistant" and whole["messages"][:at] != changes["messages"][:at]:
                yield Pair(whole["meta"]["task"], whole["messages"][:at], changes["messages"][:at], turn["content"])


def answered(url: str, messages: list[dict[str, str]]) -> str:
    """Return the greedy answer of the served model."""
    turns = [{name: turn[name] for name in ("role", "content")} for turn in messages]
    body = json.dumps({"model": "local", "messages": turns, "temperature": 0, "max_tokens": 32}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def action(answer: str) -> str:
    """Return the line with the action."""
    return next((line.strip() for line in answer.splitlines() if line.startswith("Action:")), answer.strip())


def measure(options: argparse.Namespace, folder: Path, noise: Noise) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Train, ask, and return a row for each state."""
    adapter, details = options.adapter, dict[str, Any]()
    tasks = TASKS[:1] if options.quick else TASKS
    if adapter is None:
        (folder / "train").mkdir()
        files, adapter = exported(options.python, TRAINED_SEED, options.seeds, folder / "train", tasks), folder / "adapter"
        found = trained(options, files, adapter)
        details |= {"conversations": found["rows"], "left_out": found["left_out"]}
    noise.probe()
    (folder / "test").mkdir()
    chosen = options.tasks.split(",") if options.tasks else tasks
    asked = list(pairs(exported(options.python, NEW_SEED, options.new, folder / "test", chosen)))
    asked = asked[:: max(1, len(asked) // options.states)][: options.states]
    kept = options.rows or folder / "rows.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    with served(options.python, str(adapter)) as url, kept.open("a") as file:
        for number, pair in enumerate(asked[len(rows) :], len(rows) + 1):
            said = {view: answered(url, getattr(pair, view)) for view in VIEWS}
            sizes = {f"{view}_characters": sum(len(turn["content"]) for turn in getattr(pair, view)) for view in VIEWS}
            rows.append({"task": pair.task, "right": pair.right, **said, **sizes})
            print(json.dumps(rows[-1]), file=file, flush=True)
            if not number % 20:
                print(f"{number} of {len(asked)} states", file=sys.stderr, flush=True)
    return rows, details


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--steps", type=int, default=120, metavar="N", help="steps of the training, one conversation each")
    options.add_argument("--seeds", type=int, default=10, metavar="N", help="seeds of each task that are trained on")
    options.add_argument("--new", type=int, default=15, metavar="N", help="other seeds of each task")
    options.add_argument("--tasks", default="", metavar="TASK,...", help="ask about states of these (default: those trained on)")
    options.add_argument("--states", type=int, default=200, metavar="N", help="states at most")
    options.add_argument("--adapter", type=Path, metavar="FOLDER", help="measure this adapter, without a training")
    options.add_argument("--rows", type=Path, metavar="FILE", help="add each answer to FILE, and go on after those in it")
    options.add_argument("--python", type=Path, default=PYTHON)
    options.set_defaults(batch=1)
    given = options.parse_args()
    if not given.python.exists():
        lacks("no torch and TRL: shells/setup.sh --train")
    if given.quick:
        given.adapter, given.new, given.states = given.adapter or Path("smollm2"), 1, 2  # without a training
    noise = Noise()
    noise.probe()
    with tempfile.TemporaryDirectory() as name:
        rows, details = measure(given, Path(name), noise)
    noise.probe()
    agree = [action(row["whole"]) == action(row["changes"]) for row in rows]
    right = {view: sum(action(row[view]) == action(row["right"]) for row in rows) / len(rows) for view in VIEWS}
    names = sorted({row["task"].partition("?")[0] for row in rows})
    by_task = {name: [same for row, same in zip(rows, agree, strict=True) if row["task"].partition("?")[0] == name] for name in names}
    table(("task", "states", "same action"), [(name, str(len(each)), str(sum(each))) for name, each in by_task.items()])
    whole, changes = (sum(row[f"{view}_characters"] for row in rows) for view in VIEWS)
    figures = [
        Figure("states", len(rows)),
        Figure("right_whole", right["whole"]),
        Figure("right_changes", right["changes"]),
        Figure("characters_vs_whole", changes / whole),
    ]
    known = [same for row, same in zip(rows, agree, strict=True) if action(row["whole"]) == action(row["right"])]
    figures += [Figure("changes_agree_where_right", sum(known) / len(known))] if known else []
    figures += [Figure("changes_agree", sum(agree) / len(agree), 0.95)]
    shown = subprocess.run([str(given.python), "-c", VERSIONS, *SHOWN], env=environ(), check=True, stdout=subprocess.PIPE)
    finish(given, figures, noise, json.loads(shown.stdout), details | {"rows": rows})


if __name__ == "__main__":
    main()
