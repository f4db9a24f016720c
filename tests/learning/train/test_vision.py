"""GRPO on screenshots as its users have it, in a virtual environment that has torch: a tiny vision model, and a live MiniWoB page."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

import pytest

from tests.learning.train.test_train import ENVIRON, PYTHON, served

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no torch and TRL: shells/setup.sh --train")


def test_a_tiny_vision_model_is_trained_on_the_screenshots_of_a_live_server(tmp_path: Path) -> None:
    script = Path(__file__).with_name("vision.py")
    with served("miniwob/click-test", "--screenshots", "--max-steps", "3", "--sessions", "4") as url:
        done = subprocess.run(
            [str(PYTHON), str(script), str(tmp_path), url], env=ENVIRON, capture_output=True, text=True, timeout=480, check=False
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["losses"]) == 4 and all(map(math.isfinite, found["losses"])) and all(found["grad_norm"])
    assert max(found["gaps"]) < 1e-3, "a row with its screenshots gives the log-probabilities that were sampled"
    assert len(found["in_loss"]) == 12 and max(found["in_loss"]) < 1e-3, "and so it does in TRL's loss"
    assert min(found["swapped"]) > 5e-3, "other screenshots, other log-probabilities"
    assert found["kl"][0] < 1e-9 < found["kl"][1], "the first model sees the screenshots too"
    assert found["synced"] == [2] and max(found["vllm"]) < 1e-3, "TRL's correction of vLLM's log-probabilities sees the screenshots"
    assert found["ratios"] == pytest.approx([1.0, 1.0], abs=1e-3)
    assert found["tokens"][1] < found["tokens"][0], "a limit of a screenshot's tokens is kept"
    assert "tiny reads text alone" in found["refused"] and "name a vision model" in found["refused"]
    assert all(own < 1e-3 < 5e-3 < other for own, other in found["kinds"]), "Qwen2-VL and Qwen3-VL see as Qwen2.5-VL does"
    assert found["said"][0] > 200 and not found["said"][1], "no answer has a placeholder"
    small, large = found["answered"]
    assert large[0] - small[0] == 12 and small[1] != large[1] and max(small[2], large[2]) < 1e-3, "it is served with pictures"
    assert "no data URL" in found["unanswered"][0] and "stands for a picture" in found["unanswered"][1]
    assert found["eyes"] == "Qwen2VLImageProcessorPil" and found["adapters"] and found["changed"]
    assert not any("visual" in name for name in found["adapters"] + found["changed"]), "the adapter is in the language model"
