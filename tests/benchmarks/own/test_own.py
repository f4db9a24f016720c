"""Tasks of one's own: judged by a function, by rules, or by nobody but the agent; and what continuous integration gets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_httpserver import HTTPServer

from exact.benchmarks.own.evaluate import evaluator
from exact.benchmarks.own.files import read
from exact.cli.outcome import is_solved, junit_xml
from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.errors import EnvironmentFailure, EvaluatorError, UsageError
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Outcome
from tests.benchmarks.webarena.conftest import standing

PAGE = standing("http://shop.test/paid")
CHECKS = """
import threading
from exact.task import Score

def yes(page, outcome): return True
def half(page, outcome): return 0.5
async def scored(page, outcome): return Score(value=1.0, success=True, reason=page.url)
def asserts(page, outcome): assert outcome.answer == "42", "the answer is not 42"
def breaks(page, outcome): return 1 / 0
def seven(page, outcome): return Score(value=7.0, success=True)
def nan(page, outcome): return Score(value=float("nan"), success=False)
def nothing(page, outcome): return "yes"
def waits(page, outcome): return page.wait(5)
def left(page, outcome): return threading.current_thread().daemon
def stops(page, outcome): return next(iter(()))
async def thanks(page, outcome): return bool(await page.inner_text("#thanks", timeout=100))
async def awaits(page, outcome): await page.locator("#thanks").wait_for(timeout=100)
async def leaves(page, outcome): await page.goto(page.url, timeout=1)
async def hangs(page, outcome):
    await page.evaluate("setTimeout(() => { for (;;); })")
    return await page.inner_text("#thanks", timeout=100)
async def heading(page, outcome): return "Thank" in await page.inner_text("h1")
"""


def tasks(folder: Path, *entries: str) -> Path:
    (folder / "checks.py").write_text(CHECKS)
    path = folder / "tasks.yaml"
    url = "url: 'http://shop.test/', "
    path.write_text(
        "\n".join(f"- {{id: t{at}, goal: Do it., {'' if entry.startswith('url:') else url}{entry}}}" for at, entry in enumerate(entries))
    )
    return path


async def score(folder: Path, name: str, answer: str | None = None, page: Any = PAGE) -> Any:
    (task,) = read(tasks(folder, f"evaluate: 'checks.py:{name}'"))
    judge = evaluator(task)
    assert judge is not None
    return await judge(page, Outcome(actions=(), answer=answer))


async def test_a_function_judges(tmp_path: Path) -> None:
    assert (await score(tmp_path, "yes")).success
    assert ((await score(tmp_path, "half")).value, (await score(tmp_path, "half")).success) == (0.5, False)
    assert (await score(tmp_path, "scored")).reason == PAGE.url


async def test_an_assertion_that_does_not_hold_is_a_score_and_any_other_error_is_not(tmp_path: Path) -> None:
    assert (await score(tmp_path, "asserts", "41")).reason == "the answer is not 42"
    with pytest.raises(EvaluatorError, match=r"checks\.py:breaks failed: ZeroDivisionError"):
        await score(tmp_path, "breaks")
    with pytest.raises(EvaluatorError, match=r"checks\.py:stops failed: StopIteration"):
        await score(tmp_path, "stops")
    with pytest.raises(EvaluatorError, match=r"gave 'yes': give a Score"):
        await score(tmp_path, "nothing")
    for name in ("seven", "nan"):
        with pytest.raises(EvaluatorError, match=rf"checks\.py:{name} gave Score\(.*give a Score"):
            await score(tmp_path, name)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", ["thanks", "awaits", "leaves", "hangs"])
async def test_a_missing_element_is_a_score_and_a_page_that_does_not_load_is_none(
    name: str, browser: Browser, httpserver: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exact.benchmarks.own.evaluate._ALIVE", 1.0)
    httpserver.expect_request("/").respond_with_data("<h1>Sorry</h1>", content_type="text/html")
    (task,) = read(tasks(tmp_path, f"evaluate: 'checks.py:{name}'"))
    config = BrowserConfig(screenshots=False, answer_seconds=3.0)
    environments = BrowserFactory(browser, PageSetup(), config, isolated=False, evaluator=evaluator(task))
    async with environments.open(simulation=False) as environment:
        await environment.reset(msgspec.structs.replace(task, start=httpserver.url_for("/"), origins=()))
        if name in ("leaves", "hangs"):
            with pytest.raises(EnvironmentFailure, match="evaluate: "):
                await environment.evaluate(Outcome(actions=()))
        else:
            judged = await environment.evaluate(Outcome(actions=()))
            assert (judged.value, judged.success) == (0.0, False) and "Timeout 100ms exceeded" in judged.reason


async def test_an_evaluator_that_waits_delays_neither_other_attempts_nor_the_end_of_the_process(tmp_path: Path) -> None:
    go = threading.Event()

    async def others() -> None:
        go.set()

    verdict, _ = await asyncio.gather(score(tmp_path, "waits", page=go), others())
    assert verdict.success, "others went on"
    assert (await score(tmp_path, "left")).success


async def test_webarena_s_rules_judge_too(tmp_path: Path) -> None:
    (task,) = read(tasks(tmp_path, "evaluate: {eval_types: [url_match], reference_url: 'http://shop.test/paid'}"))
    judge = evaluator(task)
    assert judge is not None and (await judge(PAGE, Outcome(actions=()))).success


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("locator", "wanted"),
    [
        ("document.querySelector('textarea').value", "{exact_match: Tea & milk}"),
        ("document.querySelector('p').innerHTML", "{exact_match: Tea & milk}"),
        ("document.querySelector('p').innerHTML", "{must_include: ['TEA & MILK', milk]}"),
        ("document.querySelector('textarea').value", "{must_exclude: [coffee], exact_match: '\"Tea & milk\" '}"),
    ],
)
async def test_rules_compare_texts_without_ends_and_entities(
    locator: str, wanted: str, browser: Browser, httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request("/").respond_with_data(
        "<textarea>Tea &amp; milk\n</textarea><p> Tea &amp; milk </p>", content_type="text/html"
    )
    look = f'{{url: last, locator: "{locator}", required_contents: {wanted}}}'
    (task,) = read(tasks(tmp_path, f"evaluate: {{eval_types: [program_html], program_html: [{look}]}}"))
    kind = BrowserFactory(browser, PageSetup(), BrowserConfig(screenshots=False), isolated=False, evaluator=evaluator(task))
    async with kind.open(simulation=False) as environment:
        await environment.reset(msgspec.structs.replace(task, start=httpserver.url_for("/"), origins=()))
        judged = await environment.evaluate(Outcome(actions=()))
        assert judged.success, judged.reason


async def test_a_name_of_a_site_in_the_rules_is_the_address_of_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP", "http://shop.test/")
    (task,) = read(tasks(tmp_path, "evaluate: {eval_types: [url_match], reference_url: __SHOP__/paid}"))
    judge = evaluator(task)
    assert judge is not None and (await judge(PAGE, Outcome(actions=()))).success


def test_a_model_that_is_to_judge_and_is_not_there_is_missed_before_the_attempt(tmp_path: Path) -> None:
    asks = "evaluate: {eval_types: [string_match], reference_answers: {fuzzy_match: [noon]}}"
    (task,) = read(tasks(tmp_path, asks))
    with pytest.raises(UsageError, match=r"this task's verdict needs a model: name one at models\.parts\.evaluator"):
        evaluator(task)


def test_an_attempt_without_an_evaluator_is_not_scored(tmp_path: Path) -> None:
    (task,) = read(tasks(tmp_path, "seed: 3"))
    assert evaluator(task) is None and task.id == "own/t0?seed=3"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("evaluate: 'checks.py'", r"tasks\.yaml: task t0: evaluate 'checks.py' names no function"),
        ("evaluate: 'absent.py:f'", r"task t0: evaluate: there is no file .*absent\.py"),
        ("evaluate: 'checks.py:absent'", r"task t0: evaluate: .* has no function 'absent'"),
        ("evaluate: {eval_types: [magic]}", r"task t0: evaluate: task own: Invalid enum value 'magic'"),
        ("evalute: x", r"tasks\.yaml: task t0: Object contains unknown field `evalute`"),
        ("url: 'http://[::1'", r"task t0: url 'http://\[::1' is no web address"),
        ("evaluate: {eval_types: [url_match], reference_url: x, note: {true: y}}", r"task t0: evaluate cannot be kept as JSON: .*keys"),
        ("geolocation: 'here'", r"tasks\.yaml: task own/t0\?seed=0: invalid geolocation 'here': write `latitude longitude`"),
        ("geolocation: '-91 0'", r"tasks\.yaml: task own/t0\?seed=0: invalid geolocation '-91 0'"),
        ("tabs: ['http://a.test/', 'b']", r"tasks\.yaml: task t0: tabs\[1\] 'b' is no web address: write http://host/path"),
        ("tabs: ['http://a.test/a b']", r"tasks\.yaml: task t0: tabs\[0\] 'http://a\.test/a b' is no web address"),
        ("evaluate: {eval_types: [url_match], reference_url: 'a |OR| '}", r"tasks\.yaml: task t0: .*`eval\.reference_url` is empty"),
        ("evaluate: {eval_types: [url_match], reference_url: __SHOP__}", r"tasks\.yaml: task t0: .* has no address: export SHOP="),
        ("origins: here", r"task t0: Expected `array`, got `str` - at `\$\.origins`"),
    ],
)
def test_an_error_names_file_task_and_field(entry: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        read(tasks(tmp_path, entry))


def test_a_file_without_a_list_and_equal_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("id: x")
    with pytest.raises(UsageError, match=r"a\.yaml holds no list of tasks"):
        read(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("- {id: x, goal: g, url: 'http://a/'}\n- {id: x, goal: g, url: 'http://a/'}")
    with pytest.raises(UsageError, match="two tasks are named own/x"):
        read(tmp_path / "b.yaml")


def test_a_key_that_is_no_text_and_an_address_that_is_none_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.yaml"
    path.write_text("1: x\nsite: site.yaml\ntasks: []")
    with pytest.raises(UsageError, match=r"unknown key '1' in .*tasks\.yaml"):
        read(path)
    path.write_text("site: {name: a, url: 'http://a.test'}\ntasks: [{id: t, instruction: Look., start: 'http://[::1'}]")
    with pytest.raises(UsageError, match=r"task t: start 'http://\[::1' is no address"):
        read(path)


def test_a_date_in_a_note_is_kept_as_it_was_written(tmp_path: Path) -> None:
    note = "evaluate: {eval_types: [url_match], reference_url: 'http://shop.test/paid', checked: 2026-11-21}"
    (task,) = read(tasks(tmp_path, note))
    assert json.loads(str(task.private["evaluate"]))["checked"] == "2026-11-21" and evaluator(task) is not None


def test_every_seed_of_a_task_is_a_task(tmp_path: Path) -> None:
    entries = [f"- {{id: {name}, seed: {seed}, goal: Do it., url: 'http://shop.test/'}}" for name, seed in (("a", 0), ("a", 1), ("b", 0))]
    (tmp_path / "tasks.yaml").write_text("\n".join(entries))
    assert [task.id for task in read(tmp_path / "tasks.yaml")] == ["own/a?seed=0", "own/a?seed=1", "own/b?seed=0"]
    assert [task.seed for task in read(tmp_path / "tasks.yaml", "a")] == [0, 1]


def tasks_file(folder: Path, *entries: str) -> Path:
    file = folder / "tasks.yaml"
    file.write_text(
        "site: {name: shop, url: 'http://shop.test'}\ntasks:\n" + "".join(f"- {{instruction: x, {entry}}}\n" for entry in entries)
    )
    return file


def test_a_task_comes_after_those_that_it_needs(tmp_path: Path) -> None:
    file = tasks_file(tmp_path, "id: pay, after: [order, login]", "id: look", "id: order, after: [login]", "id: login")
    tasks = read(file)
    assert [(task.id, task.after) for task in tasks] == [
        ("shop/login", ()), ("shop/order", ("shop/login",)), ("shop/pay", ("shop/order", "shop/login")), ("shop/look", ()),
    ]  # fmt: skip


def test_a_long_chain_of_tasks_is_put_in_order(tmp_path: Path) -> None:
    tasks = read(tasks_file(tmp_path, *(f"id: t{number}, after: [t{number + 1}]" for number in range(1500)), "id: t1500"))
    assert [task.id for task in tasks] == [f"shop/t{number}" for number in reversed(range(1501))]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (("id: pay, after: [ordre]", "id: order"), r"unknown task 'ordre' in .*tasks\.yaml: after of pay: did you mean 'order'\?"),
        (
            ("id: a, after: [b]", "id: b, after: [c]", "id: c, after: [a]"),
            r"tasks\.yaml: tasks wait for each other: \w( after \w){3}: leave",
        ),
        (("id: a, after: [a]",), r"tasks wait for each other: a after a"),
    ],
)
def test_tasks_that_can_never_begin_are_refused(entries: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        read(tasks_file(tmp_path, *entries))


def test_equal_names_on_a_site_are_refused(tmp_path: Path) -> None:
    entries = "[{id: a, instruction: Do it.}, {id: a, seed: 1, instruction: Do that.}]"
    (tmp_path / "tasks.yaml").write_text(f"site: {{name: shop, url: 'http://shop.test/'}}\ntasks: {entries}")
    with pytest.raises(UsageError, match=r"tasks\.yaml: two tasks are named shop/a: each needs an id of its own"):
        read(tmp_path / "tasks.yaml")


LINES = (
    ResultLine(task="own/a?seed=0", seed=0, agent="x", status="scored", score=1.0, seconds=1.5),
    ResultLine(task="own/b?seed=0", seed=0, agent="x", status="scored", score=0.0),
    ResultLine(task="own/c?seed=0", seed=0, agent="x", status="judged", value=0.9),
    ResultLine(task="own/d?seed=0", seed=0, agent="x", status="judged", value=0.1),
    ResultLine(task="own/e?seed=0", seed=0, agent="x", status="failed", reason="the site is <down> \x00 & out"),
    ResultLine(task="own/f?seed=0", seed=0, agent="x", status="stopped", reason="nothing left"),
)


def test_junit_tells_failures_from_errors() -> None:
    suite = ET.fromstring(junit_xml(LINES, "my agent"))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("time")) == ("6", "3", "1", "1.500")
    cases = {case.get("name", "")[0]: [child.tag for child in case if child.tag != "system-out"] for case in suite}
    assert cases == {"a": [], "b": ["failure"], "c": [], "d": ["failure"], "e": ["error"], "f": ["failure"]}
    error = suite.find("testcase/error")
    assert error is not None and error.get("message") == "the site is <down> \N{REPLACEMENT CHARACTER} & out"
    assert [is_solved(line) for line in LINES] == [True, False, True, False, False, False]


def exact(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exact.cli", *arguments]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environ)


def test_a_run_of_own_tasks_is_scored_and_its_exit_code_says_whether_they_are_solved(
    httpserver: HTTPServer, executable: str, tmp_path: Path
) -> None:
    httpserver.expect_request("/thanks").respond_with_data("<h1>Thank you</h1>", content_type="text/html")
    httpserver.expect_request("/").respond_with_data("<h1>Shop</h1><a href=/thanks>Pay</a>", content_type="text/html")
    (tmp_path / "checks.py").write_text(CHECKS)
    goal, url = 'Click the link "Pay".', httpserver.url_for("/")
    entries = [
        f"- {{id: pay, goal: '{goal}', url: '{url}', evaluate: 'checks.py:heading'}}",
        f"- {{id: look, goal: '{goal}', url: '{url}'}}",
    ]
    (tmp_path / "tasks.yaml").write_text("\n".join(entries))
    short = ["--set", "search.algorithm=react", "--set", "limits.actions=1", "--set", "reflection.kind=none"]
    to = ["--out", str(tmp_path / "run"), "--junit", str(tmp_path / "ci" / "junit.xml")]
    done = exact("run", "--tasks", str(tmp_path / "tasks.yaml"), "--fail-unsolved", *short, *to)
    lines = list(RunFolder.open(tmp_path / "run").results())
    assert [line.status for line in lines] == ["scored", "judged"] and lines[0].score == 1.0
    assert done.returncode == (0 if is_solved(lines[1]) else 3), done.stderr
    assert ET.parse(tmp_path / "ci" / "junit.xml").getroot()[0].get("tests") == "2"
    (tmp_path / "tasks.yaml").write_text(entries[0].replace("heading", "asserts"))
    again = exact("run", "--tasks", str(tmp_path / "tasks.yaml"), "--fail-unsolved", *short, "--out", str(tmp_path / "two"))
    assert again.returncode == 3 and "Traceback" not in again.stderr


def test_tasks_of_a_file_go_alone(tmp_path: Path) -> None:
    done = exact("run", "--tasks", str(tasks(tmp_path, "seed: 1")), "--goal", "x", "--out", str(tmp_path / "run"))
    assert done.returncode == 2 and "--tasks excludes" in done.stderr
