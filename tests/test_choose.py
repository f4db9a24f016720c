"""A change runs the tests that it can fail, and all tests if the map does not know it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import choose

ROOT = Path(__file__).parents[1]
PIPE = "tests/environments/browser/launch/test_pipe.py::test_sessions_with_pages_do_without"
OPEN, SELECT, STATE = "tests/models/test_open.py", "tests/search/rules/test_select.py", "tests/environments/browser/snapshot/test_state.py"
BROWSER, ENVIRONMENTS = "exact/environments/browser", "tests/environments"
MUTATIONS = [
    ("exact/text.py", "'' if number == 1", "'' if number == 2", "tests/test_counted.py::test_only_one_is_singular"),
    ("exact/search/rules/final.py", "(-edge.q, -edge.prior)", "(edge.q, -edge.prior)", f"{SELECT}::test_the_max_child"),
    ("exact/models/retry.py", '"m": 60.0', '"m": 1.0', "tests/models/test_retry.py::test_an_exhausted_limit_tells"),
    ("exact/runs/journal/aliases.py", '{"world": "full"}', "{}", "tests/runs/journal/test_aliases.py::test_old_names"),
    ("exact/environments/process/guest.py", '{"sealed": "isolated"}', "{}", f"{ENVIRONMENTS}/process/test_worker.py::test_a_guest_written"),
    ("exact/environments/sandbox/pack.py", "raise ValueError(", "raise KeyError(", f"{ENVIRONMENTS}/sandbox/test_pack.py::test_a_damaged"),
    (
        f"{BROWSER}/launch/hand_over.py",
        "os.dup2(ends[0], 3)",
        "os.dup2(ends[0], 4)",
        PIPE,
    ),
    ("exact/prompts/judge.j2", "Verdict: <", "Grade: <", "tests/prompts/test_library.py::test_a_prompt_reads_as_it_did"),
    ("exact/report/html/bench.html.j2", 'http-equiv="refresh"', "", "tests/evaluation/test_output.py::test_the_page_is_written"),
    ("exact/learning/train/training.html.j2", "<polyline", "<path", "tests/learning/train/test_curves.py::test_the_page_is_one_file"),
    (f"{BROWSER}/act/select.js", "selected = true", "selected = false", f"{ENVIRONMENTS}/browser/act/test_act.py::test_select"),
    (f"{BROWSER}/snapshot/restore_fields.js", "= entry.value;", "= '';", f"{STATE}::test_fields_focus"),
    ("exact/report/html/find.js", "words.every(", "[].every(", "tests/report/test_explore.py::test_finding_marks"),
    ("exact/models/providers.yaml", "true, sampling: false,", "true,", f"{OPEN}::test_the_longest_beginning"),
    ("exact/reflection/words.toml", "[never.obeys]", "[never.says]", "tests/reflection/test_hygiene.py::test_attacks_are_caught"),
    ("exact/benchmarks/sites/trac.json", '"carol"', '"dave"', "tests/benchmarks/sites/test_tasks.py::test_each_references_pages"),
    ("exact/evaluation/published.json", "https:", "http:", "tests/evaluation/test_tables.py::test_published_results_have_a_source"),
    ("shells/_run.sh", "view.text=false", "view.text=true", "tests/test_scripts.py::test_an_observation_of_osworld"),
    ("shells/sandbox.sh", "oldest=20240729", "oldest=20990729", "tests/test_sandbox_script.py::test_one_that_is_new_enough"),
    ("shells/configs/rmcts_gpt-4o.yaml", "name: rmcts_gpt-4o", "name: rmcts", "tests/test_scripts.py::test_a_configuration_is_valid"),
    ("mkdocs.yml", "index.md", "README.md", "tests/docs/test_site.py::test_every_page_is_in_the_navigation_once"),
]
"""Mutations, each with the beginning of the name of a test that it fails: file, text, text that takes its place, test.

`python -m tests.test_choose` carries them out.
"""
COPIED = ("exact", "shells", "tests", "docs", "prompts", "pyproject.toml", "mkdocs.yml", "README.md", "CHANGELOG.md")


def fails(root: Path, mutation: tuple[str, str, str, str]) -> bool:
    """Return whether a test passes in a copy of the repository, and fails when a file is changed."""
    path, before, after, test = mutation
    file, _, name = test.partition("::")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", file, "-k", name]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(root)}
    text = (root / path).read_text("utf-8")
    codes = list[int]()
    for content in (text, text.replace(before, after)):
        (root / path).write_text(content, "utf-8")
        codes.append(subprocess.run(command, cwd=root, env=environment, capture_output=True).returncode)
    (root / path).write_text(text, "utf-8")
    return codes == [0, 1]


def copied(to: Path) -> Path:
    """Copy what the tests of the mutations need."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, to / name)
    return to


@pytest.mark.parametrize(("path", "before", "after", "test"), MUTATIONS, ids=lambda part: Path(part).name if "/" in part else "")
def test_a_test_that_a_mutation_fails_is_chosen(path: str, before: str, after: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert before in (ROOT / path).read_text("utf-8") and f"def {name}" in (ROOT / file).read_text("utf-8"), "the table is out of date"
    chosen = choose.choose([path])
    assert file in chosen and len(chosen) < len(list((ROOT / "tests").rglob("test_*.py")))


def test_a_mutation_fails_its_test(tmp_path: Path) -> None:
    """One of them: `python -m tests.test_choose` carries out all."""
    assert fails(copied(tmp_path), next(each for each in MUTATIONS if each[0].endswith(".j2")))


@pytest.mark.parametrize("path", ["pyproject.toml", "constraints/test.txt", "tests/conftest.py", "exact/new.py", "new/file"])
def test_what_the_map_does_not_know_runs_everything(path: str) -> None:
    assert choose.choose(["CHANGELOG.md", path]) == ["tests"]


def test_a_file_of_tests_runs_itself_and_a_file_beside_it_its_folder() -> None:
    assert "tests/views/test_view.py" in choose.choose(["tests/views/test_view.py"])
    assert "tests/views/test_view.py" not in choose.choose(["tests/models/llamacpp.py"])
    assert "tests/models/test_llamacpp.py" in choose.choose(["tests/models/llamacpp.py"])


def test_tests_that_import_a_module_that_is_gone_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    users = {**choose._users(), "exact.views.gone": {"tests/test_budget.py"}}
    monkeypatch.setattr(choose, "_users", lambda: choose.defaultdict(set, users))
    assert "tests/test_budget.py" in choose.choose(["exact/views/gone.py"])


def test_tests_that_start_a_command_or_name_a_file_are_chosen() -> None:
    assert "tests/test_portable.py" in choose.choose(["exact/cli/show.py"])
    assert "tests/reflection/test_memory.py" in choose.choose(["bench/memory_kills.py"])


def test_each_entry_of_the_map_is_there_and_names_tests() -> None:
    rules = tomllib.loads(choose.MAP.read_text("utf-8"))
    assert [path for path in rules["tests"] if not (ROOT / path).exists() and path != "tests/whole.json"] == []
    entries = [entry for value in rules.values() if isinstance(value, list) for entry in value]
    entries += [entry for value in rules["tests"].values() for entry in value]
    assert [entry for entry in entries if not choose._expand(rules, [entry])] == []


def test_every_folder_of_the_package_is_in_the_map() -> None:
    rules = tomllib.loads(choose.MAP.read_text("utf-8"))
    files = [each.relative_to(ROOT).as_posix() for each in (ROOT / "exact").rglob("*.*") if each.suffix != ".pyc"]
    assert [file for file in files if choose._entry(rules, file) is None] == []


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, at which `choose` looks."""
    for command in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "README.md").write_text("one")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-qm", "One"], cwd=tmp_path, check=True)
    monkeypatch.setattr(choose, "ROOT", tmp_path)
    monkeypatch.setattr(choose, "WHOLE", tmp_path / "whole.json")
    return tmp_path


@pytest.mark.parametrize("whole", [None, {}, {"commit": "0" * 40, "date": "2026-01-01"}])
def test_without_the_commit_of_the_last_whole_run_everything_runs(
    clone: Path, capsys: pytest.CaptureFixture[str], whole: dict[str, str] | None
) -> None:
    if whole is not None:
        choose.WHOLE.write_text(json.dumps(whole))
    choose.main()
    said = capsys.readouterr()
    assert said.out == "tests\n" and "not known here" in said.err


def test_a_whole_run_is_recorded_if_it_passed_on_files_that_are_committed(clone: Path) -> None:
    choose.Recorder().pytest_sessionfinish(1)
    (clone / "README.md").write_text("two")
    choose.Recorder().pytest_sessionfinish(0)
    assert not choose.WHOLE.exists()
    (clone / "README.md").write_text("one")
    choose.Recorder().pytest_sessionfinish(0)
    assert choose.last_whole()["commit"] == choose.git("rev-parse", "HEAD").strip()


@pytest.mark.parametrize(("count", "recorded"), [(0, False), (1, True), (choose.MOST_ALONE, True), (choose.MOST_ALONE + 1, False)])
def test_a_few_tests_that_failed_beside_others_may_pass_alone(clone: Path, count: int, recorded: bool) -> None:
    ids = [f"tests/a.py::test_{each}" for each in range(count)]
    recorder = choose.Recorder(alone=True)
    recorder.pytest_collection_finish(SimpleNamespace(items=[SimpleNamespace(nodeid=id) for id in ids]))
    recorder.pytest_sessionfinish(0)
    assert choose.WHOLE.exists() is recorded and choose.last_whole().get("alone", ids) == ids


def test_what_changed_is_what_differs_committed_or_not(clone: Path) -> None:
    (clone / "new").write_text("")
    (clone / "README.md").rename(clone / "moved")
    assert choose.changed_since("HEAD") == {"new", "README.md", "moved"}


QUIET = ("tests/docs/test_goals.py", "tests/gate/test_resources.py", "tests/models/test_llamacpp.py")
LATER = " ".join(f"--ignore={each}" for each in QUIET)


def run_script(tmp_path: Path, arguments: list[str], pytest: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the tests beside commands that do nothing. `pytest`: what that of the tests does."""
    says = {
        "setup.sh": "",
        "python": '[ "$3" = --last ] && echo "last" || printf "%s\\n" tests/a.py tests/b.py',
        "pytest": pytest,
    }
    for name, does in {**says, "lint-imports": ""}.items():
        script = tmp_path / ("shells" if name == "setup.sh" else ".venv/bin") / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/bash\n{does}\n")
        script.chmod(0o755)
    (tmp_path / "tests" / "__pycache__").mkdir(parents=True)
    shutil.copy(ROOT / "shells" / "test.sh", tmp_path / "shells")
    return subprocess.run(["bash", tmp_path / "shells" / "test.sh", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], "--short"),
        (["--whole"], f"{LATER} --record-whole"),
        (["--whole", "--record-seconds"], f"--record-seconds {LATER} --record-whole"),
        (["--whole", "-x"], "-x"),
        (["--changed", "-x"], "tests/a.py tests/b.py --within 2100 -x"),
        (["tests/search", "-x"], "tests/search -x"),
    ],
)
def test_the_script_asks_for_the_chosen_tests_and_prints_the_last_whole_run(arguments: list[str], asked: str, tmp_path: Path) -> None:
    done = run_script(tmp_path, arguments, pytest='echo "asked $*"')
    assert "test: last\n" in done.stdout and f"--no-loadscope-reorder -n 3 {asked}\n" in done.stdout, done.stderr


@pytest.mark.parametrize("passes", [True, False])
def test_a_whole_run_begins_with_the_tests_that_want_the_machine_to_themselves(passes: bool, tmp_path: Path) -> None:
    done = run_script(tmp_path, ["--whole", "--record-seconds"], pytest=f'echo "asked $*"; [[ "$*" != *"-n 0"* ]] || {str(passes).lower()}')
    alone, *others = [line for line in done.stdout.splitlines() if line.startswith("asked ")]
    assert f"-n 0 {' '.join(QUIET)} --record-seconds" in alone and (done.returncode == 0) is passes
    assert bool(others) is passes, "what failed alone is not recorded"
    assert all((ROOT / each).exists() for each in QUIET)


@pytest.mark.parametrize(("arguments", "again"), [(["--whole"], True), (["--whole", "-x"], False), ([], False), (["--changed"], False)])
def test_the_script_runs_failed_tests_of_a_whole_run_alone(arguments: list[str], again: bool, tmp_path: Path) -> None:
    done = run_script(tmp_path, arguments, pytest='echo "asked $*"; [[ "$*" == *"-n 0"* ]]')
    assert ("-n 0 --last-failed --last-failed-no-failures none --record-whole\n" in done.stdout) is again
    assert (done.returncode == 0) is again


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = copied(Path(folder))
        for each in MUTATIONS:
            sys.stdout.write(f"{'fails' if fails(root, each) else 'DOES NOT FAIL'}: {each[3]} by {each[0]}\n")
            sys.stdout.flush()
