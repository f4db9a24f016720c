"""`exact list`: tasks, configurations, prompts, providers and algorithms."""

import json
from pathlib import Path

import pytest
import yaml

from exact.benchmarks.registry import suites
from exact.cli.main import main
from exact.config import load, shipped

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "shells" / "configs" / "react_gpt-4o.yaml"


def lines(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    assert main(args) == 0
    return capsys.readouterr().out.splitlines()


def test_the_list_has_every_task_of_every_suite_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "list", "tasks") == [id for suite in suites().values() for id in suite.ids()]


def test_the_list_of_a_suite_has_its_tasks_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "list", "tasks", "miniwob") == list(suites()["miniwob"].ids())


def test_a_pattern_lists_the_tasks_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "list", "tasks", "miniwob/click-te[s]t?seed=1..2") == ["miniwob/click-test?seed=1", "miniwob/click-test?seed=2"]


def test_the_list_as_json_is_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads("\n".join(lines(capsys, "list", "tasks", "miniwob", "--json"))) == list(suites()["miniwob"].ids())


def test_showing_a_task_says_its_id_and_start(capsys: pytest.CaptureFixture[str]) -> None:
    shown = dict(line.split(": ", 1) for line in lines(capsys, "list", "tasks", "miniwob/click-test?seed=3", "--fields"))
    assert shown["id"] == "miniwob/click-test?seed=3"
    assert shown["start"].endswith("click-test.html")
    assert shown["seed"] == "3"


def test_a_task_as_json_has_the_same_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(lines(capsys, "list", "tasks", "miniwob/click-test?seed=3", "--fields", "--json")[0])["seed"] == 3


@pytest.mark.parametrize(("args", "nearest"), [(("miniwab",), "'miniwob'"), (("miniwob/clik-test", "--fields"), "'miniwob/click-test'")])
def test_an_unknown_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], nearest: str) -> None:
    assert main(["list", "tasks", *args]) == 2
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
    assert main(("list", "tasks", f"{tmp_path / 'tasks.yaml'}{pattern}")) == 0
    assert capsys.readouterr().out.splitlines() == ids
    assert main(("list", "tasks", f"{tmp_path / 'tasks.yaml'}{pattern}", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == ids


def test_a_task_of_a_file_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tasks.yml").write_text(FILE)
    assert main(("list", "tasks", f"{tmp_path / 'tasks.yml'}#order", "--fields")) == 0
    assert "instruction: Order two packs." in capsys.readouterr().out
    assert main(("list", "tasks", f"{tmp_path / 'tasks.yml'}", "--fields")) == 2
    assert "names 2 tasks: name one" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [(None, "No such file"), ("tasks: [", "is not YAML"), (FILE, "did you mean 'order'?")])
def test_a_file_whose_tasks_cannot_be_listed_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "tasks.yaml").write_text(text)
    assert main(("list", "tasks", f"{tmp_path / 'tasks.yaml'}#ordre")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_configuration_is_shown_with_every_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["list", "configs", str(CONFIG), "--set", "search.k=3"]) == 0
    shown = tmp_path / "shown.yaml"
    shown.write_text(capsys.readouterr().out)
    assert load(shown) == load(CONFIG, ["search.k=3"])
    assert yaml.safe_load(shown.read_text())["search"]["depth"] == load(CONFIG).search.depth


def test_json_output_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "configs", str(CONFIG), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"]["policy"]["model"] == "gpt-4o"


def test_an_unknown_key_is_wrong_usage_that_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "configs", str(CONFIG), "--set", "serch.k=3"]) == 2
    assert "did you mean 'search'?" in capsys.readouterr().err


def test_the_shipped_configurations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "list", "configs") == json.loads("\n".join(lines(capsys, "list", "configs", "--json"))) == sorted(shipped())


@pytest.mark.parametrize("args", [("configs", "--set", "search.k=3"), ("prompts", "--example"), ("prompts", "--out", "prompts.txt")])
def test_an_option_of_one_entry_is_refused_for_a_list(capsys: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    assert main(["list", *args]) == 2
    assert f"{args[1]} has no effect without" in capsys.readouterr().err


def test_a_missing_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "configs", "nowhere.yaml"]) == 2
    assert "cannot read configuration nowhere.yaml" in capsys.readouterr().err


def test_the_algorithms_that_can_be_named_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "algorithms"]) == 0
    listed = capsys.readouterr().out.split()
    assert {"mcts", "gumbel", "abmcts", "best_of_n", "flat_halving"} <= set(listed) and listed[0] == "react"


def test_the_list_names_each_prompt_with_its_version_and_hash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "prompts"]) == 0
    plain = capsys.readouterr().out
    assert "policy@" in plain and "value@" in plain
    assert main(["list", "prompts", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= {"policy", "value", "reflection"}


def test_a_shown_prompt_is_the_file_and_can_replace_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["list", "prompts", "value"]) == 0
    (tmp_path / "value.j2").write_text(capsys.readouterr().out.replace("You judge", "You are to judge"))
    assert main(["list", "prompts", "value", "--example", "--folder", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "You are to judge" in out and "⟦goal" in out and "Choose" not in out


def test_a_prompt_may_go_to_a_file(tmp_path: Path) -> None:
    assert main(["list", "prompts", "policy", "--example", "-o", str(tmp_path / "p.txt")]) == 0
    assert "=== user" in (tmp_path / "p.txt").read_text()


@pytest.mark.parametrize("arguments", [[], ["--example"]])
def test_an_unknown_prompt_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["list", "prompts", "polcy", *arguments]) == 2
    assert "did you mean 'policy'" in capsys.readouterr().err


def test_providers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "providers"]) == 0
    out = capsys.readouterr().out
    assert "anthropic" in out and "OPENAI_API_KEY" in out
    assert main(["list", "providers", "--json"]) == 0 and "gemini" in json.loads(capsys.readouterr().out)
