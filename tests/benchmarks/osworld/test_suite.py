"""OSWorld's tasks handed to desktop_env, by a stand-in for it: what it gets, and what its verdict becomes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from exact.benchmarks import registry
from exact.benchmarks.open import check_environments
from exact.benchmarks.osworld.format import OFFLINE, of, parse
from exact.benchmarks.osworld.suite import OSWorld, inspect
from exact.cli.main import main
from exact.config import BrowserConfig, Config, PolicyConfig
from exact.errors import InfrastructureError, UsageError
from exact.task import Outcome
from tests.benchmarks.osworld.test_format import item

STAND_IN = """
import json

class DesktopEnv:
    def __init__(self, **options):
        self.options, self.said = options, []

    def reset(self, task_config):
        self.said = []
        return {"screenshot": b"png", "accessibility_tree": json.dumps([self.options, task_config])}

    def step(self, action, pause):
        self.said.append(action)
        return {"screenshot": b"png", "accessibility_tree": " ".join(self.said)}, 0, action in ("DONE", "FAIL"), {}

    def evaluate(self):
        if self.said == ["WAIT", "FAIL"]:
            return float("nan")
        return 1.0 if self.said == ["pyautogui.click(1, 2)", "WAIT", "DONE"] else 0.4

    def close(self):
        pass
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OSWorld:
    package = tmp_path / "lib" / "desktop_env"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "desktop_env.py").write_text(STAND_IN)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "lib"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    path = tmp_path / "examples" / "chrome" / "0a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(item()))
    monkeypatch.setenv("EXACT_OSWORLD", str(tmp_path))
    monkeypatch.setenv("EXACT_OSWORLD_PYTHON", str(python))
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", '{"provider_name": "docker"}')
    return OSWorld()


async def test_a_task_is_set_up_carried_out_and_judged_over_there(suite: OSWorld) -> None:
    task = suite.task("osworld/chrome/0a")
    async with suite.environments(BrowserConfig()) as environments, environments.open(simulation=False) as environment:
        options, handed = json.loads((await environment.reset(task)).text)
        assert options["provider_name"] == "docker" and handed == item()
        for text in ('act "pyautogui.click(1, 2)"', "wait", 'stop "done"'):
            transition = await environment.step(environment.actions.parse(text))
        assert transition.terminated and transition.observation is None
        assert (await environment.evaluate(Outcome(actions=()))).success
        await environment.reset(task)
        await environment.step(environment.actions.parse("fail"))
        score = await environment.evaluate(Outcome(actions=()))
        assert (score.value, score.success) == (0.4, False), "a part of a solution is none"
        await environment.reset(task)
        await environment.step(environment.actions.parse("wait"))
        await environment.step(environment.actions.parse("fail"))
        with pytest.raises(InfrastructureError, match="metric is not a number"):
            await environment.evaluate(Outcome(actions=()))


def test_the_indices_of_a_checkout_are_lists(suite: OSWorld, tmp_path: Path) -> None:
    (tmp_path / "test_offline.json").write_text('{"chrome": ["0a", "absent"]}')
    assert suite.lists() == {"chrome": ["osworld/chrome/0a"], "offline": ["osworld/chrome/0a"]}


def test_each_seed_of_a_task_is_an_attempt_of_its_own(suite: OSWorld) -> None:
    found = [suite.task(f"osworld/chrome/0a?seed={seed}") for seed in (0, 3)]
    assert [(task.id, task.seed) for task in found] == [("osworld/chrome/0a?seed=0", 0), ("osworld/chrome/0a?seed=3", 3)]


async def test_missing_requirements_are_reported(suite: OSWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="did you mean 'osworld/chrome/0a'"):
        suite.task("osworld/chrome/0b")
    monkeypatch.setenv("EXACT_OSWORLD_PYTHON", "/nowhere/python")
    with pytest.raises(UsageError, match=r"no /nowhere/python, .* need: run shells/setup.sh --osworld"):
        async with suite.environments(BrowserConfig()):
            pass
    monkeypatch.setenv("EXACT_OSWORLD_PYTHON", sys.executable)
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", '{"screen_size": "large"}')
    with pytest.raises(UsageError, match=r"EXACT_OSWORLD_OPTIONS: screen_size is large: give a list"):
        async with suite.environments(BrowserConfig()):
            pass
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", '{"action_space": "elemnts"}')
    with pytest.raises(UsageError, match=r"EXACT_OSWORLD_OPTIONS: action_space is elemnts: give one of .*elements"):
        async with suite.environments(BrowserConfig()):
            pass
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", '{"setle_seconds": 5}')
    with pytest.raises(UsageError, match="unknown key 'setle_seconds' in EXACT_OSWORLD_OPTIONS: did you mean 'settle_seconds'"):
        async with suite.environments(BrowserConfig()):
            pass


@pytest.mark.parametrize("named", ["osworld", "osworld/*", "osworld/@offline", "osworld/chrome/0a"])
def test_tasks_that_are_not_here_are_told_with_the_way_to_them(
    named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("EXACT_OSWORLD", raising=False)
    monkeypatch.setattr("exact.benchmarks.registry.suites", lambda: {"osworld": OSWorld()})
    assert main(["list", "tasks", named]) == 2
    assert "set EXACT_OSWORLD to the folder" in capsys.readouterr().err


ASKING_CODE = {"func": "compare_config", "result": {"type": "vscode_config", "path": "/home/user/a.txt", "dest": "a.txt"}}
"""Evaluator that runs a command of Visual Studio Code."""


async def test_a_program_that_a_task_needs_is_missed_before_anything_begins(suite: OSWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exact.benchmarks.osworld.suite.check_parts", lambda: True)
    monkeypatch.setattr("exact.environments.desktop.account.installed", lambda program: program != "code")
    chrome, code = suite.task("osworld/chrome/0a"), parse(item(id="0c", evaluator=ASKING_CODE), "here").task("vs_code")
    check_environments((chrome,), Config())
    for tasks in ((chrome, code), (code, chrome)):
        with pytest.raises(UsageError, match=r"^task osworld/vs_code/0c\?seed=0 needs code, not installed: .*Visual Studio Code"):
            check_environments(tasks, Config())
    check_environments((parse(item(related_apps=["os", "vscode"]), "here").task("multi_apps"),), Config())  # other editors do


@pytest.mark.parametrize("policy", ["learned", "lexical"])
def test_an_agent_that_acts_on_elements_is_refused_without_them(suite: OSWorld, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", "{}")
    config = Config(policy=PolicyConfig(kind=policy))
    with pytest.raises(UsageError, match=r"proposes actions on elements, and the actions here are pyautogui: set .*action_space.*elements"):
        check_environments((suite.task("osworld/chrome/0a"),), config)
    suite.check_policy("llm")
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", '{"action_space": "elements"}')
    suite.check_policy(policy)


def test_a_folder_that_does_not_exist_is_said_not_to(suite: OSWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_OSWORLD", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere: name the folder evaluation_examples"):
        suite.ids()


def test_a_task_records_how_long_its_states_settle_before_they_are_judged(suite: OSWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "settle_seconds" not in suite.task("osworld/chrome/0a").private, "other providers judge at once"
    monkeypatch.setenv("EXACT_OSWORLD_OPTIONS", '{"settle_seconds": 5}')
    task = suite.task("osworld/chrome/0a")
    assert task.private["settle_seconds"] == 5 and of(task).handed() == item()


def test_the_offline_tasks_are_known_without_an_index(suite: OSWorld, tmp_path: Path) -> None:
    assert "offline" not in suite.lists()
    known = OFFLINE["os"][0]
    path = tmp_path / "examples" / "os" / f"{known}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(item(id=known)))
    assert OSWorld().lists()["offline"] == [f"osworld/os/{known}"]
    assert sum(map(len, OFFLINE.values())) == len({(domain, id) for domain, ids in OFFLINE.items() for id in ids}) == 43


def test_a_dry_run_checks_what_a_run_checks_and_shows_no_evaluator(
    suite: OSWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(registry.suites()._suites, "osworld", suite)
    monkeypatch.setenv("EXACT_OSWORLD_PYTHON", "/nowhere/python")
    arguments = ("osworld/chrome/0a", "--set", "policy.kind=learned", "--set", "search.algorithm=mcts")
    assert main(["run", *arguments, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "compare_docx_files" not in said and "gold.docx" not in said
    assert "this run would not start: there is no /nowhere/python" in said
    assert main(["run", *arguments]) == 2
    assert "there is no /nowhere/python" in capsys.readouterr().err


def test_doctor_says_what_the_tasks_lack(suite: OSWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    assert inspect()[1] == "" and inspect()[0].startswith("1 task in ")
    monkeypatch.setattr("exact.benchmarks.osworld.suite.check_parts", lambda: True)
    monkeypatch.setattr("exact.environments.desktop.account.installed", lambda program: False)
    found, fix = inspect()
    assert found.endswith("not installed: google-chrome (1 task)") and "Visual Studio Code" in fix
    monkeypatch.delenv("EXACT_OSWORLD")
    assert inspect() == ("no tasks", "set EXACT_OSWORLD to the folder evaluation_examples of a checkout of OSWorld")
