import json
import sys
from pathlib import Path

import pytest

from exact.cli.main import main
from exact.environments.check import CHECKS
from exact.environments.sandbox import find_runsc
from exact.errors import EnvironmentFailure

LIGHTS = f"{Path(__file__).parents[2] / 'examples' / 'own_environment' / 'lights.py'}:Lights"


def test_an_environment_of_a_file_is_checked_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("check", LIGHTS, "--quick", "--json", "--python", sys.executable)) == 0
    assert {each["name"] for each in json.loads(capsys.readouterr().out)} == set(CHECKS)


def test_one_that_does_not_start_in_its_sandbox_fails_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    assert main(("check", "nowhere.py:Lights", "--quick", "--sandbox")) == 1
    assert "nowhere.py" in capsys.readouterr().out


def test_a_task_id_is_no_factory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("check", "miniwob/click-test", "--python", sys.executable)) == 2
    assert "write module:factory or file.py:factory" in capsys.readouterr().err


def test_a_suite_without_tasks_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("EXACT_OSWORLD", raising=False)
    assert main(("check", "osworld")) == 2
    assert "osworld has no tasks here: docs/benchmarks.md says what it needs" in capsys.readouterr().err


def test_a_factory_may_give_an_async_context_manager_of_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "managed.py").write_text(
        "from contextlib import asynccontextmanager\nfrom exact.environments.toy.factory import ToyFactory, chain\n"
        "@asynccontextmanager\nasync def environments():\n    yield ToyFactory(chain(3))\n    print('closed')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(("check", "managed:environments", "--quick")) == 0
    assert "closed" in capsys.readouterr().out
