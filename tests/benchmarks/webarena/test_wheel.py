"""Task files come from an installed package, a wheel, a folder or a file; nothing of a wheel but its data is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from exact.benchmarks.webarena import WebArena
from exact.benchmarks.webarena.wheel import Wheel, task_file
from exact.errors import UsageError

WHEEL = Wheel("libtest", "1.0", "exact_no_such_module", "test.json", "EXACT_TEST_TASKS")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def packed(folder: Path) -> Path:
    path = folder / "libtest-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("exact_no_such_module/test.json", "[]")
        archive.writestr("exact_no_such_module/__init__.py", "raise SystemExit")
    return path


def test_a_wheel_is_unpacked_once_without_its_code(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHEEL.variable, str(packed(tmp_path)))
    found = task_file(WHEEL)
    assert found.read_text() == "[]" and [path.name for path in cache.rglob("*") if path.is_file()] == ["test.json"]
    packed(tmp_path).unlink()
    assert task_file(WHEEL) == found


def test_files_beside_the_task_file_are_unpacked_with_it(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("exact_no_such_module/lists/hard.json", "[1]")
    monkeypatch.setenv(WHEEL.variable, str(path))
    found = task_file(WHEEL._replace(others=("lists/hard.json",)))
    assert (found.parent / "lists" / "hard.json").read_text() == "[1]" and found.read_text() == "[]"


def test_a_file_and_its_folders_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "exact_no_such_module"
    folder.mkdir()
    (folder / "test.json").write_text("[]")
    for place in (folder / "test.json", folder, tmp_path):
        monkeypatch.setenv(WHEEL.variable, str(place))
        assert task_file(WHEEL) == folder / "test.json"


def test_a_place_without_the_file_is_named_with_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHEEL.variable, str(tmp_path))
    with pytest.raises(UsageError, match=r"EXACT_TEST_TASKS is .* there is no test.json"):
        task_file(WHEEL)
    (tmp_path / "torn.whl").write_bytes(b"PK\3\4 and no more")
    monkeypatch.setenv(WHEEL.variable, str(tmp_path / "torn.whl"))
    with pytest.raises(UsageError, match=r"torn\.whl is no wheel of libtest"):
        task_file(WHEEL)


def test_without_a_network_the_way_to_the_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WHEEL.variable, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(UsageError, match=r"cannot be fetched .* set EXACT_TEST_TASKS to the file"):
        task_file(WHEEL)


def test_ids_need_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXACT_WEBARENA", raising=False)
    monkeypatch.setattr("exact.benchmarks.webarena.suite.task_file", None)
    assert len(WebArena().ids()) == 812


def test_a_file_that_the_environment_names_and_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_WEBARENA", "/nowhere")
    for asked in (WebArena().ids, lambda: WebArena().task("webarena/3")):
        with pytest.raises(UsageError, match="EXACT_WEBARENA is /nowhere"):
            asked()
