"""exact's agent in BrowserGym's own loop, with the real package in its virtual environment, and its process by itself."""

import importlib.resources
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exact.environments.adapters.gym import browsergym_python
from exact.errors import UsageError
from exact.interop.browsergym import ExactAgentArgs

ROOT = Path(__file__).parents[2]
BUTTONS = [
    {"id": "7", "role": "button", "name": "ONE", "depth": 0, "visible": True, "states": [], "value": None, "box": None},
    {"id": "9", "role": "button", "name": "TWO", "depth": 0, "visible": True, "states": [], "value": None, "box": None},
]
SEEN = {"text": '[7] button "ONE"\n[9] button "TWO"', "fingerprint": "a", "url": "http://a/", "elements": BUTTONS, "tabs": []}


def message(error: str = "") -> str:
    seen = {**SEEN, "title": "Buttons", "instruction": "Click button TWO."}
    return json.dumps({"observation": seen, "picture": None, "error": error, "height": 720.0}) + "\n"


def peer(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exact.interop.browsergym_peer", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, env=env)


def test_browsergyms_loop_is_solved_by_the_built_in_policy(executable: str) -> None:
    try:
        python = browsergym_python()
    except UsageError as error:
        pytest.skip(str(error))
    pages = Path(str(importlib.resources.files("miniwob"))) / "html" / "miniwob"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "EXACT_PYTHON": sys.executable, "EXACT_BROWSER": executable}
    example = [str(python), str(ROOT / "examples" / "interop" / "browsergym_loop.py")]
    done = subprocess.run(example, env={**env, "MINIWOB_URL": f"{pages.as_uri()}/"}, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "score 1.0\n"), done.stderr


def test_a_refused_action_is_not_tried_again_at_once() -> None:
    done = peer("rmcts_builtin", lines=message() + message("the element is covered"))
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["action"] == "click('9')" and first["stats"]["prior"] > 0.5 and first["think"]
    assert second["action"] != first["action"]


def test_a_policy_that_cannot_answer_is_an_error_and_the_process_goes_on(tmp_path: Path) -> None:
    config = tmp_path / "agent.yaml"
    model = "{model: x, base_url: 'http://127.0.0.1:1/v1', retries: 0, timeout: 2}"
    config.write_text(f"name: x\npolicy: {{kind: llm}}\nmodels: {{policy: {model}}}\n")
    done = peer(str(config), lines=message() * 2)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["error"].partition(":")[0] for answer in answers] == ["ModelError", "ModelError"] and done.returncode == 0


def test_a_wrong_configuration_is_one_line_on_standard_error() -> None:
    done = peer("rmcts_bultin")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "rmcts_builtin" in done.stderr and not done.stdout


def test_what_studies_ask_of_agent_arguments_is_there() -> None:
    arguments = ExactAgentArgs(settings=("search.k=2",))
    arguments.set_benchmark(None, demo_mode=False)
    arguments.prepare()
    arguments.set_reproducibility_mode()
    arguments.close()
    assert arguments.agent_name == "exact" and arguments.settings == ("search.k=2", "models.policy.temperature=0")
