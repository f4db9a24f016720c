"""`exact bench`, `exact compare` and `exact rescore` as commands, on real pages."""

import json
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from pytest_httpserver import HTTPServer

from exact.benchmarks import registry
from exact.benchmarks.base import Suite
from exact.benchmarks.miniwob import MiniWob
from exact.cli.main import main
from exact.config import ModelsConfig

SMALL = (
    "miniwob/click-test-2",
    "--agent",
    "react",
    "--agent",
    "mcts",
    "--seeds",
    "0..1",
    "--budget",
    "actions=3",
    "--budget",
    "transitions=8",
)


def told(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(args) == 2
    return capsys.readouterr().err


def test_a_benchmark_runs_is_resumed_compared_and_rescored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "bench")
    assert main(["bench", *SMALL, "--set", "search.commit_by=fork", "--parallel", "2", "--out", out]) == 0
    table = capsys.readouterr().out
    assert "budget for each task: 3 actions, 8 transitions" in table and "|" not in table and "**" not in table
    assert re.search(r"^react +1\.000 .* 2 +0 +0 +0$", table, re.M), "columns align with spaces, and table.md is Markdown"
    assert "| react | 1.000" in (tmp_path / "bench" / "table.md").read_text()
    results = (tmp_path / "bench" / "results.jsonl").read_text()
    assert [json.loads(line)["score"] for line in results.splitlines()] == [1.0] * 4
    (tmp_path / "bench" / "results.jsonl").write_text(results[:200])
    assert main(["bench", "--resume", "--out", out]) == 0
    assert (tmp_path / "bench" / "results.jsonl").read_text() == results
    assert main(["compare", f"{out}/agents/mcts", f"{out}/agents/react"]) == 0
    assert "wins 0, losses 0, ties 2" in capsys.readouterr().out
    assert main(["bench", "--advise", "--out", out]) == 0
    assert "mcts" in (told := capsys.readouterr().out) and "react: 1 task cannot tell" in told
    assert main(["rescore", out, "--task", "*?seed=1"]) == 0
    assert "= mcts miniwob/click-test-2?seed=1: 1 -> 1" in capsys.readouterr().out


def own_tasks(folder: Path, url: str) -> str:
    """Write a file of two tasks: one with an evaluator, one that only the agent itself evaluates."""
    folder.mkdir()
    (folder / "judge.py").write_text("async def visited(page, outcome):\n    return await page.title() in ('Here', 'There')\n")
    judged = {"id": "judged", "goal": 'Click "There"', "url": url, "evaluate": "judge.py:visited"}
    (folder / "tasks.yaml").write_text(json.dumps([judged, {"id": "open", "goal": 'Click "There"', "url": url}]))
    return str(folder / "tasks.yaml")


def test_a_benchmark_is_made_of_tasks_of_one_s_own(httpserver: HTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    httpserver.expect_request("/").respond_with_data("<title>Here</title><a href=/there>There</a>", content_type="text/html")
    httpserver.expect_request("/there").respond_with_data("<title>There</title><p>Arrived", content_type="text/html")
    file, out = own_tasks(tmp_path / "miniwob", httpserver.url_for("/")), str(tmp_path / "bench")
    given = [file, "--agent", "react", "--agent", "best_first", "--budget", "actions=1", "--budget", "transitions=8"]
    assert main(["bench", *given, "--seeds", "3", "--parallel", "2", "--out", out]) == 0
    table = capsys.readouterr().out
    assert table.startswith("tasks.yaml seeds 3\n") and "not re-run" not in table, "whatever the folder of a file is called"
    lines = [json.loads(line) for line in (tmp_path / "bench" / "results.jsonl").read_text().splitlines()]
    found = {(line["agent"], line["task"]): (line["status"], line["score"]) for line in lines}
    for agent in ("react", "best_first"):
        assert found[agent, "own/judged?seed=3"] == ("scored", 1.0) and found[agent, "own/open?seed=3"] == ("judged", None)
        row = next(line for line in table.splitlines() if re.match(rf"{agent} +1\.000", line))
        assert re.split(" {2,}", row)[2:] == ["1", "0", "0", "1"], "scored, failed, reruns, only self-evaluated"
    assert main(["bench", "--resume", *given[:1], "--seeds", "3", "--out", out]) == 0
    assert main(["rescore", out, "--task", "own/*"]) == 0
    assert "= react own/judged?seed=3: 1 -> 1" in capsys.readouterr().out
    page = (tmp_path / "bench" / "index.html").read_text()
    links = [unquote(link) for link in re.findall(r'href="(agents/[^"]*)"', page)]
    assert len(links) == 6 and all((tmp_path / "bench" / link).exists() for link in links), "two agents and four attempts"
    assert page.count("Click &#34;There&#34;") == 2, "the texts of the tasks"


def test_a_benchmark_without_reports_has_no_links_to_any(httpserver: HTTPServer, tmp_path: Path) -> None:
    httpserver.expect_request("/").respond_with_data("<title>Here</title><a href=/there>There</a>", content_type="text/html")
    file, out = own_tasks(tmp_path / "own", httpserver.url_for("/")), tmp_path / "bench"
    assert main(["bench", f"{file}#judged", "--agent", "react", "--budget", "actions=1", "--no-reports", "--out", str(out)]) == 0
    assert not list(out.rglob("report.html")) and 'href="agents/' not in (out / "index.html").read_text()


def test_an_evaluator_that_raises_ends_its_own_attempts_and_no_others(
    httpserver: HTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    httpserver.expect_request("/").respond_with_data("<title>Here</title><a href=/>There</a>", content_type="text/html")
    file = own_tasks(tmp_path / "own", httpserver.url_for("/"))
    listed = json.loads(Path(file).read_text())
    (tmp_path / "own" / "judge.py").write_text((tmp_path / "own" / "judge.py").read_text() + "def broken(page, outcome): return {}['x']\n")
    Path(file).write_text(json.dumps([listed[0], {**listed[0], "id": "broken", "evaluate": "judge.py:broken"}]))
    given = ["--agent", "react", "--budget", "actions=1", "--out", str(tmp_path / "bench")]
    main(["bench", file, *given])
    lines = [json.loads(line) for line in (tmp_path / "bench" / "results.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["scored", "failed"] and "judge.py:broken failed: KeyError: 'x'" in lines[1]["reason"]
    logged = (tmp_path / "bench" / "errors.log").read_text()
    assert "Traceback" in logged and "KeyError: 'x'" in logged
    capsys.readouterr()
    junit = tmp_path / "junit.xml"
    assert main(["run", "--tasks", file, "--set", "limits.actions=1", "--out", str(tmp_path / "run"), "--junit", str(junit)]) == 2
    assert "judge.py:broken failed: KeyError: 'x'" in capsys.readouterr().out
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    assert [(case.get("name"), case.find("error") is not None) for case in cases] == [("judged?seed=0", False), ("broken?seed=0", True)]


def test_own_tasks_are_read_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own_tasks(tmp_path / "own", "http://127.0.0.1:9/")
    rest = ("--agent", "react", "--out", str(tmp_path / "bench"))
    assert "do not go into one" in told(capsys, "bench", file, "miniwob/click-test", *rest)
    assert "did you mean 'judged'?" in told(capsys, "bench", f"{file}#jugded", *rest)
    assert "two tasks are named own/judged?seed=0" in told(capsys, "bench", file, f"{file}#judged", *rest)
    assert "invalid seeds 'seed=0..x'" in told(capsys, "bench", file, "--seeds", "0..x", *rest)
    assert not (tmp_path / "bench").exists()


def test_own_rules_are_evaluated_by_one_model_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["three"]}}
    (tmp_path / "tasks.yaml").write_text(json.dumps([{"id": "a", "goal": "Count.", "url": "http://127.0.0.1:9/", "evaluate": rules}]))
    (tmp_path / "one.yaml").write_text("models: {parts: {evaluator: {model: m}}}\n")
    (tmp_path / "two.yaml").write_text("search: {algorithm: react}\n")
    agents = ("-a", str(tmp_path / "one.yaml"), "-a", str(tmp_path / "two.yaml"))
    assert "models.parts.evaluator differs" in told(capsys, "bench", str(tmp_path / "tasks.yaml"), *agents, "-o", str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("bench",), "no suite or no agent given"),
        (("bench", "miniwob", "--agent", "mct"), "did you mean 'mcts'?"),
        (("bench", "miniwob/click-tset", "--agent", "mcts"), "did you mean 'miniwob/click-test'?"),
        (("bench", "miniwob", "--agent", "mcts", "--agent", "mcts"), "two agents are named 'mcts'"),
        (("bench", "miniwob", "--agent", "mcts", "--budget", "actons=3"), "did you mean 'actions'?"),
        (("bench", "miniwob", "--agent", "mcts", "--budget", "actions=2.7"), "--budget actions=2.7: actions are counted"),
        (("bench", "--resume"), "--resume requires --out"),
        (("bench", "--resume", "--out", "nowhere"), "no benchmark in nowhere"),
        (("compare", "nowhere", "nowhere"), "no run in nowhere"),
        (("rescore", "nowhere"), "no run in nowhere"),
    ],
)
def test_invalid_options_are_reported_before_anything_is_written(
    args: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in told(capsys, *args)
    assert not list(tmp_path.iterdir())


def test_unequal_budgets_are_refused_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("search: {algorithm: react}\nlimits: {actions: 30}\n")
    assert "limits.actions differs (mcts 15, mine 30)" in told(
        capsys, "bench", "miniwob", "-a", "mcts", "-a", str(own), "-o", str(tmp_path / "b")
    )
    assert not (tmp_path / "b").exists()


class Judged(MiniWob):
    """MiniWoB, as if its verdicts were asked of a model."""

    def with_models(self, models: ModelsConfig) -> Suite:
        return self


def test_evaluators_with_several_models_are_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text("models: {parts: {evaluator: {model: m}, evaluator.vision: {model: v}}}\n")
    (tmp_path / "two.yaml").write_text("models: {parts: {evaluator: {model: m}, evaluator.vision: {model: w}}}\n")
    args = ("bench", "miniwob/click-test", "-a", str(tmp_path / "one.yaml"), "-a", str(tmp_path / "two.yaml"), "-o", str(tmp_path / "b"))
    monkeypatch.setattr(registry, "suites", lambda: {"miniwob": Judged()})
    assert "models.parts.evaluator.vision differs (one v, two w)" in told(capsys, *args)
    (tmp_path / "two.yaml").write_text("search: {algorithm: react}\n")
    assert "models.parts.evaluator differs (one m, two none)" in told(capsys, *args)
    assert not (tmp_path / "b").exists()


def test_too_few_environments_for_one_attempt_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("bench", "miniwob/click-test", "-a", "mcts", "--environments", "1", "-o", str(tmp_path / "b"))
    assert "one attempt may need 6" in told(capsys, *args)


def test_a_benchmark_is_not_resumed_as_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.evaluation.toys import toy_bench

    folder = toy_bench(tmp_path / "bench")
    out = str(folder.path)
    assert "has other tasks" in told(capsys, "bench", "miniwob/click-test", "--resume", "--out", out)
    assert "already holds a benchmark" in told(capsys, "bench", "miniwob/click-test", "--agent", "react", "--out", out)


def test_a_benchmark_resumed_by_other_code_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from exact.evaluation.folder import BenchFolder
    from exact.runs.journal import versions

    async def nothing(*args: object, **more: object) -> list[object]:
        return []

    monkeypatch.setattr("exact.cli.bench._run", nothing)
    monkeypatch.setattr(versions, "versions", lambda: {"exact": "1", "commit": "abc"})
    out = str(tmp_path / "bench")
    assert main(["bench", *SMALL, "--out", out]) == 0 == main(["bench", "--resume", "--out", out])
    assert "resumes with other code" not in capsys.readouterr().err
    monkeypatch.setattr(versions, "versions", lambda: {"exact": "1", "commit": "def"})
    assert main(["bench", "--resume", "--out", out]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "resumes with other code" in line]
    assert len(told) == 1 and told[0].endswith("commit abc -> def")
    assert "commit def" in (tmp_path / "bench" / "table.md").read_text()
    assert [each.versions["commit"] for each in BenchFolder(tmp_path / "bench").plan.sessions] == ["abc", "abc", "def"]


@pytest.mark.parametrize(
    "option",
    ["--budget actions=99", "--set search.c=3", "--reruns 1", "--own-budgets", "--allow-same-task", "--seeds 0..9"],
)
def test_options_fixed_at_the_start_of_a_benchmark_are_refused_with_resume(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.evaluation.toys import toy_bench

    out = str(toy_bench(tmp_path / "bench").path)
    said = told(capsys, "bench", "--resume", "--out", out, *option.split())
    assert f"{option.split()[0]} cannot be changed with --resume" in said and out in said


def test_the_old_name_of_environments_says_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *SMALL, "--worlds", "2"]) == 2
    assert "--worlds is now --environments" in capsys.readouterr().err


def test_money_for_all_attempts_needs_a_limit_on_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = told(capsys, "bench", "miniwob/click-test", "--agent", "react", "--money", "1", "--out", str(tmp_path / "bench"))
    assert "agent react has none: add --budget money=0.5" in error and not (tmp_path / "bench").exists()


def test_a_benchmark_stops_where_its_money_does_not_suffice_and_goes_on_with_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "bench")
    assert (
        main(["bench", "miniwob/click-test", "-a", "react", "--budget", "money=0.5", "--money", "0.4", "--out", out, "--no-reports"]) == 1
    )
    assert "1 attempt not started, because --money 0.4 is not enough" in capsys.readouterr().err
    assert main(["bench", "--resume", "--out", out, "--money", "0.5", "--no-reports"]) == 0
    assert main(["show", out, "--progress"]) == 0 and capsys.readouterr().out.endswith("complete\n")


def test_a_dry_run_says_what_all_attempts_cost_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ("--set", 'models.policy={"model": "m", "base_url": "http://127.0.0.1:1/v1", "price": {"input": 1, "output": 1}}')
    llm = tmp_path / "mine.yaml"
    llm.write_text("policy: {kind: llm}\nsearch: {algorithm: react}\nvalue: {kind: constant}\nreflection: {kind: none}\n")
    words = [
        "bench",
        "miniwob/click-test-2?seed=0..2",
        "--agent",
        "react",
        "--agent",
        str(llm),
        *model,
        "--dry-run",
        "--out",
        str(tmp_path / "new"),
    ]
    assert main([*words, "--budget", "money=0.5"]) == 0
    plan = capsys.readouterr().out
    assert "6 attempts, at most $1.5 in all" in plan and "agent             mine: react" in plan and not (tmp_path / "new").exists()
    assert main([*words, "--budget", "money=0.5", "--money", "1"]) == 0
    assert "at most $1 in all" in capsys.readouterr().out
    assert main(["bench", "miniwob/click-test-2", "--agent", "react", "--dry-run"]) == 0
    assert "1 attempt, at most $0 in all" in capsys.readouterr().out
    assert main(words) == 0
    assert "no cap on the money (add --money DOLLARS)" in capsys.readouterr().out


def test_a_dry_run_shows_a_new_benchmark_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "leave out --resume" in told(capsys, "bench", "--resume", "--dry-run", "--out", str(tmp_path))
