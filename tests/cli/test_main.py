import errno
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from exact.cli.main import COMMANDS, INTERRUPTED, LONGEST_ERROR, cli, main
from exact.errors import ExactError, JournalError, ModelError, UsageError

Run = Callable[[BaseException | None], int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command which raises the given error."""

    def run(error: BaseException | None) -> int:
        @click.command()
        def command() -> None:
            if error:
                raise error

        module = types.ModuleType("a_command")
        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "a_command", module)
        monkeypatch.setitem(COMMANDS, "probe", ("a_command:command", "Fails as told."))
        return main(["probe"])

    return run


def test_a_command_that_ends_well_gives_0(run: Run) -> None:
    assert run(None) == 0


@pytest.mark.parametrize(("error", "code"), [(UsageError("no such\n  thing"), 2), (ModelError("no such\n  thing"), 1)])
def test_an_error_of_the_package_is_one_line_and_its_exit_code(
    run: Run, capsys: pytest.CaptureFixture[str], error: ExactError, code: int
) -> None:
    assert run(error) == code
    assert capsys.readouterr().err == "exact: no such thing\n"


def test_a_long_error_is_one_bounded_line_with_its_beginning_and_its_way_out(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(UsageError(f"no run in {'x' * 5000}\x1b[2J: name the folder that `exact run` wrote")) == 2
    said = capsys.readouterr().err
    assert said.startswith("exact: no run in xxx") and said.endswith("xx␛[2J: name the folder that `exact run` wrote\n")
    assert len(said) < LONGEST_ERROR + 20 and said.count("\n") == 1


LONG = "A" * 5000
ODD_ARGUMENTS = [
    ["show", LONG], ["show", "../" * 3000], ["show", f"{'b' * 200}/" * 50], ["view", LONG], ["run", LONG],
    ["run", "miniwob/x", "--config", LONG], ["run", "miniwob/x", "--set", LONG], ["run", "miniwob/click-test", "--out", "\udcff"],
    ["memory", "list", f"postgresql://{LONG}"], ["memory", "list", LONG], ["check", f"module:{LONG}"],
    ["train", "sft", "--model", "m", "--data", LONG], ["bench", "miniwob/x", "--budget", LONG], ["view", ".", "--host", "x\x1b[31m"],
    ["view", ".", "--host", LONG], [LONG], ["cost", "a", "--by", LONG],
]  # fmt: skip


@pytest.mark.parametrize("args", ODD_ARGUMENTS, ids=lambda args: " ".join(each[:12] for each in args))
def test_an_odd_argument_is_one_bounded_line(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if "postgresql" in args[-1]:
        pytest.importorskip("psycopg")
    assert main(args) in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("exact: ") and said.count("\n") == 1 and len(said) < LONGEST_ERROR + 20 and "\x1b" not in said
    assert list(tmp_path.iterdir()) == []


def test_errors_that_came_together_show_the_first(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    inner = ExceptionGroup("tasks", [JournalError("the disk is full"), ModelError("out of quota")])
    assert run(ExceptionGroup("all", [inner])) == 1
    assert capsys.readouterr().err == "exact: the disk is full\n"


def test_a_bug_among_them_is_not_hidden(run: Run) -> None:
    with pytest.raises(ExceptionGroup):
        run(ExceptionGroup("tasks", [ModelError("out of quota"), KeyError("x")]))


def test_a_bug_is_not_hidden(run: Run) -> None:
    with pytest.raises(KeyError):
        run(KeyError("x"))


def test_an_interrupt_gives_130(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(KeyboardInterrupt()) == INTERRUPTED
    assert capsys.readouterr().err.strip() == "exact: interrupted"


def test_a_full_disk_is_one_line_with_the_way_out(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(OSError(errno.ENOSPC, "No space left on device", "runs/x")) == 1
    assert capsys.readouterr().err == "exact: No space left on device: runs/x: free some space, then run `exact resume`\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "miniwob/click-test", "--set", "search.algorithm=mtcs"], "unknown search algorithm 'mtcs': did you mean 'mcts'?"),
        (["taks"], "unknown command 'taks': did you mean 'tasks'?"),
        (["tasks", "list", "--jsn"], "--json"),
        (["tasks", "show"], "Missing argument 'ID'"),
        (["run", "--url", "http://[::1", "--goal", "Look."], "invalid --url 'http://[::1'"),
        (["login", "http://[::1", "--until", "x"], "invalid address 'http://[::1'"),
        (["login", "http://a.test", "--until", "("], "invalid pattern '(' in --until: missing )"),
        (["check", ":factory"], "':factory' is no factory: write module:factory"),
        (["check", ".a:factory"], "'.a:factory' is no factory: write module:factory"),
    ],
)
def test_wrong_usage_is_one_line_and_2(capsys: pytest.CaptureFixture[str], args: list[str], said: str) -> None:
    assert main(args) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("exact: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "args", [["export", "json", "RUN", "--out"], ["prompts", "render", "policy", "--example", "-o"], ["memory", "export", "M", "-o"],
             ["calibrate", "RUN", "--fit"]],
)  # fmt: skip
def test_a_file_in_a_folder_that_is_not_there_is_refused_before_anything_is_done(
    args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*args, str(tmp_path / "absent" / "file")]) == 2
    assert f"there is no folder {tmp_path / 'absent'}: make it, or name another" in capsys.readouterr().err
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    "error",
    [
        NotADirectoryError(errno.ENOTDIR, "Not a directory", "a.txt/x"),
        IsADirectoryError(errno.EISDIR, "Is a directory", "a"),
        FileExistsError(errno.EEXIST, "File exists", "a"),
    ],
)
def test_a_place_of_another_kind_is_one_line_with_the_way_out(run: Run, capsys: pytest.CaptureFixture[str], error: OSError) -> None:
    assert run(error) == 1
    assert capsys.readouterr().err == f"exact: {error.strerror}: {error.filename}: choose another path\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_is_there_and_says_what_it_does(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help


def test_a_reader_that_went_away_is_no_error_message() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "exact.cli", "tasks", "list"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
