"""What a new user meets: pipes, colours, completion, default names, a run that is already running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import exact
from exact.cli import doctor
from exact.cli.main import cli, main
from exact.cli.terminal import echo
from exact.runs.lock import LOCK, new_folder, sole
from tests.evaluation.toys import toy_bench

ENVIRON = {**os.environ, "PYTHONPATH": str(Path(exact.__file__).parents[1])}


def completions(*words: str) -> list[str]:
    *before, incomplete = words
    return [each.value for each in ShellComplete(cli, {}, "exact", "_EXACT_COMPLETE").get_completions(before, incomplete)]


def command(*words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "exact", *words)
    return subprocess.run(words, cwd=folder, env={**ENVIRON, **more}, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run in a browser."""
    folder = tmp_path_factory.mktemp("first")
    done = command(
        "run", "miniwob/click-tab-2?seed=1", "--set", "search.iterations=3", "--set", "limits.actions=1", "--out", "run", folder=folder
    )
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_a_tree_in_a_pipe_is_as_wide_as_its_lines(run: Path) -> None:
    wide, narrow = (command("show", "run", "--tree", "3", folder=run.parent, COLUMNS=columns).stdout for columns in ("400", "40"))
    assert wide == narrow
    drawn = [line for line in narrow.splitlines() if "── " in line]
    assert drawn and all(line == line.rstrip() for line in drawn)


@pytest.mark.parametrize("words", [("show", "run", "--tree", "4"), ("list", "tasks"), ("list", "configs", "rmcts_builtin")])
def test_a_reader_that_leaves_is_no_error(words: tuple[str, ...], run: Path) -> None:
    program = " ".join([f'"{sys.executable}" -m exact', *words]) + " | true"
    done = subprocess.run(["sh", "-c", program], cwd=run.parent, env=ENVIRON, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


def test_no_color_leaves_colours_out_on_a_terminal_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    echo("done", mark=click.style("ok", fg="green"))
    assert capsys.readouterr().out == "okdone\n"


def test_commands_suites_tasks_and_configurations_are_completed() -> None:
    assert completions("sh") == ["show"]
    assert completions("run", "mini") == ["miniwob/"]
    assert "miniwob/click-test" in completions("run", "miniwob/click-t")
    assert completions("bench", "trac/@eas") == ["trac/@easy"]
    assert completions("run", "--config", "rmcts_gpt-4") == ["rmcts_gpt-4o"]
    assert completions("list", "tasks", "desktop/mul") == ["desktop/multiply"]


def test_a_completion_loads_no_command_but_the_one_on_the_line() -> None:
    code = "import sys; from exact.cli.main import main; main([]); print([name for name in sys.modules if name.startswith('exact.cli.')])"
    environ = {**ENVIRON, "_EXACT_COMPLETE": "bash_complete", "COMP_WORDS": "exact re", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.stdout.split() == ["plain,resume", "plain,report", "plain,rescore"], done.stderr


def test_runs_that_begin_at_once_do_not_take_one_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_folder(tmp_path / "runs", "default"), range(24)))
    assert sorted(folders) == sorted(tmp_path / "runs" / f"default-{i}" for i in range(1, 25))


def test_a_run_that_is_running_is_not_resumed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "from exact.runs.lock import sole\nfrom pathlib import Path\nwith sole(Path('run')):\n    print('held', flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=run.parent, env=ENVIRON, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    try:
        assert main(["resume", str(run)]) == 2
        assert "is being run by another process" in capsys.readouterr().err
    finally:
        holder.communicate(b"\n")
    with sole(run):
        pass


HOLDER = """
from contextlib import ExitStack
from pathlib import Path
from exact.runs.lock import LOCK, sole
with ExitStack() as stack:
    stack.enter_context(sole(Path("bench"), LOCK))
    for run in Path("bench").glob("agents/*"):
        stack.enter_context(sole(run))
    print("held", flush=True)
    input()
"""


@contextmanager
def holding(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Hold the benchmark `bench` in a folder, as a process does that runs it."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], cwd=folder, env=ENVIRON, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    try:
        yield holder
    finally:
        holder.communicate()


@pytest.mark.parametrize("command", [["bench", "--resume", "--out", "{}"], ["rescore", "{}", "--adopt"], ["resume", "{}/agents/react"]])
def test_a_benchmark_that_is_running_is_not_written_by_another_process(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = toy_bench(tmp_path / "bench").path
    with holding(tmp_path):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert main([word.format(folder) for word in command]) == 2
        assert "is being run by another process" in capsys.readouterr().err
        assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_benchmarks_are_not_made_in_one_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bench").mkdir()
    with holding(tmp_path):
        assert main(["bench", "miniwob/click-test", "--agent", "react", "--out", str(tmp_path / "bench")]) == 2
    assert "is being run by another process" in capsys.readouterr().err and not (tmp_path / "bench" / "bench.json").exists()


def test_the_lock_of_a_killed_process_does_not_stay(tmp_path: Path) -> None:
    with holding(tmp_path) as holder:
        holder.kill()
        holder.wait()
        with sole(tmp_path / "bench", LOCK):
            pass


@pytest.mark.parametrize("named", ["nowhere", "file"])
def test_doctor_tells_of_a_temporary_folder_that_cannot_be_used(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMPDIR", str(tmp_path / named))
    check = doctor._temporary_folder(Path("/tmp"))
    assert not check.ok and str(tmp_path / named) in check.found and "TMPDIR" in check.fix


def test_doctor_tells_of_a_temporary_folder_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10 << 20}))
    check = doctor._temporary_folder(tmp_path)
    assert not check.ok and check.required and "10 MiB free" in check.found


def test_a_drawing_without_graphviz_names_its_program_and_the_other_way(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["export", "svg", str(run)]) == 2
    assert "program `dot`" in (said := capsys.readouterr().err) and "exact export dot RUN" in said
    assert main(["export", "dot", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"].endswith("tree.dot")


def test_doctor_repairs_what_is_missing_and_looks_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    missing = doctor.HealthCheck(name="browser", ok=False, found="none", fix="get one")
    states, ran = [[missing], [doctor.HealthCheck(name="browser", ok=True, found="there")]], []
    monkeypatch.setattr(doctor, "checks", lambda: states.pop(0))
    monkeypatch.setattr("exact.cli.doctor.run", lambda words: bool(ran.append(list(words))) or True)
    assert main(["doctor", "--fix"]) == 0
    assert ran[0][1:] == ["-m", "playwright", "install", "chromium"] and "there" in capsys.readouterr().out


def test_doctor_repairs_nothing_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from exact.cli.doctor import commands

    assert commands(doctor.HealthCheck(name="browser", ok=True, found="there")) == []
    assert commands(doctor.HealthCheck(name="memory", ok=False, found="little")) == []
    [install] = commands(doctor.HealthCheck(name="miniwob", ok=False, found="none"))
    assert any(each.startswith("miniwob") for each in install) and "install" in install
