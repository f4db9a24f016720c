"""OSWorld's task files are read strictly and handed on whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exact.benchmarks.osworld import collection, parse, read
from exact.benchmarks.osworld.format import Getter, of
from exact.errors import UsageError
from exact.task import Task


def item(**fields: Any) -> dict[str, Any]:
    """Return the content of a task file in the published form."""
    config = [{"type": "launch", "parameters": {"command": ["google-chrome"]}}, {"type": "sleep", "parameters": {"seconds": 2}}]
    result = {"type": "vm_file", "path": "/home/user/a.docx", "dest": "a.docx"}
    expected = {"type": "cloud_file", "path": "https://example.org/gold.docx", "dest": "gold.docx"}
    evaluator = {"postconfig": [config[1]], "func": "compare_docx_files", "result": result, "expected": expected, "options": {"x": 1}}
    plain = {"id": "0a", "snapshot": "chrome", "instruction": "Do it.", "source": "https://example.org", "trajectory": "trajectories/"}
    return {**plain, "config": config, "related_apps": ["chrome"], "evaluator": evaluator, "proxy": False, **fields}


def test_a_file_is_handed_on_with_every_key() -> None:
    made = parse(item(possibility_of_env_change="low"), "x.json")
    assert made.handed() == item(possibility_of_env_change="low") and made.possible
    assert [step.type for step in made.config] == ["launch", "sleep"] and made.evaluator.postconfig[0].parameters == {"seconds": 2}


def test_a_task_takes_its_file_with_it() -> None:
    task = parse(item(), "x.json").task("chrome")
    assert (task.id, task.instruction) == ("osworld/chrome/0a?seed=0", "Do it.")
    assert of(task).handed() == item()
    with pytest.raises(UsageError, match="none of OSWorld's"):
        of(Task(id="a", instruction=""))


def test_several_metrics_have_as_many_things_to_look_at() -> None:
    getter = {"type": "vm_file"}
    several = {"func": ["a", "b"], "conj": "or", "result": [getter, getter], "expected": [getter, None], "options": [{}, {}]}
    assert parse(item(evaluator=several), "x.json").evaluator.conj == "or"
    assert not parse(item(evaluator={"func": "infeasible"}), "x.json").possible


GETTER = {"type": "vm_file"}


def test_empty_fields_are_absent_as_in_desktop_env() -> None:
    made = parse(item(evaluator={"func": "f", "result": GETTER, "expected": {}}), "x.json")
    assert made.evaluator.expected is None and made.handed()["evaluator"]["expected"] == {}, "it is handed on as it is"
    several = {"func": ["f", "g"], "result": [GETTER, GETTER], "expected": [{}, GETTER]}
    assert parse(item(evaluator=several), "x.json").evaluator.expected == (None, Getter(type="vm_file"))
    assert not parse(item(evaluator={"func": "infeasible", "result": {}}), "x.json").possible
    bare = item()
    del bare["config"]
    assert parse(bare, "x.json").config == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"evaluator": {}}, r"x\.json: task 0a: Object missing required field `func` - at `\$\.evaluator`"),
        ({"config": [{"parameters": {}}]}, r"x\.json: task 0a: .*`type` - at `\$\.config\[0\]`"),
        ({"instruction": None}, r"task 0a: Expected `str`, got `null` - at `\$\.instruction`"),
        ({"evaluator": {"func": "f", "result": {}}}, r"task 0a: `evaluator`\.result is missing"),
        ({"evaluator": {"func": "f"}}, r"task 0a: `evaluator`\.result is missing"),
        ({"evaluator": {"func": ["f", "g"], "result": [GETTER]}}, r"`evaluator`\.result must be a list of 2"),
        ({"evaluator": {"func": "f", "result": [GETTER]}}, r"\.result is a list, and `func` is one metric"),
        ({"evaluator": {"func": ["f"], "result": [GETTER], "conj": "xor"}}, r"Invalid enum value 'xor'"),
    ],
)
def test_an_error_names_file_task_and_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(item(**change), "x.json")


def test_a_checkout_s_tasks_are_found(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no tasks: name the folder evaluation_examples"):
        collection(tmp_path)
    path = tmp_path / "examples" / "chrome" / "0a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(item()))
    assert collection(tmp_path) == {"chrome": ("0a",)} and read(path).id == "0a"
    (tmp_path / "test_all.json").write_text(json.dumps({"gimp": ["1b"]}))
    assert collection(tmp_path) == {"gimp": ("1b",)}
    (tmp_path / "test_all.json").write_text("[1]")
    with pytest.raises(UsageError, match=r"test_all\.json is no index"):
        collection(tmp_path)


def test_the_files_that_an_evaluator_reads_are_known() -> None:
    command = "cat ~/notes.txt | grep -c x; stat '/home/user/Desktop/b' \"$HOME/c\""
    getters = [{"type": "vm_file", "path": "/home/user/a b.docx"}, {"type": "vm_command_line", "command": ["bash", "-c", command]}]
    made = parse(item(evaluator={"func": ["f", "g"], "result": getters, "expected": [None, {"type": "rule", "rules": {}}]}), "x.json")
    assert set(made.files) >= {"/home/user/a b.docx", "~/notes.txt", "/home/user/Desktop/b", "$HOME/c"}
    assert parse(item(evaluator={"func": "infeasible"}), "x.json").files == ()
