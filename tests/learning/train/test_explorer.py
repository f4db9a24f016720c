"""An explorer that was trained on a recorded search goes its way by itself: into the corridor that deceives, back, and out."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from exact.cli.main import main
from exact.config import Config, parse
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import deceptive_chain
from exact.runs.runner import Runner, create, reopen
from tests.learning.runs import task_of, toy_run, with_task
from tests.learning.train.test_train import ENVIRON, PYTHON, served

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no torch and TRL: shells/setup.sh --train")

SETTINGS = "model: tiny\nlora: null\nsteps: 120\nbatch: 1\nlearning_rate: 8e-3\nmax_length: 4096\nthreads: 1\n"


async def test_a_model_that_is_trained_on_a_search_steps_back_as_it_did_and_solves_the_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, exports = deceptive_chain(), [str(tmp_path / f"data{number}.jsonl") for number in range(8)]
    for number, file in enumerate(exports):  # the same search, with other marks around what is data
        await toy_run(tmp_path / f"searched{number}", graph)
        assert main(["export", "exploratory", str(tmp_path / f"searched{number}"), "--out", file]) == 0
    (tmp_path / "sft.yaml").write_text(f"{SETTINGS}data: {exports}\nout: {tmp_path / 'adapter'}\n")
    train(tmp_path / "sft.yaml")
    task = task_of(graph, 0)
    with served("model", str(tmp_path / "adapter")) as url:
        create(tmp_path / "run", (task,), explorer(url))
        run, config = reopen(tmp_path / "run")
        lines = await Runner(folder=with_task(run, task), config=config, open_environments=lambda _: nullcontext(ToyFactory(graph))).run()
    assert [line.score for line in lines] == [1.0]
    journal = (run.task_folder(task) / "journal.jsonl").read_text()
    assert '"restart"' in journal or '"step_back"' in journal
    assert main(["show", str(tmp_path / "run")]) == 0 and "6 proposals" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "run")]) == 0


def train(settings: Path) -> None:
    command = [str(PYTHON), "-m", "exact.cli", "train", "sft", "--config", str(settings)]
    done = subprocess.run(command, env=ENVIRON, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def explorer(url: str) -> Config:
    """Configuration of a greedy explorer by a served model."""
    model = {
        "provider": "vllm",
        "base_url": f"{url}/v1",
        "model": "adapter",
        "temperature": 0,
        "max_tokens": 60,
        "price": {"input": 0, "output": 0},
    }
    return parse(
        {
            "search": {"algorithm": "explorer", "k": 1},
            "policy": {"kind": "llm", "form": "conversation", "samples": 1, "history": 100},
            "value": {"kind": "constant"},
            "reflection": {"kind": "none"},
            "models": {"policy": model},
            "limits": {"actions": 12, "calls": 40},
        }
    )
