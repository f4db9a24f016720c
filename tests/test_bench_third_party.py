"""bench/third_party.py: what its scripted model answers, and one task where the application is installed."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from exact.benchmarks.own.files import read
from exact.models.scripted import Question

BENCH = Path(__file__).parents[1] / "bench"
PAGE = 'URL: http://127.0.0.1:1/Tomatos\n[1] link "Logout"\n[2] link "Rename"\n[3] link "History"\n'
FORM = 'URL: http://127.0.0.1:1/+rename/Tomatos\n[4] heading "Rename \'Tomatos\'"\n[5] textbox "Target"{value}\n[6] button "OK"\n'


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), BENCH / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return module


def question(observation: str, *, judge: bool = False, more: str = "") -> Question:
    goal = "Rename the page Tomatos to Tomatoes."
    text = f"⟦goal 1⟧\n{goal}\n⟦/goal 1⟧\n{more}⟦observation 2⟧\n{observation}⟦/observation 2⟧"
    return Question(messages=(("system", "Verdict: C" if judge else "Action: click [3]"), ("user", text)))


def test_the_model_knows_the_next_step_and_proposes_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = loaded("_moin/ways", monkeypatch).WAYS
    said = [ways.answers(question(PAGE), sample).rpartition("Action: ")[2] for sample in range(3)]
    assert said == ["click [2]", "click [3]", "click [1]"]
    assert ways.answers(question(FORM.format(value="")), 0).endswith('Action: fill [5] "Tomatoes"')
    assert ways.answers(question(FORM.format(value=' value="Tomatoes"')), 0).endswith("Action: click [6]")


@pytest.mark.parametrize(
    ("observation", "more", "grade"),
    [
        (FORM.format(value=""), "", "C"),
        (FORM.format(value=' value="Tomatoes"'), "", "B"),
        (PAGE.replace("Tomatos", "Tomatoes"), "", "A"),
        (PAGE, "The attempt has ended", "E"),
        (PAGE.replace("Tomatos", "Tomatoes"), "The attempt has ended", "A"),
        ("URL: http://127.0.0.1:1/+login\n", "", "E"),
    ],
)
def test_the_model_grades_states_by_how_far_they_are(monkeypatch: pytest.MonkeyPatch, observation: str, more: str, grade: str) -> None:
    ways = loaded("_moin/ways", monkeypatch).WAYS
    assert ways.answers(question(observation, judge=True, more=more), 0).endswith(f"Verdict: {grade}")


@pytest.mark.parametrize("application", ["moin", "mlflow"])
def test_each_task_has_a_way_and_an_evaluator(monkeypatch: pytest.MonkeyPatch, application: str) -> None:
    ways = loaded(f"_{application}/ways", monkeypatch).WAYS
    monkeypatch.setenv("MOIN_PASSWORD", "secret")
    tasks = read(BENCH / f"_{application}" / "tasks.yaml")
    assert len(tasks) == 10 and len(ways.known) == 10
    assert len({id(ways.way(task.instruction)) for task in tasks}) == 10


def test_a_write_that_no_commit_sent_is_counted_and_a_page_that_was_presumed_to_write_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = loaded("third_party", monkeypatch)
    sent = ["GET http://127.0.0.1:1/+rename/Spam%20A", "POST http://127.0.0.1:1/+rename/Spam%20A"]
    writes = ["POST /+rename/Spam A"]
    assert bench.extra({"arm": "outside", "writes": writes, "sent": sent}) == 0
    assert bench.extra({"arm": "outside", "writes": writes * 2, "sent": sent}) == 1
    assert bench.extra({"arm": "sandbox", "writes": writes * 2, "sent": sent}) == 0


@pytest.mark.parametrize("application", ["moin", "mlflow"])
def test_a_task_is_solved_on_the_application(monkeypatch: pytest.MonkeyPatch, executable: str, tmp_path: Path, application: str) -> None:
    bench = loaded("third_party", monkeypatch)
    if not (there := bench.APPLICATIONS[application].interpreter()).exists():
        pytest.skip(f"{application} is not installed: there is no {there}")
    out = tmp_path / "out.json"
    command = [
        sys.executable,
        str(BENCH / "third_party.py"),
        "--quick",
        "--application",
        application,
        "--agent",
        "react",
        "--json",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(each["met"] for each in json.loads(out.read_text())["figures"].values()), done.stdout


def test_a_thought_is_as_long_each_time_that_it_is_thought_and_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    thinking = loaded("_thinking", monkeypatch)
    long = [thinking.thought(question(PAGE), times).seconds for times in range(200)]
    assert long == [thinking.thought(question(PAGE), times).seconds for times in range(200)]
    assert thinking.LEAST <= min(long) < 1 and 19 < max(long) <= thinking.MOST


@pytest.mark.parametrize(("step", "grade"), [('click button "OK"', "B"), ('click link "Logout"', "E")])
def test_the_model_grades_a_step_that_was_not_carried_out(monkeypatch: pytest.MonkeyPatch, step: str, grade: str) -> None:
    ways = loaded("_moin/ways", monkeypatch).WAYS
    taken = f"⟦steps 3⟧\n1. {step} -- not carried out yet\n   thought: Now.\n⟦/steps 3⟧\n"
    more = f"{taken}The last of these steps was not carried out, and it has ended nothing.\n"
    page = FORM.format(value=' value="Tomatoes"') + '[7] link "Logout"\n'
    assert ways.answers(question(page, judge=True, more=more), 0).endswith(f"Verdict: {grade}")
