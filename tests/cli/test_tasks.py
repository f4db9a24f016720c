import json

import pytest

from exact.benchmarks.registry import suites
from exact.cli.main import main


def lines(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    assert main(args) == 0
    return capsys.readouterr().out.splitlines()


def test_the_list_has_every_task_of_every_suite_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "tasks", "list") == [id for suite in suites().values() for id in suite.ids()]


def test_the_list_of_a_suite_has_its_tasks_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "tasks", "list", "miniwob") == list(suites()["miniwob"].ids())


def test_a_pattern_lists_the_tasks_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "tasks", "list", "miniwob/click-te[s]t?seed=1..2") == ["miniwob/click-test?seed=1", "miniwob/click-test?seed=2"]


def test_the_list_as_json_is_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads("\n".join(lines(capsys, "tasks", "list", "miniwob", "--json"))) == list(suites()["miniwob"].ids())


def test_showing_a_task_says_its_id_and_start(capsys: pytest.CaptureFixture[str]) -> None:
    shown = dict(line.split(": ", 1) for line in lines(capsys, "tasks", "show", "miniwob/click-test?seed=3"))
    assert shown["id"] == "miniwob/click-test?seed=3"
    assert shown["start"].endswith("click-test.html")
    assert shown["seed"] == "3"


def test_a_task_as_json_has_the_same_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(lines(capsys, "tasks", "show", "miniwob/click-test?seed=3", "--json")[0])["seed"] == 3


@pytest.mark.parametrize(("args", "nearest"), [(("list", "miniwab"), "'miniwob'"), (("show", "miniwob/clik-test"), "'miniwob/click-test'")])
def test_an_unknown_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], nearest: str) -> None:
    assert main(["tasks", *args]) == 2
    assert f"did you mean {nearest}?" in capsys.readouterr().err
