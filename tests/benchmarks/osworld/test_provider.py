"""The provider `exact` of desktop_env, by stand-ins for desktop_env and for the desktop: what it passes on, and what it refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import exact.environments.adapters.guests
from exact.benchmarks.osworld.suite import FOLDER, check_parts, desktop_env_python
from exact.errors import UsageError

GUESTS = Path(exact.environments.adapters.guests.__file__).parent
PAGE = Path(exact.__file__).parents[1] / "docs" / "benchmarks" / "osworld.md"
DESKTOP_ENV = """
import easyocr
from desktop_env.evaluators.metrics import basic_os

def create_vm_manager_and_provider(*_, **__):
    raise AssertionError("not replaced")

class DesktopEnv:
    def __init__(self, provider_name, screen_size):
        assert provider_name == "docker"
        self.manager, self.provider = create_vm_manager_and_provider(provider_name, None, use_proxy=False)
        self.path = self.manager.get_vm_path(os_type="Ubuntu", region=None, screen_size=screen_size)
        self.provider.start_emulator(self.path, True, "Ubuntu")
        self.address = self.provider.get_ip_address(self.path)

    def read(self, text):
        return easyocr.Reader(["en"])

    def close(self):
        self.provider.stop_emulator(self.path)
"""
DESKTOP = """
import json, sys
print(json.dumps({"ports": [5, 6, 7]}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    known = asked["op"] == "save" or asked["name"] == "a"
    print(json.dumps({"ports": [8, 9, 10]} if known else {"ports": [8, 9, 10], "error": "there is no snapshot"}), flush=True)
sys.stderr.write("ended\\n")
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Return the beginning of a program that has both stand-ins."""
    metrics = tmp_path / "lib" / "desktop_env" / "evaluators" / "metrics"
    metrics.mkdir(parents=True)
    for folder in (metrics, metrics.parent, metrics.parent.parent):
        (folder / "__init__.py").touch()
    (metrics / "basic_os.py").write_text("def apps(text):\n    return eval(text)\n")
    (metrics.parent.parent / "desktop_env.py").write_text(DESKTOP_ENV)
    host = tmp_path / "lib" / "host.py"
    host.write_text(DESKTOP)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {host} "$@"\n')
    python.chmod(0o755)
    lines = (
        f"import os, sys; sys.path[:0] = [{str(GUESTS)!r}, {str(tmp_path / 'lib')!r}]",
        f"os.environ['EXACT_PYTHON'] = {str(python)!r}",
    )
    return "\n".join((*lines, "import osworld_provider as p", ""))


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]})


def test_states_are_saved_and_returned_to_and_the_desktop_ends(script: str) -> None:
    done = run(f"""{script}
with p.open_desktop_env() as env:
    print(env.address)
    env.provider.save_state(env.path, "a")
    print(env.provider.revert_to_snapshot(env.path, "a"), env.provider.get_ip_address(env.path))
    try:
        env.provider.revert_to_snapshot(env.path, "b")
    except p.ProviderError as error:
        print(error)
env.close()
""")
    assert done.stdout.splitlines() == ["127.0.0.1:5:6:0:7", "exact 127.0.0.1:8:9:0:10", "the desktop of exact: there is no snapshot"]
    assert done.stderr == "ended\n"


def test_a_stand_in_raises_when_it_is_used_and_no_metric_catches_it(script: str) -> None:
    done = run(f"""{script}
with p.open_desktop_env() as env:
    try:
        env.read("x")
    except Exception:
        print("0")
    except p.AbsentPackage as absent:
        print(absent)
""")
    assert done.stdout == "easyocr.Reader is needed to judge this task, and easyocr is not installed: pip install easyocr\n", done.stderr


def test_a_metric_evaluates_no_code_of_a_machine(script: str) -> None:
    done = run(f"""{script}
p.prepare()
from desktop_env.evaluators.metrics import basic_os
print(basic_os.apps("['a', 'b']"))
try:
    basic_os.apps("__import__('os').getpid()")
except ValueError:
    print("refused")
""")
    assert done.stdout.splitlines() == ["['a', 'b']", "refused"]


def test_a_desktop_that_does_not_start_says_why(script: str, tmp_path: Path) -> None:
    (tmp_path / "lib" / "host.py").write_text("import json; print(json.dumps({'error': 'no runsc found'}))")
    done = run(f"{script}\nwith p.open_desktop_env() as env: pass")
    assert done.stderr.splitlines()[-1] == "osworld_provider.ProviderError: the desktop of exact: no runsc found"


STEPS = """
import logging
from osworld_judge import EnvironmentFailure, Judge

logger = logging.getLogger("desktopenv.setup")

class Controller:
    def _execute_setup(self, command):
        logger.error("Attempt 1: retrying")
        logger.info("Command executed: %s", command)

    def _command_setup(self, **given):
        self._execute_setup(**given)

    def _launch_setup(self, command):
        logger.error("Failed to launch: %s", command)

    def _open_setup(self, path):
        raise ValueError(f"no window for {path}")

class Env:
    def __init__(self, answers):
        self.answers, self.setup_controller = answers, Controller()

    def reset(self, task_config):
        for step in task_config["config"] if self.answers else ():
            getattr(self.setup_controller, f"_{step['type']}_setup")(**step["parameters"])

def set_up(*steps, answers=True):
    judge = Judge((8, 6))
    judge._open = lambda address: Env(answers)
    try:
        print(judge.command("set_up", {"task": {"config": steps}, "address": ""}))
    except EnvironmentFailure as failure:
        print(failure)

run = {"type": "command", "parameters": {"command": "ls"}}
set_up(run, run)
set_up(run, {"type": "launch", "parameters": {"command": "code"}}, run)
set_up({"type": "open", "parameters": {"path": "a.txt"}})
set_up(run, answers=False)
"""


def test_a_step_whose_failure_desktop_env_only_logs_is_a_failure_with_its_reason(script: str) -> None:
    done = run(script + STEPS)
    assert done.stdout.splitlines() == [
        "{}",
        "step 2 of 3 of the set-up, launch, failed: Failed to launch: code",
        "step 1 of 1 of the set-up, open, failed: no window for a.txt",
        "desktop_env carried out 0 of 1 steps of the set-up: the machine does not answer",
    ], done.stderr


@pytest.mark.skipif(FOLDER not in os.environ, reason=f"OSWorld's tasks are not here: {FOLDER} names their folder")
def test_the_script_of_the_page_runs_word_for_word_with_the_real_package(tmp_path: Path) -> None:
    try:
        check_parts()
    except UsageError as error:
        pytest.skip(str(error))
    (tmp_path / "evaluation_examples").symlink_to(Path(os.environ[FOLDER]).expanduser().resolve())
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    variables = {**os.environ, "PYTHONPATH": str(GUESTS), "EXACT_PYTHON": sys.executable}
    done = subprocess.run([desktop_env_python(), "-c", blocks[0]], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)
    assert [float(line) for line in done.stdout.splitlines() if re.fullmatch(r"[01](\.0)?", line)] == [1.0, 0.0], done.stderr
