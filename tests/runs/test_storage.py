"""Run folders on storage are worked on as local copies, which no two processes write at once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from exact.errors import JournalError, UsageError
from exact.runs.storage import OWNER, STALE, stored_folder

URL = "memory://bucket/run"


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Go on as another machine, which has no local copy."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))


def wait_for(system: MemoryFileSystem, path: str, content: bytes) -> None:
    end = time.monotonic() + 20
    while not (system.exists(path) and system.cat_file(path) == content):
        assert time.monotonic() < end, f"{path} was not copied"
        time.sleep(0.01)


def test_what_changes_is_copied_while_it_is_written_and_at_the_end(memory: MemoryFileSystem) -> None:
    with stored_folder(URL, write=True, interval=0.02) as folder:
        (folder / "tasks").mkdir()
        (folder / "tasks" / "journal.jsonl").write_text("1\n")
        wait_for(memory, "/bucket/run/tasks/journal.jsonl", b"1\n")
        with (folder / "tasks" / "journal.jsonl").open("a") as file:
            file.write("2\n")
        wait_for(memory, "/bucket/run/tasks/journal.jsonl", b"1\n2\n")
        (folder / "old").write_text("x")
        wait_for(memory, "/bucket/run/old", b"x")
        (folder / "old").unlink()
        (folder / ".results.7.part").write_text("half")
    assert not folder.exists() and not folder.parent.exists()
    assert set(memory.find("/bucket/run")) == {"/bucket/run/tasks/journal.jsonl", f"/bucket/run/{OWNER}"}
    with stored_folder(URL, write=False) as copy:
        assert (copy / "tasks" / "journal.jsonl").read_text() == "1\n2\n" and (copy / OWNER).exists()
        (copy / "new").write_text("of a reader")
    assert not copy.exists() and not memory.exists("/bucket/run/new")


def test_an_error_in_the_block_loses_nothing(memory: MemoryFileSystem) -> None:
    with pytest.raises(KeyError), stored_folder(URL, write=True) as folder:
        (folder / "run.json").write_text("{}")
        raise KeyError
    assert memory.cat_file("/bucket/run/run.json") == b"{}"
    with stored_folder(URL, write=True) as folder:
        assert (folder / "run.json").read_text() == "{}"


def test_blobs_are_there_before_the_journals_that_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[str]()
    pipe = MemoryFileSystem.pipe_file
    monkeypatch.setattr(
        MemoryFileSystem, "pipe_file", lambda self, path, data, **more: (written.append(path), pipe(self, path, data, **more))
    )
    with stored_folder(URL, write=True) as folder:
        for name in ("agents/a/blobs/00/00ff", "agents/a/a.jsonl", "bench.json"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
    run = [path.removeprefix("/bucket/run/") for path in written if OWNER not in path]
    assert run == ["agents/a/blobs/00/00ff", "agents/a/a.jsonl", "bench.json"]


def test_a_database_is_copied_as_of_one_moment(memory: MemoryFileSystem) -> None:
    with stored_folder(URL, write=True) as folder:
        database = sqlite3.connect(folder / "memory.sqlite")
        with closing(database):
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE t (a)")
            with database:
                database.execute("INSERT INTO t VALUES (7)")
    assert [path for path in memory.find("/bucket/run") if "-wal" in path or "-shm" in path] == []
    with stored_folder(URL, write=False) as copy, closing(sqlite3.connect(copy / "memory.sqlite")) as database:
        assert database.execute("SELECT a FROM t").fetchall() == [(7,)]


def test_a_folder_that_another_machine_writes_is_refused_until_it_is_silent(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with stored_folder(URL, write=True) as folder:
        (folder / "run.json").write_text("{}")
        with pytest.raises(UsageError, match="by another process of this machine"), stored_folder(URL, write=True):
            pass
        entry = json.loads(memory.cat_file(f"/bucket/run/{OWNER}"))
    elsewhere(monkeypatch, tmp_path)
    memory.pipe_file(f"/bucket/run/{OWNER}", json.dumps(entry).encode())
    with pytest.raises(UsageError, match=f"being written by process {os.getpid()} of .*try again in"), stored_folder(URL, write=True):
        pass
    memory.pipe_file(f"/bucket/run/{OWNER}", json.dumps(entry | {"renewed": time.time() - STALE - 1}).encode())
    with stored_folder(URL, write=True) as folder:
        assert (folder / "run.json").read_text() == "{}"


def test_a_writer_that_was_replaced_overwrites_nothing(memory: MemoryFileSystem) -> None:
    with pytest.raises(JournalError, match=r"was taken over by process 7 of there; .*goes on"), stored_folder(URL, write=True) as folder:
        entry = json.loads(memory.cat_file(f"/bucket/run/{OWNER}"))
        memory.pipe_file(f"/bucket/run/{OWNER}", json.dumps(entry | {"token": "other", "place": "there:/x", "process": 7}).encode())
        (folder / "run.json").write_text("mine")
    assert not memory.exists("/bucket/run/run.json")


def test_after_a_kill_the_local_copy_is_gone_on_with(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/far/run"
    program = (
        "import sys, time\nfrom exact.runs.storage import stored_folder\n"
        f"with stored_folder({url!r}, write=True, interval=600) as folder:\n"
        "    (folder / 'run.json').write_text('late')\n    print('ready', flush=True)\n    time.sleep(600)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert killed.stdout is not None and killed.stdout.readline() == b"ready\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert not (tmp_path / "far" / "run" / "run.json").exists()
    with stored_folder(url, write=True) as folder:
        assert (folder / "run.json").read_text() == "late"
    assert (tmp_path / "far" / "run" / "run.json").read_text() == "late"


def test_names_that_lead_out_of_the_folder_are_refused(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(MemoryFileSystem, "find", lambda self, path, **more: {f"{path}/../../escaped": {"type": "file"}})
    with pytest.raises(JournalError, match=r"holds '\.\./\.\./escaped', which leads out"), stored_folder(URL, write=False):
        pass


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_file_is_refused_and_not_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    if kind == "pipe":
        os.mkfifo(tmp_path / "far" / "run.json")
    else:
        (tmp_path / "far" / "run.json").symlink_to("/etc/passwd")
    with (
        pytest.raises(JournalError, match=r"holds 'run\.json', which is a link or no file"),
        stored_folder(f"file://{tmp_path}/far", write=False),
    ):
        pass


@pytest.mark.parametrize(
    ("url", "said"),
    [("nowhere://x/y", "cannot open nowhere://x/y: .*nowhere"), ("file:///proc/none/run", "cannot write file:///proc/none/run")],
)
def test_an_address_that_cannot_be_used_is_one_line(url: str, said: str) -> None:
    with pytest.raises((UsageError, JournalError), match=said) as caught, stored_folder(url, write=True):
        pass
    assert "\n" not in str(caught.value)


def test_without_fsspec_the_way_to_install_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"pip install 'exact-agent\[storage\]'"), stored_folder(URL, write=True):
        pass


def test_what_cannot_be_copied_stays_on_this_machine(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JournalError, match=r"No space left.*is kept on this machine"), stored_folder(URL, write=True) as folder:
        (folder / "run.json").write_text("{}")

        def full(self: MemoryFileSystem, path: str, data: bytes, **more: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(MemoryFileSystem, "pipe_file", full)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parents[3]))
    with stored_folder(URL, write=True) as again:
        assert again == folder and (again / "run.json").read_text() == "{}"
