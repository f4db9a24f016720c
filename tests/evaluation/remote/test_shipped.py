"""Files that attempts elsewhere need, and how they are found there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from exact.config import parse
from exact.errors import UsageError
from exact.evaluation.remote import parcel
from exact.evaluation.remote.parcel import collect
from exact.plugins import attribute
from exact.task import Task

CODE = "def value():\n    return {}\n"


def test_a_plug_in_named_by_file_is_found_where_the_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CODE.format(4711))
    sent = collect([parse({"policy": {"kind": f"{path}:value"}})], [])
    path.unlink()
    sent.unpack(tmp_path / "there")
    assert attribute("policy.kind", f"{path}:value", "exact.policies")() == 4711


def test_a_module_of_the_current_folder_is_sent_with_its_package_and_an_installed_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "own_package_4711"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text(CODE.format(7))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sent = collect([parse({"policy": {"kind": "own_package_4711.inner:value"}, "value": {"kind": "msgspec:Struct"}})], [])
    assert sorted(sent.files) == ["modules/own_package_4711/__init__.py", "modules/own_package_4711/inner/__init__.py"]
    monkeypatch.chdir("/")
    sent.unpack(tmp_path / "there")
    assert attribute("policy.kind", "own_package_4711.inner:value", "exact.policies")() == 7
    del sys.modules["own_package_4711.inner"], sys.modules["own_package_4711"]


def test_code_that_the_private_part_of_a_task_names_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CODE.format(1))
    private = {"environment": f'{{"kind": "{path}:value"}}', "evaluate": f"{path}:value"}
    sent = collect([], [Task(id="a", instruction="", private=private)])
    assert list(sent.code) == [str(path)] and list(sent.files.values()) == [path.read_bytes()]


def test_prompts_and_files_of_tasks_are_found_where_they_were_unpacked(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "policy.md").write_text("a prompt")
    (tmp_path / "upload.txt").write_text("a file")
    config, task = parse({"prompts": str(tmp_path / "prompts")}), Task(id="a", instruction="", files=(str(tmp_path / "upload.txt"),))
    sent = collect([config], [task])
    there = tmp_path / "there"
    sent.unpack(there)
    assert (Path(sent.config_in(there, config).prompts) / "policy.md").read_text() == "a prompt"
    assert Path(sent.task_in(there, task).files[0]).read_text() == "a file"
    assert Path(sent.task_in(there, task).files[0]).name == "upload.txt"


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").write_bytes(b"x" * 101)
    monkeypatch.setattr(parcel, "MOST", 100)
    with pytest.raises(UsageError, match="101 bytes, more than 100: install them on the nodes"):
        collect([], [Task(id="a", instruction="", files=(str(tmp_path / "large"),))])
