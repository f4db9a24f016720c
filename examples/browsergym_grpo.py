r"""Train a model by GRPO on a BrowserGym task, such as MiniWoB's click-test, over OpenEnv.

    shells/setup.sh --train
    .bench/venvs/train/bin/python examples/browsergym_grpo.py            # serves the task itself; small settings for a CPU
    BROWSERGYM_BASE_URL=http://127.0.0.1:8000 .bench/venvs/train/bin/python examples/browsergym_grpo.py

Every setting is an environment variable. docs/training.md has the table of all of them, and says what changed from scripts that were
written for older versions of TRL, and why.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from exact.cli.signals import ending_signals
from exact.errors import ExactError
from exact.learning.train.grpo import train
from exact.learning.train.settings import GRPOSettings, LoraSettings

SETTINGS = {
    "MODEL_ID": "smollm2",
    "VLLM_ENDPOINT": "",
    "BROWSERGYM_BASE_URL": "",
    "BROWSERGYM_TASK_NAME": "click-test",
    "OUTPUT_DIR": "adapters/browsergym",
    "MAX_TRAIN_STEPS": "20",
    "SYSTEM_PROMPT": 'Answer with one action, such as: click "OK" button [3]',
    "MAX_STEPS": "8",
    "SCREENSHOTS": "0",
    "SCREENSHOT_TOKENS": "",
    "HISTORY": "4",
    "MAX_NEW_TOKENS": "16",
    "TEMPERATURE": "0.5",
    "TOP_K": "10",
    "NUM_GENERATIONS": "8",
    "GRADIENT_ACCUMULATION_STEPS": "1",
    "BATCH_SIZE": "4",
    "LEARNING_RATE": "1e-5",
    "WARMUP_STEPS": "0",
    "SAVE_STEPS": "50",
    "ENVIRONMENTS": "8",
    "DATASET_SIZE": "64",
    "REWARD_SUM": "1",
    "REWARD_MEAN": "0",
    "REWARD_MAX": "0",
    "LORA_R": "8",
    "THREADS": "",
}
"""Names and defaults. A default that a CPU could not bear differs from the original's."""


def setting(name: str) -> str:
    return os.environ.get(name) or SETTINGS[name]


@contextmanager
def server(sessions: int) -> Iterator[str]:
    """The address of a server: the one that is named, or one that is started for the time of the training."""
    if named := setting("BROWSERGYM_BASE_URL"):
        yield named
        return
    command = [sys.executable, "-m", "exact.cli", "serve", "miniwob", "--port", "0", "--sessions", str(sessions), "--stdin"]
    command += ["--screenshots"] if setting("SCREENSHOTS") == "1" else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        if not (line := process.stdout.readline()):
            sys.exit("browsergym_grpo: the server did not start: see the message above")
        try:
            yield line.partition(": ")[0]
        finally:
            process.stdin.close()  # the server ends with its standard input, also if this program is killed
            process.wait(30)


def report(figures: dict[str, float]) -> None:
    speed = figures["sampled_tokens"] / figures["sampling_seconds"]
    print(f"step {figures['step']:g} reward {figures['reward']:.3f} loss {figures.get('loss', 0.0):.4f} {speed:.0f} tokens/s", flush=True)


def main() -> None:
    weights = {"sum": float(setting("REWARD_SUM")), "mean": float(setting("REWARD_MEAN")), "max": float(setting("REWARD_MAX"))}
    rank, environments = int(setting("LORA_R")), int(setting("ENVIRONMENTS"))
    with server(environments) as url:
        trained = train(
            GRPOSettings(
                model=setting("MODEL_ID"),
                out=setting("OUTPUT_DIR"),
                server=url,
                vllm=setting("VLLM_ENDPOINT") or None,
                tasks=(setting("BROWSERGYM_TASK_NAME"),),
                seeds=int(setting("DATASET_SIZE")),
                lora=LoraSettings(r=rank, alpha=2 * rank) if rank else None,
                steps=int(setting("MAX_TRAIN_STEPS")),
                generations=int(setting("NUM_GENERATIONS")),
                batch=int(setting("BATCH_SIZE")),
                environments=environments,
                system=setting("SYSTEM_PROMPT"),
                max_steps=int(setting("MAX_STEPS")),
                screenshots=setting("SCREENSHOTS") == "1",
                screenshot_tokens=int(setting("SCREENSHOT_TOKENS")) if setting("SCREENSHOT_TOKENS") else None,
                history=int(setting("HISTORY")),
                max_new_tokens=int(setting("MAX_NEW_TOKENS")),
                temperature=float(setting("TEMPERATURE")),
                top_k=int(setting("TOP_K")),
                rewards={name: weight for name, weight in weights.items() if weight},  # type: ignore[misc]
                learning_rate=float(setting("LEARNING_RATE")),
                warmup=int(setting("WARMUP_STEPS")),
                accumulation=int(setting("GRADIENT_ACCUMULATION_STEPS")),
                save_every=int(setting("SAVE_STEPS")),
                threads=int(setting("THREADS")) if setting("THREADS") else None,
            ),
            report=report,
        )
    print(f"saved to {trained.folder}")


if __name__ == "__main__":
    try:
        with ending_signals():
            main()
    except ExactError as error:
        sys.exit(f"browsergym_grpo: {error}")
    except KeyboardInterrupt:
        sys.exit("browsergym_grpo: interrupted: the same command continues from the last checkpoint")
