"""The files of a run."""

from __future__ import annotations

import errno
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from exact.errors import JournalError, UsageError
from exact.observation import Observation
from exact.runs.journal.store import Blobs, Manifest, ResultLine, RunFolder, write_whole
from exact.task import Task
from tests.runs.toys import config, toy_runner


def task(id: str) -> Task:
    return Task(id=id, instruction="")


def line(n: int, **fields: object) -> ResultLine:
    return ResultLine(task=f"t{n}", seed=n, agent="a", status="scored", **fields)  # type: ignore[arg-type]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- blobs


def test_equal_content_is_one_file(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    names = {blobs.put(b"picture"), blobs.put(b"picture"), Blobs(tmp_path).put(b"picture"), blobs.put(b"")}
    assert len(names) == 2 == len(files(tmp_path))
    assert {blobs.get(name) for name in names} == {b"picture", b""}


def test_damaged_and_missing_blobs_are_errors_that_name_them(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    name = blobs.put(b"picture")
    files(tmp_path)[0].write_bytes(b"pictura")
    with pytest.raises(JournalError, match=f"blob {name[:12]} .* damaged"):
        blobs.get(name)
    files(tmp_path)[0].unlink()
    with pytest.raises(JournalError, match=f"blob {name[:12]} is missing"):
        blobs.get(name)


async def test_a_search_reads_each_observation_once_however_many_contexts_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, get = Counter[str](), Blobs.get
    monkeypatch.setattr(Blobs, "get", lambda self, name: (read.update([name]), get(self, name))[1])
    settings = config(search={"algorithm": "mcts", "iterations": 12, "k": 2, "depth": 9}, limits={"actions": 1})
    await toy_runner(tmp_path, ToyFactory(chain(9)), settings).run()
    assert len(read) >= 6 and set(read.values()) == {1}


def test_what_a_detector_finds_later_is_in_an_observation_that_was_read_before(tmp_path: Path) -> None:
    found = dict[str, tuple[str, ...]]()
    blobs = Blobs(tmp_path).with_marks(found)
    name, _ = blobs.put_observation(Observation(text="a", fingerprint="f"))
    assert blobs.get_observation(name).marked == ()
    found[name] = ("speaks to a model",)
    assert blobs.get_observation(name).marked == ("speaks to a model",)


def test_an_observation_and_its_screenshot_are_two_blobs(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    seen = Observation(text="a", fingerprint="f", screenshot=b"\x89PNG")
    name, screenshot = blobs.put_observation(seen)
    assert blobs.get(screenshot) == b"\x89PNG" and b"PNG" not in blobs.get(name)
    assert blobs.get_observation(name, screenshot) == seen
    assert blobs.get_observation(name).screenshot is None
    assert blobs.put_observation(Observation(text="a", fingerprint="f")) == (name, "")


def test_a_full_disk_leaves_neither_a_blob_nor_a_part_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(JournalError, match="No space left on device"):
        Blobs(tmp_path).put(b"picture")
    assert files(tmp_path) == []


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    write_whole(path, b"old")

    def killed(fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and files(tmp_path) == [path]


# --- the run


def test_a_run_is_created_once_and_opened_again(tmp_path: Path) -> None:
    manifest = Manifest(tasks=(task("a"), task("b")), agent="x", versions={"exact": "1"})
    RunFolder.create(tmp_path / "run", manifest, "name: x\n")
    assert RunFolder.open(tmp_path / "run").manifest == manifest
    assert (tmp_path / "run" / "config.yaml").read_text() == "name: x\n"
    with pytest.raises(UsageError, match="already holds a run: `exact resume"):
        RunFolder.create(tmp_path / "run", manifest, "")


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run in"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(JournalError, match=r"run\.json does not read"):
        _ = RunFolder.open(tmp_path).manifest


def test_where_no_run_can_be_made_the_way_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="choose another output folder"):
        RunFolder.create(tmp_path / "file" / "run", Manifest(tasks=(), agent="x"), "")


ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)


@given(ids)
@example("..")
@example(".")
@example("")
@example("a/../../b")
@example("/etc/passwd")
@example("\0")
@example("漢" * 200)
@example("x" * 1000)
def test_a_task_has_a_folder_of_its_own_below_the_run(id: str) -> None:
    folder = RunFolder(Path("/runs/one")).task_folder(task(id))
    assert folder.parent == Path("/runs/one/tasks")
    assert folder.name.isascii() and folder.name not in ("", ".", "..") and "\0" not in folder.name
    assert len(os.fsencode(folder.name)) <= 120


@given(ids, ids)
@example("a/b", "a_b")
@example("a b", "a\tb")
@example("x" * 300, "x" * 301)
@example("miniwob/click-test?seed=1", "miniwob/click-test?seed=11")
def test_distinct_tasks_have_distinct_folders(one: str, other: str) -> None:
    run = RunFolder(Path("run"))
    assert (run.task_folder(task(one)) == run.task_folder(task(other))) == (one == other)


def test_the_name_of_a_task_can_be_read_in_that_of_its_folder() -> None:
    assert RunFolder(Path("run")).task_folder(task("miniwob/click-test?seed=3")).name.startswith("miniwob_click-test_seed=3")


# --- results


def test_results_come_back_in_order(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert list(run.results()) == []
    lines = [line(0, score=1.0, cost=None), line(1, reason='"\n'), line(2)]
    for each in lines:
        run.add_result(each)
    assert list(run.results()) == lines


def test_a_torn_last_result_is_left_out_and_cut_off_by_the_next(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    for n in range(3):
        run.add_result(line(n))
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    assert list(run.results()) == [line(0), line(1)]
    run.add_result(line(3))
    assert list(run.results()) == [line(0), line(1), line(3)]


def test_a_damaged_result_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    for n in range(3):
        run.add_result(line(n))
    path = tmp_path / "results.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][5:], *lines[2:]]))
    with pytest.raises(JournalError, match=r"results\.jsonl:2 does not read"):
        list(run.results())


def test_a_result_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot write"):
        RunFolder(tmp_path / "none").add_result(line(0))


def test_threads_that_write_one_file_at_once_leave_it_whole(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for written in [pool.submit(write_whole, tmp_path / "blob", b"x" * 1000) for _ in range(200)]:
            written.result()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"blob": b"x" * 1000}
