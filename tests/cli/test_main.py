import errno
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from exact.cli.main import COMMANDS, GROUPS, INTERRUPTED, LONGEST_ERROR, RETIRED, cli, main
from exact.errors import ExactError, JournalError, ModelError, UsageError
from exact.reflection.memory.open import open_memory
from tests.cli.test_json import leaves
from tests.cli.test_memory import reflection
from tests.report.journals import shop_run

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
    ["list", "memory", f"postgresql://{LONG}"], ["list", "memory", LONG], ["check", f"module:{LONG}"],
    ["train", "sft", "--model", "m", "--data", LONG], ["bench", "miniwob/x", "--budget", LONG], ["view", ".", "--host", "x\x1b[31m"],
    ["view", ".", "--host", LONG], [LONG], ["show", "a", "--by", LONG],
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
        (["taks"], "unknown command 'taks': did you mean 'list tasks'?"),
        (["list", "taks"], "unknown command 'taks': did you mean 'tasks'?"),
        (["shwo"], "unknown command 'shwo': did you mean 'show'?"),
        (["memory", "serch"], "Did you mean 'search'?"),
        (["list", "tasks", "--jsn"], "--json"),
        (["list", "tasks", "--fields"], "name it, e.g. `exact list tasks miniwob/click-test --fields`"),
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
    "args", [["export", "json", "RUN", "--out"], ["list", "prompts", "policy", "--example", "-o"], ["memory", "export", "M", "-o"],
             ["train", "calibration", "RUN", "--fit"]],
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


def test_the_help_shows_each_command_once_in_five_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^(\w[\w ]*):$", shown, re.M) == ["Options", *GROUPS] and len(GROUPS) == 5
    assert re.findall(r"^  (\w+) +[A-Z]", shown, re.M) == list(COMMANDS) and len(COMMANDS) < 20


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the run and the memory that old command lines name."""
    folder = tmp_path_factory.mktemp("old")
    run = shop_run(folder / "run").path
    with open_memory(str(folder / "memory.sqlite")) as memory:
        memory.add(reflection("a", "Click the button."))
    return {"RUN": str(run), "MEMORY": str(folder / "memory.sqlite")}


OLD = [
    "status RUN", "status RUN --json", "status nowhere", "cost RUN --by model --json", "cost RUN --task absent", "audit RUN --json",
    "audit nowhere", "mcp --help",
    "calibrate RUN --json", "calibrate RUN --label x", "memory list MEMORY --json", "memory list MEMORY --status no",
    "tasks --help", "tasks list miniwob", "tasks list miniwob --json", "tasks list miniwab", "tasks show miniwob/click-test", "tasks show",
    "tasks show miniwob/click-test --json", "prompts", "prompts list --json", "prompts show policy", "prompts show policy --json",
    "prompts render policy --example", "prompts render polcy --example", "config --help", "config show rmcts_gpt-4o",
    "config providers --json", "config show rmcts_gpt-4o --set search.k=3 --json", "config show nowhere.yaml", "config algorithms",
]  # fmt: skip


@pytest.mark.parametrize("line", OLD)
def test_an_old_spelling_does_the_same_and_names_the_new_one(line: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [places.get(word, word) for word in line.split()]
    old = next(each for each in (" ".join(words[:2]), words[0]) if each in RETIRED)
    code, said = main(words), capsys.readouterr()
    assert main([*RETIRED[old].split(), *words[len(old.split()) :]]) == code
    expected = capsys.readouterr()
    hint = f"exact: `exact {old}` is now `exact {RETIRED[old]}`: the old spelling ends with the next version\n"
    assert (said.out, said.err) == (expected.out, hint + expected.err)


def test_each_old_spelling_is_tried_and_none_is_shown() -> None:
    tried = {next(old for old in (" ".join(line.split()[:2]), line.split()[0]) if old in RETIRED) for line in OLD}
    assert tried == RETIRED.keys() and not RETIRED.keys() & COMMANDS.keys()


@pytest.mark.parametrize(
    ("written", "meant"), [("statsu", "show --progress"), ("calibrat", "train calibration"), ("promts", "list prompts")]
)
def test_a_slip_in_an_old_spelling_is_answered_with_the_new_one(written: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written]) == 2
    assert capsys.readouterr().err == f"exact: unknown command {written!r}: did you mean {meant!r}?\n"


RUNS = [
    "resume {}", "show {}", "show {} --progress", "show {} --cost", "report {}", "compare {} {}", "rescore {}", "export json {}",
    "export value {} --out x.jsonl", "train calibration {}", "trust {}", "trust {} --secrets", "view {}", "memory stats {}",
    "list memory {}", "bench --resume --out {}",
]  # fmt: skip


@pytest.mark.parametrize("line", RUNS)
def test_a_run_is_a_path_and_no_name_below_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop_run(tmp_path / "runs" / "shop")
    assert main([word.format("shop") for word in line.split()]) == 2
    said = capsys.readouterr().err
    assert "shop" in said and said.count("\n") == 1


def test_each_argument_that_names_a_run_is_a_path() -> None:
    found = [
        (name, option.type)
        for name, command in leaves(cli)
        for option in command.params
        if isinstance(option, click.Argument) and "run" in (option.metavar or option.name or "").lower()
    ]
    assert len(found) >= 9 and [name for name, kind in found if not isinstance(kind, click.Path)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_is_there_and_says_what_it_does(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help


def test_each_help_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pending, pages = [((), cli)], 0
    while pending:
        path, command = pending.pop()
        context = click.Context(command, info_name=" ".join(("exact", *path)))
        pages += 1
        assert [line for line in command.get_help(context).splitlines() if len(line) > 80] == [], path
        if isinstance(command, click.Group):
            pending += [((*path, name), command.get_command(context, name)) for name in command.list_commands(context)]
    assert pages > 30


def test_a_reader_that_went_away_is_no_error_message() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "exact.cli", "list", "tasks"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
