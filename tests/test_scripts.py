"""The shell scripts, their configurations and the lock files."""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from exact.cli.main import RETIRED, cli, main
from exact.config import load

ROOT = Path(__file__).parents[1]
SCRIPTS = [*sorted((ROOT / "shells").glob("*.sh")), ROOT / ".ci" / "run"]
CONFIGS = sorted(path for path in (ROOT / "shells" / "configs").glob("*.yaml") if path.name != "providers.yaml")
LOCKS = sorted((ROOT / "constraints").glob("*.txt"))

each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
each_config = pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
each_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)


@each_script
def test_a_script_is_executable_and_stops_at_the_first_error(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    assert "\nset -euo pipefail\n" in script.read_text() or len(script.read_text().splitlines()) == 3


@each_script
def test_a_script_is_well_formed(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


@each_script
@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_finds_nothing(script: Path) -> None:
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@each_config
def test_a_configuration_is_valid_and_bears_its_files_name(path: Path) -> None:
    assert load(path).name == path.stem


@each_config
def test_a_configuration_caps_money_calls_and_actions(path: Path) -> None:
    limits = load(path).limits
    assert None not in (limits.money, limits.calls, limits.actions)


@each_config
def test_a_configuration_says_what_it_costs(path: Path) -> None:
    assert re.match(r"# .+\n# Expected cost: ", path.read_text())


@each_config
def test_a_configuration_has_its_script(path: Path, tmp_path: Path) -> None:
    script = ROOT / "shells" / f"{path.stem}.sh"
    start, comment, call = script.read_text().splitlines()
    assert (start, comment[:2], call) == ("#!/usr/bin/env bash", "# ", f'exec "$(dirname "${{BASH_SOURCE[0]}}")/_run.sh" {path.stem} "$@"')
    done = subprocess.run([script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.partition(" ")[0]) == (2, "usage:")


@each_config
def test_a_dry_run_reads_the_configuration_and_would_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With keys in the environment every model has a provider, an address, and a price for its money cap."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-of-nobody")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://nobody.openai.azure.com")
    assert main(["run", "--url", "http://localhost/", "--goal", "Nothing", "--config", str(path), "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert path.stem in plan and "refused" not in plan and "not known yet" not in plan and "sk-of-nobody" not in plan


CALL = re.compile(r"""^\s*(?:exec |\[ .* \|\| )?(?:\S*\.venv/bin/exact"?|"\$exact"|exact) (.+?)(?: >.*| \|\| .*)?$""", re.M)
CALLS = [(script, call) for script in SCRIPTS for call in CALL.findall(script.read_text()) if not call.startswith("-")]
"""The command lines of `exact` in the scripts, without variables' values."""
OLD_CALLS = [
    (script, f"{old}{call.removeprefix(new)}") for script, call in CALLS for old, new in RETIRED.items() if call.startswith(f"{new} ")
]


@pytest.mark.parametrize(("script", "call"), [*CALLS, *OLD_CALLS], ids=lambda each: each if isinstance(each, str) else each.name)
def test_a_command_of_a_script_and_its_options_exist_as_they_were_spelled_before_too(script: Path, call: str) -> None:
    context = click.Context(cli, info_name="exact")
    _, command, words = cli.resolve_command(context, shlex.split(call))
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context)
        _, command, words = command.resolve_command(context, words)
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(words)


def test_calls_of_each_kind_are_found() -> None:
    assert len(CALLS) >= 12 and {call.split()[0] for _, call in CALLS} >= {"run", "report", "bench", "list", "show", "cluster"}
    assert {call.split()[0] for _, call in OLD_CALLS} >= {"config", "tasks"}


def test_each_documented_algorithm_and_model_has_a_configuration() -> None:
    gpt = {"react", "search", "tot", "mcts", "rmcts", "rmcts_mad", "rmcts_logprob"}
    mad = {"gpt-4o-mini", "gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash", "azure_gpt-4o", "qwen3-vl"}
    assert {f"{name}_gpt-4o" for name in gpt} | {f"rmcts_mad_{name}" for name in mad} | {"rmcts_builtin"} <= {path.stem for path in CONFIGS}


@each_lock
def test_a_lock_names_no_address(lock: Path) -> None:
    assert "://" not in lock.read_text()


@each_lock
def test_every_locked_version_has_hashes(lock: Path) -> None:
    pins = [line for line in lock.read_text().splitlines() if not line.startswith("-r ")]
    assert len(pins) > 10 or lock.stem in ("libwebarena", "llamacpp", "types", "weights"), "these are few, or installed without the rest"
    assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []


def test_a_lock_repeats_no_line_of_the_lock_that_it_builds_on() -> None:
    lines = {name: (ROOT / "constraints" / f"{name}.txt").read_text().splitlines() for name in ("run", "test", "parity", "extras")}
    assert [lines[name][0] for name in ("test", "parity", "extras")] == ["-r run.txt", "-r test.txt", "-r test.txt"]
    packages = [line for name in lines for line in lines[name] if not line.startswith("-r ") and name in ("run", "test")]
    assert len(packages) == len(set(packages))
    assert not set(packages) & {*lines["parity"], *lines["extras"]}


def _read_lock(lock: Path) -> str:
    """Return a lock with the locks that it builds on."""
    text = lock.read_text()
    return "\n".join([text, *(_read_lock(lock.with_name(name)) for name in re.findall(r"^-r (\S+)", text, re.M))])


@each_lock
def test_every_dependency_is_locked(lock: Path) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["miniwob"]
    if lock.stem in settings["dependency-groups"]:
        wanted = settings["dependency-groups"][lock.stem]
    if (own := lock.with_suffix(".in")).exists() and lock.stem != "test":
        sources = [each for each in lock.parent.glob(f"{own.stem}*.in") if each == own or not each.with_suffix(".txt").exists()]
        wanted = [line for source in sources for line in source.read_text().splitlines() if line[0] != "#"]
    if lock.stem == "test":
        wanted += project["optional-dependencies"]["test"]
    names = {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", _read_lock(lock), re.M)}
    assert {re.split(r"[<>=~!;\[ ]", name)[0].lower() for name in wanted} <= names


def _with_stand_in(folder: Path, *files: str) -> Path:
    """Copy scripts to a folder, with a stand-in for `exact` that prints its arguments. Return the folder of the scripts."""
    shells, stand_in = folder / "shells", folder / ".venv" / "bin" / "exact"
    for file in files:
        (shells / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "shells" / file, shells / file)
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "${EXACT_OSWORLD_OPTIONS-}" "$@"\n')
    stand_in.chmod(0o755)
    return shells


def test_the_paired_comparison_says_its_price_before_it_asks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    folder = ROOT / "shells" / "gain"
    tasks = [f"{line}?seed=0" for line in (folder / "tasks.txt").read_text().split()]
    agents = [word for name in ("react", "rmcts") for word in ("--agent", str(folder / f"{name}.yaml"))]
    assert main(["bench", *tasks, *agents, "--set", "models.policy.model=gpt-4o-mini", "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert "80 attempts, at most $80 in all" in plan and plan.count("gpt-4o-mini at") == 4 and "refused" not in plan


@pytest.mark.parametrize(("answer", "started"), [("y\n", True), ("n\n", False), ("", False)])
def test_the_paired_comparison_starts_only_after_a_yes(answer: str, started: bool, tmp_path: Path) -> None:
    script = _with_stand_in(tmp_path, "reproduce_gain.sh", "gain/tasks.txt") / "reproduce_gain.sh"
    done = subprocess.run([script, "a/model", "--parallel", "3"], cwd=tmp_path, input=answer, capture_output=True, text=True)
    first, _, then = done.stdout.partition("--dry-run\n")
    assert first.count("?seed=0\n") == 40 and "models.policy.model=a/model\n--parallel\n3\n" in first
    assert (done.returncode == 0, "--out\nruns/gain-a_model\n" in then) == (started, started)


def test_the_paired_comparison_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    script = _with_stand_in(tmp_path, "reproduce_gain.sh", "gain/tasks.txt") / "reproduce_gain.sh"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "bench.json").write_text("{}")
    done = subprocess.run([script, "m"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "OUT": "out"}, capture_output=True, text=True)
    assert done.stdout.split() == ["bench", "--resume", "--out", "out"]


@pytest.mark.parametrize("agent", ["react", "rmcts"])
@pytest.mark.parametrize("observation", ["a11y_tree", "screenshot", "screenshot_a11y_tree", "som"])
def test_an_observation_of_osworld_sets_what_models_see(agent: str, observation: str, tmp_path: Path) -> None:
    """Run the script with a stand-in for `exact`, which prints its arguments, and load the configuration that they make."""
    name = f"{agent}_osworld_gpt-4o.sh"
    script = _with_stand_in(tmp_path, name, "_run.sh") / name
    done = subprocess.run(
        [script, "osworld/@offline"], env={"PATH": "/usr/bin:/bin", "OBSERVATION": observation}, capture_output=True, text=True
    )
    options, *given = done.stdout.splitlines()
    assert "osworld/@offline" in given, done.stderr
    config = load(
        CONFIGS[0].parent / f"{agent}_osworld_gpt-4o.yaml", [each.removeprefix("--set=") for each in given if each.startswith("--set=")]
    )
    assert (config.view.images, config.view.text) == (observation != "a11y_tree", observation != "screenshot")
    assert config.view.marks == ("elements" in options) == (observation == "som")


def test_each_script_that_runs_a_configuration_has_one() -> None:
    calls = [script.stem for script in SCRIPTS if "/_run.sh" in script.read_text() and script.stem != "_run"]
    assert sorted(calls) == sorted(path.stem for path in CONFIGS)
