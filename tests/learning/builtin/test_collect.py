"""Processes that collect examples."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from exact.learning.builtin.explore import ExploreSettings
from exact.learning.builtin.fit import FitSettings
from exact.learning.builtin.rounds import BuiltinSettings, tasks_of_rounds, train
from exact.learning.builtin.split import load_split
from exact.machine import sweep
from tests.processes import left, marked


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.usefixtures("executable")
def test_a_training_that_is_told_to_end_ends_its_processes_and_their_browsers(tmp_path: Path) -> None:
    pytest.importorskip("miniwob")
    mark = f"collect-{os.getpid()}"
    (tmp_path / "temporary").mkdir()
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"out: {tmp_path / 'run'}\nseeds: [400]\ntasks: [miniwob/click-tab]\n")
    env = {**os.environ, "LC_MARK": mark, "TMPDIR": str(tmp_path / "temporary")}
    command = [sys.executable, "-m", "exact.cli", "train", "builtin", "--config", str(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=tmp_path) as process:
        try:
            deadline = time.monotonic() + 120
            while not any("chrom" in each for each in marked(f"LC_MARK={mark}").values()):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            told, _ = process.communicate(timeout=60)
            remained = left(f"LC_MARK={mark}", 20)
        finally:
            for each in marked(f"LC_MARK={mark}"):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
    assert (process.returncode, told.split()[-1]) == (128 + signal.SIGTERM, "interrupted"), told
    assert "Traceback" not in told and remained == []
    sweep(tmp_path / "temporary")
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.usefixtures("executable")
def test_equal_settings_give_equal_weights(tmp_path: Path) -> None:
    pytest.importorskip("miniwob")
    weights = []
    for name in ("one", "other"):
        settings = BuiltinSettings(
            out=str(tmp_path / name), seeds=(1, 1), tasks=("miniwob/click-tab-2-hard", "miniwob/find-midpoint", "miniwob/enter-text"),
            explore=ExploreSettings(episodes=8, steps=8, all_steps=40), fit=FitSettings(epochs=2), processes=1,
        )  # fmt: skip
        train(settings, lambda text: None)
        weights.append([(tmp_path / name / f"round-{round}.npz").read_bytes() for round in range(3)])
    assert weights[0] == weights[1] and len(set(weights[0])) == 3


def test_a_page_that_does_not_repeat_is_trained_on_only_if_it_is_named() -> None:
    everything = tasks_of_rounds(BuiltinSettings(out="runs/builtin", seeds=(1,)))
    assert len(everything[0]) == len(load_split().training) - 1 and not any("drag-cube" in task for task in everything[0])
    assert len(tasks_of_rounds(BuiltinSettings(out="runs/builtin", seeds=(1,), tasks=("miniwob/drag-cube",)))[0]) == 1
