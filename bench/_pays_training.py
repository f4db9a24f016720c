"""Data from searches that are told the reward, and LoRA adapters that are trained on them, for bench/search_pays.py."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import _common
from grpo import PYTHON
from sft import environ, exact

KEPT = _common.ROOT / "bench" / "results"
DATA = {"trained": KEPT / "search_pays_training.jsonl.gz", "preferred": KEPT / "search_pays_preferences.jsonl.gz"}
ADAPTERS = {"trained": KEPT / "search_pays_adapter.gguf", "preferred": KEPT / "search_pays_preferred.gguf"}
"""Data and adapter by the proposals that are measured. Those that are preferred were trained before."""
LEARNER = "qwen2.5-coder-0.5b"
"""The model that is trained."""
TASKS = (
    *("choose-list", "form-sequence-2", "social-media", "email-inbox-reply", "copy-paste", "number-checkboxes", "enter-time"),
    *("enter-password", "use-autocomplete", "click-test-2", "navigate-tree", "click-tab", "click-link", "enter-text-dynamic"),
    *("choose-date-easy", "click-test-transfer", "generate-number", "find-greatest", "buy-ticket", "identify-shape"),
)
"""Training tasks of the split of which none is measured with the learner."""
SEEDS = (10641, 10652)
"""First and last training seed of each task."""
ACTIONS, STEPS = 6, 40
"""Most committed actions and environment steps of a search."""
EACH, TRAINED = 10, 160
"""Most states of a task, and steps of one state each in the training."""
RATE, LONGEST = 3e-4, 2048
"""Learning rate, and most tokens of a state with its action."""
PREFERRED, GENTLE, BETA, MARGIN = 60, 5e-5, 0.1, 0.2
"""Steps of one pair each, learning rate and beta of DPO, and least difference of the values of a pair."""


def lacking(name: str) -> str:
    """Return what proposals lack, with the way out; empty if nothing. Those of an untrained model lack nothing."""
    if name not in ADAPTERS:
        return ""
    if (file := ADAPTERS[name]).exists():
        found, told = digest(file), json.loads(file.with_suffix(".json").read_text())["sha256"]
        return "" if found == told else f"{file.name} has the SHA-256 {found}, not {told}: remove it to train it again"
    if not PYTHON.exists():
        return "no torch and TRL: run shells/setup.sh --train"
    if not DATA[name].exists():
        return "there is no data to train on: run python bench/search_pays.py --collect"
    return "" if name == "trained" else lacking("trained")


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def collect(work: Path, shown: Mapping[str, Any]) -> None:
    """Search the tasks with the built-in agent and their reward, and keep states of solved attempts, and pairs of actions of all.

    `shown`: the configuration of the policy that is trained. The first ones of each task by the SHA-256 of their lines are kept.
    """
    runs, view = work / "runs", work / "view.yaml"
    work.mkdir(parents=True, exist_ok=True)
    view.write_text(json.dumps(shown))
    if not (runs / "results.jsonl").exists():
        parts = {"policy.kind": "learned", "value.kind": "oracle", "limits.actions": ACTIONS, "limits.transitions": STEPS}
        words = [word for key, value in parts.items() for word in ("--set", f"{key}={value}")]
        patterns = [f"miniwob/{task}?seed={SEEDS[0]}..{SEEDS[1]}" for task in TASKS]
        exact(Path(sys.executable), "bench", *patterns, "--agent", "rmcts", "--own-budgets", "--no-reports", "--out", runs, *words)
    for name, kind, more in (("trained", "imitation", ()), ("preferred", "preference", ("--margin", MARGIN))):
        (out := work / f"{kind}.jsonl").unlink(missing_ok=True)
        exact(Path(sys.executable), "export", kind, runs, "--format", "prompt-completion", "--view", view, "--out", out, *more)
        keep(out.read_text().splitlines(), DATA[name])


def keep(exported: Sequence[str], file: Path) -> None:
    """Keep the first lines of each task."""
    kept, count = list[str](), dict[str, int]()
    lines = [json.loads(line) for line in exported]
    texts = [json.dumps(each | {"meta": {"task": each["meta"]["task"], "node": each["meta"]["node"]}}) for each in lines]
    for line in sorted(texts, key=lambda each: hashlib.sha256(each.encode()).hexdigest()):
        task = json.loads(line)["meta"]["task"].partition("?")[0]
        if count.get(task, 0) < EACH:
            count[task] = count.get(task, 0) + 1
            kept.append(line)
    print(f"{len(kept)} states of {len(count)} tasks: {dict(sorted(count.items()))}", file=sys.stderr)
    file.write_bytes(gzip.compress("".join(f"{line}\n" for line in kept).encode(), mtime=0))


def adapter(name: str, work: Path, weights: Path) -> Path:
    """Return the adapter for weights. If none is kept, train it, and keep it with its hash, settings and losses."""
    if (file := ADAPTERS[name]).exists():
        return file
    out, ended, part = work / "adapter", work / "ended.json", work / "adapter.gguf"
    if not ended.exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        (data := work / "data.jsonl").write_bytes(gzip.decompress(DATA[name].read_bytes()))
        ended.write_text(json.dumps((train if name == "trained" else prefer)(weights, data, out)))
    command = [PYTHON, _common.ROOT / "bench" / "_gguf_adapter.py", out, part, weights]
    subprocess.run(list(map(str, command)), env=environ(), check=True)
    hashes = {"sha256": digest(part), "weights_sha256": digest(weights), "data_sha256": digest(DATA[name])}
    file.with_suffix(".json").write_text(json.dumps({**hashes, **json.loads(ended.read_text())}) + "\n")
    shutil.move(part, file)
    shutil.rmtree(work)
    return file


def train(weights: Path, data: Path, out: Path) -> Mapping[str, Any]:
    """Train an adapter on conversations. Return its settings and losses."""
    chosen = {"steps": TRAINED, "batch": 1, "seed": 0, "learning_rate": RATE, "max_length": LONGEST}
    (settings := data.with_name("sft.yaml")).write_text(
        json.dumps({**chosen, "model": str(weights), "data": [str(data)], "out": str(out), "threads": 2})
    )
    told = json.loads(exact(PYTHON, "train", "sft", "--config", settings, "--json").splitlines()[-1])
    return {**chosen, "rows": told["rows"], "losses": [round(each["loss"], 4) for each in told["history"]]}


def prefer(weights: Path, data: Path, out: Path) -> Mapping[str, Any]:
    """Train the adapter that was trained on conversations further, on preferences. Return its settings and losses."""
    chosen = {"steps": PREFERRED, "beta": BETA, "learning_rate": GENTLE, "max_length": LONGEST, "seed": 0}
    start, script = ADAPTERS["trained"], _common.ROOT / "bench" / "_dpo_adapter.py"
    command = [PYTHON, script, weights, start, data, out, json.dumps({**chosen, "threads": 2})]
    done = subprocess.run(list(map(str, command)), env=environ(), check=True, stdout=subprocess.PIPE, text=True)
    return {**chosen, "start_sha256": digest(start), "history": json.loads(done.stdout.splitlines()[-1])}
