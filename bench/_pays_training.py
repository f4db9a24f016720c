"""Conversations from searches that are told the reward, and a LoRA adapter that is trained on them, for bench/search_pays.py."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _common
from grpo import PYTHON
from sft import environ, exact

DATA = _common.ROOT / "bench" / "results" / "search_pays_training.jsonl.gz"
ADAPTER = _common.ROOT / "bench" / "results" / "search_pays_adapter.gguf"
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


def lacking() -> str:
    """Return what the trained proposals lack, with the way out; empty if nothing."""
    if ADAPTER.exists():
        found, told = digest(ADAPTER), json.loads(ADAPTER.with_suffix(".json").read_text())["sha256"]
        return "" if found == told else f"{ADAPTER.name} has the SHA-256 {found}, not {told}: remove it to train it again"
    if not PYTHON.exists():
        return "no torch and TRL: run shells/setup.sh --train"
    return "" if DATA.exists() else "there is no data to train on: run python bench/search_pays.py --collect"


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def collect(work: Path, shown: Mapping[str, Any]) -> None:
    """Search the tasks with the built-in agent and their reward, and keep states of solved attempts with the committed actions.

    `shown`: the configuration of the policy that is trained. The first states of each task by the SHA-256 of their lines are kept.
    """
    runs, view, out = work / "runs", work / "view.yaml", work / "imitation.jsonl"
    work.mkdir(parents=True, exist_ok=True)
    view.write_text(json.dumps(shown))
    if not (runs / "results.jsonl").exists():
        parts = {"policy.kind": "learned", "value.kind": "oracle", "limits.actions": ACTIONS, "limits.transitions": STEPS}
        words = [word for key, value in parts.items() for word in ("--set", f"{key}={value}")]
        patterns = [f"miniwob/{task}?seed={SEEDS[0]}..{SEEDS[1]}" for task in TASKS]
        exact(Path(sys.executable), "bench", *patterns, "--agent", "rmcts", "--own-budgets", "--no-reports", "--out", runs, *words)
    out.unlink(missing_ok=True)
    exact(Path(sys.executable), "export", "imitation", runs, "--format", "prompt-completion", "--view", view, "--out", out)
    kept, count = list[str](), dict[str, int]()
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    texts = [json.dumps(each | {"meta": {"task": each["meta"]["task"], "node": each["meta"]["node"]}}) for each in lines]
    for line in sorted(texts, key=lambda each: hashlib.sha256(each.encode()).hexdigest()):
        task = json.loads(line)["meta"]["task"].partition("?")[0]
        count[task] = count.get(task, 0) + 1
        kept += [line] * (count[task] <= EACH)
    print(f"{len(kept)} states of {len(count)} tasks: {dict(sorted(count.items()))}", file=sys.stderr)
    DATA.write_bytes(gzip.compress("".join(f"{line}\n" for line in kept).encode(), mtime=0))


def train(work: Path, weights: Path) -> Path:
    """Return the adapter for weights.

    If none is kept, train it on the data that is kept, and keep it with its hash, settings and losses.
    """
    if ADAPTER.exists():
        return ADAPTER
    out, data, ended = work / "adapter", work / "data.jsonl", work / "ended.json"
    work.mkdir(parents=True, exist_ok=True)
    data.write_bytes(gzip.decompress(DATA.read_bytes()))
    given = {"model": str(weights), "data": [str(data)], "out": str(out), "max_length": LONGEST, "learning_rate": RATE}
    chosen = {"steps": TRAINED, "batch": 1, "seed": 0}
    (work / "sft.yaml").write_text(json.dumps(given | chosen | {"threads": 2}))
    if not ended.exists():
        shutil.rmtree(out, ignore_errors=True)
        ended.write_text(exact(PYTHON, "train", "sft", "--config", work / "sft.yaml", "--json").splitlines()[-1])
    part = out.with_suffix(".part")
    command = [PYTHON, _common.ROOT / "bench" / "_gguf_adapter.py", out, part, weights]
    subprocess.run(list(map(str, command)), env=environ(), check=True)
    of = {"sha256": digest(part), "weights": weights.name, "weights_sha256": digest(weights), "data_sha256": digest(DATA)}
    told = of | chosen | {"learning_rate": RATE, "training": json.loads(ended.read_text())}
    ADAPTER.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")
    return Path(shutil.move(part, ADAPTER))
