import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exact.environments.sandbox import room
from exact.environments.sandbox.room import Room, owner, started, sweep
from exact.errors import EnvironmentError_

OPEN = "import os, sys; from exact.environments.sandbox.room import Room; from pathlib import Path"
KILLED = f"{OPEN}; print(Room(Path(sys.argv[1])).path, flush=True)"


def left_by_a_dead_process(parent: Path) -> Path:
    done = subprocess.run([sys.executable, "-c", f"{KILLED}; os.kill(os.getpid(), 9)", parent], capture_output=True, text=True)
    return Path(done.stdout.strip())


def test_a_room_is_private_and_says_whose_it_is(tmp_path: Path) -> None:
    mine = Room(tmp_path)
    assert mine.path.stat().st_mode & 0o777 == 0o700
    assert owner(mine.path) == {"pid": os.getpid(), "started": started(os.getpid())}
    mine.close()
    mine.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_removed_when_the_next_room_is_opened(tmp_path: Path) -> None:
    left = left_by_a_dead_process(tmp_path)
    assert left.is_dir()
    mine = Room(tmp_path)
    assert list(tmp_path.iterdir()) == [mine.path]
    mine.close()


def test_the_room_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", f"{KILLED}; sys.stdin.read()", tmp_path], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout
        path = Path(other.stdout.readline().strip())
        assert sweep(tmp_path) == []
        assert path.is_dir()
        other.kill()
    assert sweep(tmp_path) == [path]


def test_links_files_and_young_folders_are_not_swept(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    prefix = f"exact-worlds-{os.geteuid()}-"
    (tmp_path / f"{prefix}link").symlink_to(elsewhere)
    (tmp_path / f"{prefix}file").write_text("")
    (tmp_path / f"{prefix}young").mkdir()
    (tmp_path / f"{prefix}old").mkdir()
    os.utime(tmp_path / f"{prefix}old", (0, time.time() - 3600))
    assert sweep(tmp_path) == [tmp_path / f"{prefix}old"]


def test_a_forked_copy_of_the_owner_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Room(tmp_path)
    monkeypatch.setattr(room.os, "getpid", lambda: 1)
    mine.close()
    assert mine.path.is_dir()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentError_, match=r"no room for the images of worlds in .*nowhere"):
        Room(tmp_path / "nowhere")


def test_shared_memory_that_is_too_small_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ENOUGH", 1 << 60)
    assert room.place() != Path("/dev/shm")
