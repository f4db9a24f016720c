"""The settings of examples/browsergym_grpo.py are those of the page, and its server ends with it."""

from __future__ import annotations

import os
import re
import runpy
import signal
import subprocess
from pathlib import Path

import pytest

from tests.processes import left

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/browsergym_grpo.py"
PYTHON = ROOT / ".bench/venvs/openenv/bin/python"
TRAINING = """
import runpy, signal, sys
import exact.learning.train.grpo as grpo

def train(settings, report):
    print(settings.server, flush=True)
    signal.pause()

grpo.train = train
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""The example, with a training that goes on for ever."""


def test_the_page_has_every_setting_of_the_example_with_its_default() -> None:
    settings = runpy.run_path(str(EXAMPLE))["SETTINGS"]
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`([^`]*)` )?\|", (ROOT / "docs/training.md").read_text(), flags=re.M)
    assert dict(rows) == settings


@pytest.mark.skipif(not PYTHON.exists(), reason="no OpenEnv: shells/setup.sh --openenv")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_the_server_of_the_example_ends_with_it_however_it_ends(number: int) -> None:
    mark = f"EXACT_EXAMPLE={os.getpid()}-{number}"
    name, _, value = mark.partition("=")
    environ = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", name: value}
    command = [str(PYTHON), "-c", TRAINING, str(EXAMPLE)]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline()
        process.send_signal(number)
        said = process.stderr.read()
    assert address.startswith("http://127.0.0.1:") and "Traceback" not in said
    assert not left(mark, 60)
