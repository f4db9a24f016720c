"""Run folders of strangers: one line and exit code 2, nothing hangs, nothing outside is read."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image, UnidentifiedImageError

from exact.cli.main import main
from exact.errors import JournalError
from exact.picture import open_picture
from exact.runs.journal.store import Blobs
from exact.runs.strange import files_of

COMMANDS = (("show",), ("report",), ("resume",), ("compare",), ("audit",), ("export", "json"))


def folder(path: Path) -> Path:
    (path / "blobs" / "ab").mkdir(parents=True)
    (path / "tasks").mkdir()
    (path / "run.json").write_text('{"tasks": [], "agent": "a"}')
    (path / "config.yaml").write_text("{}")
    return path


def _link_config(run: Path) -> None:
    (run / "config.yaml").unlink()
    (run / "config.yaml").symlink_to("/etc/passwd")


def _huge(run: Path) -> None:
    with (run / "config.yaml").open("wb") as file:
        file.truncate(1 << 40)


STRANGE = {
    "a linked configuration": _link_config,
    "a linked blob": lambda run: (run / "blobs" / "ab" / "x").symlink_to("/dev/zero"),
    "a linked folder": lambda run: (run / "tasks" / "t").symlink_to("/etc"),
    "a pipe": lambda run: os.mkfifo(run / "blobs" / "ab" / "p"),
    "a pipe as results": lambda run: os.mkfifo(run / "results.jsonl"),
    "a huge file": _huge,
    "deep YAML": lambda run: (run / "config.yaml").write_text("[" * 5000),
    "deep YAML blocks": lambda run: (run / "config.yaml").write_text("".join(f"{' ' * i}a:\n" for i in range(1500))),
    "aliases": lambda run: (run / "config.yaml").write_text(
        "a0: &a0 [x, x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}, *a{i}, *a{i}]\n" for i in range(40))
    ),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_strange_run_folder_is_refused_in_one_line(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = folder(tmp_path / "run")
    STRANGE[what](run)
    for command in COMMANDS:
        code = main([*command, str(run), *([str(run)] if command == ("compare",) else [])])
        said = capsys.readouterr().err
        assert (code, said.count("\n"), said[:7]) == (2, 1, "exact: "), (command, said[-500:])


@pytest.mark.parametrize("name", ["../../../../../../dev/zero", "/etc/passwd", "ab/../x", "A" * 64, ""])
def test_a_blob_has_the_name_of_a_blob(tmp_path: Path, name: str) -> None:
    with pytest.raises(JournalError):
        Blobs(tmp_path).get(name)


@pytest.mark.parametrize("size", [(9000, 9000), (60000, 2)])
def test_a_picture_with_too_many_pixels_is_not_opened(size: tuple[int, int]) -> None:
    file = io.BytesIO()
    Image.new("1", size).save(file, "PNG")
    if size[0] * size[1] > 40_000_000:
        with pytest.raises(UnidentifiedImageError, match="too many"):
            open_picture(file.getvalue())
    else:
        assert open_picture(file.getvalue()).size == size


def test_a_file_that_its_writer_has_renamed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    run = folder(tmp_path / "run")
    for name in ("a", "b.part", "c"):
        (run / "blobs" / "ab" / name).write_bytes(b"x")
    files = files_of(run / "blobs")
    first = next(files)
    (run / "blobs" / "ab" / "b.part").rename(run / "blobs" / "ab" / "b")
    assert [path.name for path, _ in (first, *files)] == ["a", "c"]
