import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from exact import machine
from exact.errors import EnvironmentFailure
from exact.machine import ScratchFolder, folder_owner, process_start, remove_with, sweep

OPEN = "import os, sys; from exact.machine import ScratchFolder; from pathlib import Path"
KILLED = f'{OPEN}; print(ScratchFolder("environments", Path(sys.argv[1])).path, flush=True)'


def left_by_a_dead_process(parent: Path) -> Path:
    done = subprocess.run([sys.executable, "-c", f"{KILLED}; os.kill(os.getpid(), 9)", parent], capture_output=True, text=True)
    return Path(done.stdout.strip())


def test_a_room_is_private_and_says_whose_it_is(tmp_path: Path) -> None:
    mine = ScratchFolder("environments", tmp_path)
    assert mine.path.stat().st_mode & 0o777 == 0o700
    assert folder_owner(mine.path) == {"pid": os.getpid(), "started": process_start(os.getpid())}
    mine.close()
    mine.close()
    assert list(tmp_path.iterdir()) == []


def test_remains_of_a_dead_process_are_removed_when_the_next_room_is_opened(tmp_path: Path) -> None:
    left = left_by_a_dead_process(tmp_path)
    assert left.is_dir()
    mine = ScratchFolder("environments", tmp_path)
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


def test_links_files_young_folders_and_those_of_others_are_not_swept(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    prefix = f"exact-worlds-{os.geteuid()}-"
    (tmp_path / f"{prefix}link").symlink_to(elsewhere)
    (tmp_path / f"{prefix}file").write_text("")
    (tmp_path / f"{prefix}young").mkdir()
    for name in ("old", "full"):
        (tmp_path / f"{prefix}{name}").mkdir()
    (tmp_path / f"{prefix}full" / "thesis.txt").write_text("")
    for name in ("old", "full"):
        os.utime(tmp_path / f"{prefix}{name}", (0, time.time() - 3600))
    assert sweep(tmp_path) == [tmp_path / f"{prefix}old"]


def test_a_folder_that_another_program_made_beside_a_room_is_removed_with_it(tmp_path: Path) -> None:
    for name in ("rooms/profile", "rooms/target", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    rooms, elsewhere = tmp_path / "rooms", tmp_path / "elsewhere"
    (link := rooms / "link").symlink_to("target")
    left = left_by_a_dead_process(rooms)
    for other in (rooms / "profile", link, elsewhere, rooms / "..", rooms / "none"):
        remove_with(left / "files", other)
    (left / "with-torn").write_bytes(b"\0\xff")
    assert sweep(rooms) == [left]
    assert sorted(rooms.iterdir()) == [link, rooms / "target"] and elsewhere.is_dir()


def test_a_folder_whose_owner_has_made_its_lock_and_not_yet_taken_it_is_left_alone(tmp_path: Path) -> None:
    young = tmp_path / f"exact-worlds-{os.geteuid()}-young"
    young.mkdir()
    (young / "owner.json").touch()
    assert sweep(tmp_path) == []
    os.utime(young, (0, time.time() - 3600))
    assert sweep(tmp_path) == [young], "it was killed just then"


def test_a_forked_copy_of_the_owner_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ScratchFolder("environments", tmp_path)
    monkeypatch.setattr(machine.os, "getpid", lambda: 1)
    mine.close()
    assert mine.path.is_dir()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"cannot create a temporary folder in .*nowhere: No such file .*TMPDIR"):
        ScratchFolder("environments", tmp_path / "nowhere")


def test_a_folder_that_cannot_be_removed_keeps_its_lock_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ScratchFolder("environments", tmp_path)
    mine.folder("files")
    with monkeypatch.context() as patched:
        patched.setattr(machine.shutil, "rmtree", lambda *_, **__: None)
        mine.close()
    assert mine.path.is_dir()
    assert sweep(tmp_path) == [mine.path]
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_folder_is_empty_and_goes_with_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError), machine.scratch("downloads") as folder:
        assert list(folder.iterdir()) == []
        (folder / "file").write_text("text")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
