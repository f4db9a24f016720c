"""Run folders, a benchmark and a memory that commit 3961bf86 recorded open, report, rescore and resume."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.cli.main import main
from exact.config import load
from exact.models.scripted import Question, ScriptedServer
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.runs.journal.store import RunFolder
from exact.runs.runner import line_of
from tests.e2e.kills import commits
from tests.e2e.test_llm_agent import exact

RECORDED = Path(__file__).parent / "recorded" / "before_0_2"
"""`run`: two tasks of MiniWoB++ by R-MCTS with the lexical agent. `settings`: one task with settings of the search that few use. `debate`:
two tasks with every role by a scripted model. `interrupted`, `debate_interrupted`: killed by `kill -9`. `bench`: two agents. Beside them is
what `exact show`, `cost`, `status`, `compare` and `memory list` printed with --json at that commit."""
WHOLE = ("run", "settings", "debate")
INTERRUPTED = ("interrupted", "debate_interrupted")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "recorded"))


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> list[Any]:
    assert main(list(args)) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def trust(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", str(run), "--yes"]) == 0
    capsys.readouterr()


def before(name: str) -> list[Any]:
    """Return the lines that the recording commit printed."""
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]


@pytest.mark.parametrize("name", [*WHOLE, *INTERRUPTED])
@pytest.mark.parametrize("command", ["show", "cost"])
def test_show_and_cost_print_the_figures_of_that_commit(
    name: str, command: str, recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded)
    assert covers(printed(capsys, command, name, "--json"), before(f"{name}.{command}.jsonl"))


def covers(now: Any, then: Any) -> bool:
    """Tell whether a later output says all that the earlier one said; it may say more."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and covers(now[key], value) for key, value in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(covers, now, then))
    return bool(now == pytest.approx(then) if isinstance(then, float) else now == then)


@pytest.mark.parametrize("name", WHOLE)
def test_the_journals_fold_to_the_recorded_results(name: str, recorded: Path) -> None:
    folder, config = RunFolder.open(recorded / name), load(recorded / name / "config.yaml")
    states = [fold(config, read_journal(folder.task_folder(task) / "journal.jsonl")) for task in folder.manifest.tasks]
    lines = [line_of(task, config, state) for task, state in zip(folder.manifest.tasks, states, strict=True)]
    assert [msgspec.structs.replace(line, same_task=False) for line in lines] == list(folder.results())


@pytest.mark.parametrize("name", [*WHOLE, *INTERRUPTED])
def test_reports_of_it_are_written(name: str, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (reports,) = printed(capsys, "report", str(recorded / name), "--json")
    assert reports["reports"] and all("<title>" in Path(page).read_text() for page in reports["reports"].values())


@pytest.mark.parametrize("name", WHOLE)
def test_it_is_rescored_to_the_recorded_scores(name: str, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust(recorded / name, capsys)
    lines = RunFolder.open(recorded / name).results()
    scores = {line.task: line.score for line in lines}
    rescored = {line["task"]: line["replay"]["score"] for line in printed(capsys, "rescore", str(recorded / name), "--json")}
    assert rescored == scores


@pytest.mark.parametrize("name", WHOLE)
def test_resume_finds_nothing_to_do(name: str, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust(recorded / name, capsys)
    results = (recorded / name / "results.jsonl").read_bytes()
    assert printed(capsys, "resume", str(recorded / name), "--json") == []
    assert (recorded / name / "results.jsonl").read_bytes() == results


async def test_an_interrupted_run_resumes_to_what_that_commit_resumed_it_to(recorded: Path) -> None:
    code, output = await exact("resume", str(recorded / "interrupted"))
    assert code == 0, output
    assert ended(recorded / "interrupted") == before("interrupted.resumed.jsonl")


async def test_an_interrupted_debate_resumes_to_what_that_commit_resumed_it_to(recorded: Path) -> None:
    run = recorded / "debate_interrupted"
    kept = [event.key for path in run.glob("tasks/*/journal.jsonl") for event in read_journal(path) if isinstance(event, ev.Called)]
    async with ScriptedServer(answers) as server:
        (run / "config.yaml").write_text(re.sub(r"http://127\.0\.0\.1:\d+/v1", server.base_url, (run / "config.yaml").read_text()))
        assert (await exact("trust", str(run), "--yes"))[0] == 0
        code, output = await exact("resume", str(run))
    assert code == 0, output
    assert ended(run) == before("debate_interrupted.resumed.jsonl")
    called = [event.key for path in run.glob("tasks/*/journal.jsonl") for event in read_journal(path) if isinstance(event, ev.Called)]
    assert kept and called[: len(kept)] == kept and len(set(called)) == len(called), "no journalled call is made again"


def ended(run: Path) -> list[Any]:
    """Return one line for each task: its commits and its result, without what differs by machine."""
    lines = [msgspec.to_builtins(line) for line in RunFolder.open(run).results()]
    done = sorted(commits(run).items())
    return [*({"folder": name, "commits": actions} for name, actions in done), *({key: line[key] for key in KEPT} for line in lines)]


KEPT = ("task", "status", "score", "actions", "transitions", "evaluations", "calls", "answer", "reason")


def answers(question: Question, sample: int) -> str:
    """Answer as the models of the recording did: every second proposal presses the button that the goal names."""
    system, text = question.messages[0][1], question.messages[-1][1]
    if "Verdict" in system or "Verdict" in text:
        return "It is clear from the page.\nVerdict: " + ("B" if "terminated" in question.text else "C")
    if "Action" not in system + text:
        return "It speaks for it: the page shows the named button."
    wanted = re.search(r"[Cc]lick (?:on the )?(?:button|link) \"?([\w ]+?)\"?(?:\.|$|\n| button)", text)
    buttons = {name: id for id, name in re.findall(r'\[(\w+)\] (?:button|link) "([^"]+)"', text)}
    names = list(buttons)
    right = next((name for name in names if wanted and name.lower() == wanted[1].lower()), names[0])
    return f"The goal names it.\nAction: click [{buttons[right if sample % 2 else names[(names.index(right) + 1) % len(names)]]}]"


def test_the_benchmark_is_compared_and_its_status_read(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded)
    assert covers(printed(capsys, "compare", "bench/agents/rmcts", "bench/agents/react", "--json"), before("bench.compare.jsonl"))
    assert covers(printed(capsys, "status", "bench", "--json"), before("bench.status.jsonl"))


def test_the_benchmark_resumes_with_nothing_to_do(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempts = (recorded / "bench" / "attempts.jsonl").read_bytes()
    assert main(["bench", "--resume", "--out", str(recorded / "bench"), "--no-reports", "--json"]) == 0
    assert (recorded / "bench" / "attempts.jsonl").read_bytes() == attempts


def test_the_memory_lists_the_recorded_reflections(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert covers(printed(capsys, "memory", "list", str(recorded / "memory" / "reflections.sqlite"), "--json"), before("memory.list.jsonl"))
