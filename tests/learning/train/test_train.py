"""Training as its users have it, in a virtual environment that has torch: a tiny model, and a live server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".bench/venvs/train/bin/python"


pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no torch and TRL: shells/setup.sh --train")
ENVIRON = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@contextmanager
def served(*args: str) -> Iterator[str]:
    """The address of an `exact serve`."""
    command = [str(PYTHON), "-m", "exact.cli", "serve", *args, "--port", "0"]
    with subprocess.Popen(command, env=ENVIRON, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().partition(": ")[0]
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


def asked(url: str, **body: Any) -> Any:
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_a_tiny_model_is_trained_on_conversations_and_against_a_live_server_and_served(tmp_path: Path) -> None:
    script = Path(__file__).with_name("end_to_end.py")
    with served("toy/chain", "--max-steps", "4") as url:
        done = subprocess.run(
            [str(PYTHON), str(script), str(tmp_path), url], env=ENVIRON, capture_output=True, text=True, timeout=480, check=False
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["loss"][1] < found["loss"][0] / 2
    assert found["steps"] == 2 and found["gap"] < 1e-3 and found["rows"] == 16
    assert all(each >= 8 for each in found["tokens"]) and all(each > 0 for each in found["seconds"])
    assert found["used"][0] and found["used"][1] > 50
    assert found["tools"] == [["act"], 1], "TRL's own loop takes the environments as a tool"
    shared, gaps, gradients = found["tree"]
    assert all(each >= 3 for each in shared) and max(gaps) < 1e-3, "branches share steps, whose tokens are scored alike"
    assert all(gradients), "value differences teach"
    page = (tmp_path / "tree" / "training.html").read_text()
    assert page.count("<polyline") >= 8 and all(word in page for word in ("Reward", "Entropy", "Divergence", "Tokens of an episode"))
    assert "<polyline" in (tmp_path / "sft" / "training.html").read_text()
    assert found["adapters"] == [1, []], "an adapter is trained further, and loaded as one model"
    turns = [{"role": "user", "content": "Page: Step 0 of 4"}]
    with served("model", str(tmp_path / "sft")) as url:
        answer = asked(url, messages=turns, n=2, temperature=0, max_tokens=8, logprobs=True, top_logprobs=2)
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(url, messages=[{"role": "user", "content": [{"type": "image_url"}]}])
    first, second = answer["choices"]
    assert first["message"]["content"] == second["message"]["content"] == 'go "on"' and first["finish_reason"] == "stop"
    assert len(first["token_ids"]) == len(first["logprobs"]["content"]) == answer["usage"]["completion_tokens"] / 2
    with refused.value as answer:
        assert answer.code == 400 and "no pictures" in json.load(answer)["error"]["message"]


def test_trl_trains_against_the_server_as_its_users_write_it(tmp_path: Path) -> None:
    made = f"from exact.learning.train.model import load_model as l; [m.save_pretrained({str(tmp_path / 'tiny')!r}) for m in l('tiny')[:2]]"
    subprocess.run([str(PYTHON), "-c", made], env=ENVIRON, cwd=ROOT, check=True, capture_output=True)
    script, alone = Path(__file__).with_name("trl_alone.py"), {key: value for key, value in ENVIRON.items() if key != "PYTHONPATH"}
    with served("toy/chain") as url:
        done = subprocess.run(
            [str(PYTHON), str(script), str(tmp_path / "tiny"), url, str(tmp_path / "out")], env=alone, cwd=tmp_path, capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == [4, 4] and found["observations"] == [["Go on to the end.", False]] * 8
    assert all(each > 0.04 for each in found["rewards"]), "actions that the server took were rewarded"
    assert found["tools"] == {"steps": 1, "made": 4, "walked": 3, "reward": 1.0, "done": True}


def test_the_example_records_trains_and_evaluates(tmp_path: Path) -> None:
    small = ("--model", "tiny", "--tasks", "click-button", "--seeds", "2", "--new", "1", "--steps", "2", "--max-length", "16384")
    command = [str(PYTHON), "-P", str(ROOT / "examples" / "learn_from_search.py"), *small, "--out", str(tmp_path / "new")]
    done = subprocess.run(command, env=ENVIRON, cwd=tmp_path, capture_output=True, text=True, timeout=480, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    head, row = done.stdout.splitlines()[-2:]
    assert head.split() == ["solved,", "without", "a", "search", "before", "after", "search", "on", "its", "own", "seeds"]
    assert row.split()[0] == "click-button" and row.split()[1][1:] == row.split()[2][1:] == "/1" and row.split()[3] == "2/2"
    assert (tmp_path / "new" / "adapter" / "training.html").exists()


def test_a_killed_training_goes_on_from_its_last_whole_checkpoint(tmp_path: Path) -> None:
    with served("toy/chain", "--max-steps", "2") as url:
        settings = {"model": "tiny", "server": url, "out": "adapter", "steps": 5, "generations": 2, "environments": 2, "max_steps": 2}
        (tmp_path / "grpo.yaml").write_text(json.dumps(settings | {"save_every": 1, "max_new_tokens": 4}))
        command = [str(PYTHON), "-P", "-m", "exact.cli", "train", "grpo", "--config", "grpo.yaml", "--json"]
        run = tmp_path / "adapter.run"
        with subprocess.Popen(command, env=ENVIRON, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            ended = time.monotonic() + 240
            while not (run / "checkpoint-3").exists() and time.monotonic() < ended:
                time.sleep(0.05)
            process.kill()
        assert not (tmp_path / "adapter").exists(), "the adapter appears when the training has ended"
        kept = {path.name for path in run.glob("checkpoint-*") if (path / "trainer_state.json").exists()}
        (run / "checkpoint-99").mkdir()  # as a kill leaves it while its state is written
        (run / "checkpoint-99" / "trainer_state.json").touch()
        done = subprocess.run(command, env=ENVIRON, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "checkpoint-2" in kept, done.stderr[-3000:]
    history = json.loads((tmp_path / "adapter" / "training.json").read_text())["history"]
    assert [step["step"] for step in history] == [1, 2, 3, 4, 5]
