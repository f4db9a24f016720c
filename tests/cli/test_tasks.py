import json
from pathlib import Path

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


FILE = """
site: {name: shop, url: "http://127.0.0.1:8765/"}
tasks:
  - {id: order, instruction: "Order two packs.", seed: 3}
  - {id: open-hours, instruction: "Find the opening hours."}
"""


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [("", ["shop/order", "shop/open-hours"]), ("#order", ["shop/order"]), ("#open-*", ["shop/open-hours"])],
)
def test_the_tasks_of_a_file_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, ids: list[str]) -> None:
    (tmp_path / "tasks.yaml").write_text(FILE)
    assert main(("tasks", "list", f"{tmp_path / 'tasks.yaml'}{pattern}")) == 0
    assert capsys.readouterr().out.splitlines() == ids
    assert main(("tasks", "list", f"{tmp_path / 'tasks.yaml'}{pattern}", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == ids


def test_a_task_of_a_file_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tasks.yml").write_text(FILE)
    assert main(("tasks", "show", f"{tmp_path / 'tasks.yml'}#order")) == 0
    assert "instruction: Order two packs." in capsys.readouterr().out
    assert main(("tasks", "show", f"{tmp_path / 'tasks.yml'}")) == 2
    assert "names 2 tasks: name one" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [(None, "No such file"), ("tasks: [", "is not YAML"), (FILE, "did you mean 'order'?")])
def test_a_file_whose_tasks_cannot_be_listed_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "tasks.yaml").write_text(text)
    assert main(("tasks", "list", f"{tmp_path / 'tasks.yaml'}#ordre")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
