"""Does a model that is shown changes answer as it does when it is shown whole states? SmolLM2-135M, trained on both, is asked in both ways.

With `--weights`, an instruct model that was not trained for this is asked in place of it, by a llama.cpp server of its own.

The built-in agent solves eight tasks of MiniWoB++ that take several steps. `exact export imitation` writes its conversations twice: with
whole states, and with `policy.changes`. `exact train sft` trains one LoRA adapter on both. On other seeds, the model is asked at each state
after the first one, greedily, in both ways: the conversation so far is the recorded one. The figure is the share of states at which both
answers name the same action. States whose two prompts are equal, because the change is longer than the state, are left out. Where the
model guesses, two answers agree by chance alone, so the share at the states that it answers right from whole states is printed too.

    python bench/changes.py [--quick] [--steps N] [--states N] [--new N] [--tasks TASK,...] [--adapter FOLDER] [--rows FILE] [--json FILE]
    python bench/changes.py --weights GGUF --pairs FILE [--port N] [--threads N] [--states N] [--new N] [--rows FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import _llamacpp
import msgspec
from _common import Figure, Noise, finish, lacks, parser, table, versions
from grpo import PYTHON, SHOWN, VERSIONS
from sft import REACT, VIEW, environ, exact, served, trained

TASKS = (
    "click-checkboxes", "click-checkboxes-large", "login-user", "click-collapsible-2", "use-autocomplete", "enter-date", "click-tab-2",
    "choose-list",
)  # fmt: skip
LARGE = ("click-checkboxes-large", "social-media", "search-engine", "click-scroll-list", "email-inbox", "email-inbox-nl-turk")
"""Tasks of an instruct model: their pages are larger."""
TRAINED_SEED, NEW_SEED = 200, 8000
SHOWN_TOKENS, LONGEST, CONTEXT = 1500, 20_000, 8192
"""For an instruct model: tokens of a state, most characters of a prompt, and tokens that the server has room for."""
ANSWER, UNTRAINED_ANSWER = 32, 96
"""Most tokens of an answer; a model that was not trained may think first."""
VIEWS = ("whole", "changes")


class Pair(NamedTuple):
    """One state, as it is asked about in both ways."""

    task: str
    whole: list[dict[str, str]]
    changes: list[dict[str, str]]
    right: str
    """The recorded answer."""


def exported(python: Path, first: int, seeds: int, folder: Path, tasks: Sequence[str] = TASKS, tokens: int = 0) -> list[Path]:
    """Solve seeds of tasks, and return the two exports. `tokens`: most tokens of a state; 0 for those of the configuration."""
    patterns = [f"miniwob/{task}?seed={first}..{first + seeds - 1}" for task in tasks]
    exact(python, "bench", *patterns, "--agent", REACT, "--own-budgets", "--no-reports", "--out", folder / "runs")
    files = []
    for view in VIEWS:
        text = VIEW.read_text().replace(
            "{kind: llm, form: conversation,", f"{{kind: llm, form: conversation, changes: {view == 'changes'},"
        )
        if tokens:
            text = text.replace("observation_tokens: 600", f"observation_tokens: {tokens}")
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


def large_pairs(options: argparse.Namespace, folder: Path) -> list[Pair]:
    """Return the states that an instruct model is asked about: one of each task, drawn at random, then another one of each, and so on.

    They are read from `--pairs` if it exists, else found and kept there.
    """
    if options.pairs and options.pairs.exists():
        return [msgspec.json.decode(line, type=Pair) for line in options.pairs.read_text().splitlines()]
    tasks = options.tasks.split(",") if options.tasks else LARGE[:1] if options.quick else LARGE
    files = exported(Path(sys.executable), NEW_SEED, options.new, folder, tasks, SHOWN_TOKENS)
    found, seen, ranked = list(pairs(files)), Counter[str](), list[tuple[int, Pair]]()
    for pair in random.Random(0).sample(found, len(found)):
        if characters(pair.whole) <= LONGEST:
            seen[named(pair.task)] += 1
            ranked.append((seen[named(pair.task)], pair))
    print(f"{len(found) - len(ranked)} of {len(found)} states are left out: their prompt is too long", file=sys.stderr)
    asked = [pair for _, pair in sorted(ranked, key=lambda each: each[0])][: options.states]
    if options.pairs:
        options.pairs.write_bytes(b"".join(msgspec.json.encode(pair) + b"\n" for pair in asked))
    return asked


def named(task: str) -> str:
    """Return the id of a task without its seed."""
    return task.partition("?")[0]


def characters(messages: list[dict[str, str]]) -> int:
    return sum(len(turn["content"]) for turn in messages)


def answered(url: str, messages: list[dict[str, str]], tokens: int = ANSWER) -> str:
    """Return the greedy answer of the served model, of at most so many tokens."""
    turns = [{name: turn[name] for name in ("role", "content")} for turn in messages]
    body = json.dumps({"model": "local", "messages": turns, "temperature": 0, "max_tokens": tokens}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=1200) as answer:
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
    with served(options.python, str(adapter)) as url:
        return ask(options, asked, url, folder, ANSWER), details


def measure_weights(options: argparse.Namespace, folder: Path, noise: Noise) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Ask an instruct model, and return a row for each state."""
    asked = large_pairs(options, folder)[: options.states]
    noise.probe()
    with _llamacpp.serving(slots=1, context=CONTEXT, port=options.port, threads=options.threads, weights=options.weights) as server:
        return ask(options, asked, server.address, folder, UNTRAINED_ANSWER), {"weights": options.weights.stem}


def ask(options: argparse.Namespace, asked: Sequence[Pair], url: str, folder: Path, tokens: int) -> list[dict[str, Any]]:
    """Ask a served model in both ways about the states that `--rows` does not hold yet. Return all rows."""
    kept = options.rows or folder / "rows.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    if [row["task"] for row in rows] != [pair.task for pair in asked[: len(rows)]]:
        sys.exit(f"{kept} holds rows of other states: name another file")
    with kept.open("a") as file:
        for number, pair in enumerate(asked[len(rows) :], len(rows) + 1):
            said = {view: answered(url, getattr(pair, view), tokens) for view in VIEWS}
            sizes = {f"{view}_characters": characters(getattr(pair, view)) for view in VIEWS}
            rows.append({"task": pair.task, "right": pair.right, **said, **sizes})
            print(json.dumps(rows[-1]), file=file, flush=True)
            if not number % 20:
                print(f"{number} of {len(asked)} states", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--steps", type=int, default=120, metavar="N", help="steps of the training, one conversation each")
    options.add_argument("--seeds", type=int, default=10, metavar="N", help="seeds of each task that are trained on")
    options.add_argument("--new", type=int, default=15, metavar="N", help="other seeds of each task")
    options.add_argument("--tasks", default="", metavar="TASK,...", help="ask about states of these (default: those trained on)")
    options.add_argument("--states", type=int, default=200, metavar="N", help="states at most")
    options.add_argument("--adapter", type=Path, metavar="FOLDER", help="measure this adapter, without a training")
    options.add_argument("--rows", type=Path, metavar="FILE", help="add each answer to FILE, and go on after those in it")
    options.add_argument("--weights", type=Path, metavar="GGUF", help="ask this instruct model, without a training")
    options.add_argument("--pairs", type=Path, metavar="FILE", help="--weights: read the states from FILE, or find and keep them there")
    options.add_argument("--port", type=int, default=0, help="--weights: port of the model's server (default: any free one)")
    options.add_argument("--threads", type=int, default=1, help="--weights: threads of the model's server")
    options.add_argument("--python", type=Path, default=PYTHON)
    options.set_defaults(batch=1)
    given = options.parse_args()
    if given.weights and not _llamacpp.available():
        lacks(_llamacpp.MISSING)
    if not given.weights and not given.python.exists():
        lacks("no torch and TRL: shells/setup.sh --train")
    if given.quick:
        given.adapter, given.new, given.states = given.adapter or Path("smollm2"), 1, 2  # without a training
    noise = Noise()
    noise.probe()
    with tempfile.TemporaryDirectory() as name:
        rows, details = (measure_weights if given.weights else measure)(given, Path(name), noise)
    noise.probe()
    agree = [action(row["whole"]) == action(row["changes"]) for row in rows]
    right = {view: sum(action(row[view]) == action(row["right"]) for row in rows) / len(rows) for view in VIEWS}
    lines = list[tuple[str, ...]]()
    for name in sorted({named(row["task"]) for row in rows}):
        some = [(row, same) for row, same in zip(rows, agree, strict=True) if named(row["task"]) == name]
        whole, changes = (sum(row[f"{view}_characters"] for row, _ in some) for view in VIEWS)
        lines.append((name, str(len(some)), str(sum(same for _, same in some)), f"{changes / whole:.2f}"))
    table(("task", "states", "same action", "characters"), lines)
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
    if given.weights:
        finish(given, figures, noise, versions("exact-agent"), details | {"rows": rows})
        return
    shown = subprocess.run([str(given.python), "-c", VERSIONS, *SHOWN], env=environ(), check=True, stdout=subprocess.PIPE)
    finish(given, figures, noise, json.loads(shown.stdout), details | {"rows": rows})


if __name__ == "__main__":
    main()
