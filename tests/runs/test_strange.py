"""Run folders of strangers: one line and exit code 2, nothing hangs, nothing outside is read."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image, UnidentifiedImageError

from exact.cli.main import main
from exact.errors import JournalError
from exact.runs.folder_check import files_of
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import Blobs, Manifest, read_lines
from exact.untrusted import open_picture

COMMANDS = (
    ("show",), ("report",), ("resume",), ("compare",), ("trust", "--secrets"), ("export", "json"), ("export", "value"),
    ("show", "--progress"), ("show", "--cost"), ("train", "calibration"), ("rescore",), ("trust",),
)  # fmt: skip


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


def _sparse(run: Path, name: str) -> None:
    file = run / "tasks" / "t-00000000" / name
    file.parent.mkdir()
    with file.open("wb") as whole:
        whole.truncate(1 << 30)


STRANGE = {
    "a huge journal": lambda run: _sparse(run, "journal.jsonl"),
    "a huge picture": lambda run: _sparse(run, "frame.png"),
    "a pipe as plan": lambda run: ((run / "run.json").unlink(), os.mkfifo(run / "run.json")),
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
        if command == ("show", "--progress") and what in ("deep YAML", "deep YAML blocks", "aliases"):
            continue  # it does not read the configuration
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


ODD = {
    "an object in itself": '{"a":' * 50_000,
    "an empty file": "",
    "a number": "1",
    "a list": "[]",
    "a task without id": '{"tasks": [{"instruction": "x"}], "agent": "a"}',
    "a task whose seed is text": '{"tasks": [{"id": "a", "instruction": "x", "seed": "1"}], "agent": "a"}',
    "no UTF-8": '{"tasks": [], "agent": "\ud800"}',
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("name", ["run.json", "bench.json"])
def test_a_plan_that_does_not_read_is_one_line(tmp_path: Path, what: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = folder(tmp_path / "run")
    (run / name).write_bytes(ODD[what].encode("utf-8", "surrogatepass"))
    if name == "bench.json":
        (run / "run.json").unlink()
    for command in COMMANDS if name == "run.json" else (("show", "--progress"), ("rescore",), ("trust",), ("bench", "--resume", "--out")):
        code = main([*command, str(run), *([str(run)] if command == ("compare",) else [])])
        said = capsys.readouterr().err
        if command != ("trust", "--secrets"):  # it searches bytes
            assert (code in (1, 2), said.count("\n"), said[:7]) == (True, 1, "exact: "), (command, said[-500:])


def test_a_line_without_end_is_not_read(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with journal.open("wb") as file:
        file.truncate(100 << 20)
    for read in (read_journal(journal), read_lines(journal, Manifest)):
        with pytest.raises(JournalError, match=r"a line of more than 16,777,216 bytes"):
            list(read)


@pytest.mark.parametrize(
    "usage", ['{"input_tokens":' + "9" * 400 + "}", '{"output_tokens":-1}', '{"cost":-1}', '{"cost":1e300}', '{"cost":NaN}']
)
def test_a_call_of_no_possible_cost_does_not_read(tmp_path: Path, usage: str) -> None:
    (tmp_path / "journal.jsonl").write_text(f'{{"event":"unaccounted","role":"policy","node":0,"model":"m","usage":{usage}}}\n')
    with pytest.raises(JournalError, match="does not read"):
        list(read_journal(tmp_path / "journal.jsonl"))


@pytest.mark.parametrize("data", [b"{", b"[" * 50_000, b'{"url": 1}', b"\xff"])
def test_a_blob_that_is_no_observation_is_an_error_of_the_journal(tmp_path: Path, data: bytes) -> None:
    blobs = Blobs(tmp_path)
    with pytest.raises(JournalError, match="does not read"):
        blobs.get_observation(blobs.put(data))
