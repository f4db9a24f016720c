"""Processes that collect examples."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from exact.scratch import sweep
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
