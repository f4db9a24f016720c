"""The suite webarena_verified: its ids and lists, what it needs, and attempts on a served site."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.benchmarks import registry
from exact.benchmarks.webarena_verified import install
from exact.benchmarks.webarena_verified.install import DataSet
from exact.benchmarks.webarena_verified.suite import WebArenaVerified
from exact.config import BrowserConfig
from exact.errors import EnvironmentFailure, UsageError
from exact.task import Outcome
from tests.benchmarks.webarena_verified.made_up import SITES, python

NAVIGATE, TABS, COOKIES, CONTENT, BIKE = "378", "97", "511", "293", "268"
"""Tasks of the data set: a page of the map, two start pages, and tasks whose evaluators read cookies, JSON and a sent cookie."""
RIGHT = json.dumps({"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": None})


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for site, address in SITES.items():
        monkeypatch.setenv(f"WA_{site.upper()}", address)


@pytest.fixture
def suite(addresses: None) -> WebArenaVerified:
    python()
    return WebArenaVerified()


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Hide the evaluators, and the cache of wheels."""
    monkeypatch.delenv(install.VARIABLE, raising=False)
    monkeypatch.setattr(install, "_OURS", tmp_path / "none")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield


def test_ids_need_no_package(no_package: None) -> None:
    assert len(registry.suites()["webarena_verified"].ids()) == 812


def test_the_lists_are_the_hard_tasks_and_those_by_site_type_and_template(suite: WebArenaVerified) -> None:
    lists = suite.lists()
    assert (len(lists["hard"]), len(set(lists["hard"]))) == (258, 258) and set(lists["hard"]) < set(suite.ids())
    assert sum(len(lists[kind]) for kind in ("retrieve", "mutate", "navigate")) == 812
    assert "webarena_verified/378" in lists["map"] and "webarena_verified/378" in lists["template-59"]


def test_every_task_can_be_made_and_hides_what_is_expected(suite: WebArenaVerified) -> None:
    tasks = [suite.task(id) for id in suite.ids()]
    assert all("__" not in task.start and task.start.startswith("http://127.0.0.1:9") for task in tasks)
    assert all(not task.private and set(task.metadata) <= {"sites", "template", "tabs"} for task in tasks)
    assert all('"retrieved_data"' in task.instruction and "Lumaflex" not in task.instruction for task in tasks[:5])
    assert any("tabs" in task.metadata for task in tasks)


def test_what_evaluators_read_is_kept_and_nothing_else(suite: WebArenaVerified) -> None:
    kept = {number: suite._data.tasks[number].kept for number in (NAVIGATE, COOKIES, CONTENT, BIKE)}
    assert kept[COOKIES].cookies("mage-messages") and not kept[COOKIES].cookies("PHPSESSID") and kept[COOKIES].sent_cookies is None
    assert not kept[NAVIGATE].cookies("mage-messages") and not kept[NAVIGATE].json
    sent = kept[BIKE].sent_cookies
    assert sent is not None and sent("_osm_directions_engine") and not sent("engine") and not sent("_osm_session")
    assert any(each.kept.json for each in suite._data.tasks.values())


def test_an_address_that_is_missing_is_named_with_its_task(suite: WebArenaVerified, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WA_MAP")
    monkeypatch.delenv("MAP", raising=False)
    with pytest.raises(UsageError, match=r"task 378: the site map has no address: export WA_MAP=http://host:port"):
        suite.task("webarena_verified/378")


def test_a_number_that_is_none_is_answered_with_the_nearest(suite: WebArenaVerified) -> None:
    with pytest.raises(UsageError, match="unknown task 'webarena_verified/8111': did you mean 'webarena_verified/811'"):
        suite.task("webarena_verified/8111")


def test_a_place_without_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_package: None) -> None:
    with pytest.raises(UsageError, match=r"not installed: run shells/setup.sh --webarena-verified.*set EXACT_WEBARENA_VERIFIED to it"):
        install.interpreter()
    monkeypatch.setenv(install.VARIABLE, str(tmp_path))
    for asked in (install.interpreter, install.data_set):
        with pytest.raises(UsageError, match=r"EXACT_WEBARENA_VERIFIED is .*, which has no webarena-verified"):
            asked()


def test_without_the_package_the_data_set_of_its_wheel_is_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, addresses: None) -> None:
    python()
    here, wheel = install.data_set(), tmp_path / "webarena_verified-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (install.TASKS, install.HARD):
            archive.write(here / name, f"webarena_verified/{name}")
    monkeypatch.delenv(install.VARIABLE, raising=False)
    monkeypatch.setattr(install, "_OURS", tmp_path / "none")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("EXACT_WEBARENA_VERIFIED_TASKS", str(wheel))
    listed = WebArenaVerified()
    assert len(listed.lists()["hard"]) == 258 and listed.task("webarena_verified/811").start.startswith("http://127.0.0.1")


def test_a_virtual_environment_or_its_python_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    here = python()
    monkeypatch.setattr(install, "_OURS", Path("/nowhere"))
    for said in (here, here.parents[1]):
        monkeypatch.setenv(install.VARIABLE, str(said))
        assert install.interpreter() == here and (install.data_set() / install.TASKS).is_file()


def test_a_data_set_that_does_not_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / install.TASKS
    path.parent.mkdir(parents=True)
    path.write_text('[{"task_id": "a"}]')
    monkeypatch.setattr("exact.benchmarks.webarena_verified.install.data_set", lambda: tmp_path)
    with pytest.raises(UsageError, match=r"webarena-verified\.json is no data set of webarena-verified: .*: install it again"):
        _ = DataSet().tasks


@pytest.fixture
def served(suite: WebArenaVerified, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> WebArenaVerified:
    """Serve a map whose every page has a form with a secret."""

    def answer(request: Request) -> Response:
        fields = "<input name=query aria-label=Find><input name=token value=hunter2 type=hidden>"
        form = f"<form action=/search>{fields}<button>Go</button></form>"
        return Response(form, content_type="text/html", headers={"Set-Cookie": "session=hunter2"})

    for path in ("/", "/search"):
        httpserver.expect_request(path).respond_with_handler(answer)
    monkeypatch.setenv("WA_MAP", f"http://localhost:{httpserver.port}")
    return suite


def found(folder: Path) -> list[Path]:
    return list(folder.rglob("network.har"))


async def test_an_attempt_is_scored_by_its_answer_and_its_traffic(served: WebArenaVerified, executable: str, tmp_path: Path) -> None:
    config, task = BrowserConfig(screenshots=False, traces=str(tmp_path)), served.task(f"webarena_verified/{NAVIGATE}")
    async with served.environments(config) as environments, environments.open(simulation=False) as environment:
        await environment.reset(task)
        assert (await environment.evaluate(Outcome(actions=(), answer=RIGHT))).value == 0.0, "the page was not shown"
        field = next(each.id for each in environment.observation.elements if each.name == "Find")
        await environment.step(environment.actions.action("fill", field, "parking near Carnegie Mellon University"))
        await environment.step(environment.actions.action("press", "Enter"))
        assert (await environment.evaluate(Outcome(actions=(), answer="done"))).value == 0.0
        unanswered = await environment.evaluate(Outcome(actions=()))
        assert unanswered.unanswered and unanswered.reason == "no final answer was given"
    files = sorted(path.relative_to(tmp_path) for path in found(tmp_path))
    assert [str(path.parent) for path in files] == [f"webarena_verified-{number}/378" for number in (1, 2, 3)]
    last = tmp_path / files[-1]
    assert stat.S_IMODE(last.stat().st_mode) == 0o600 and "hunter2" not in last.read_text()
    assert (tmp_path / files[0]).with_name("agent_response.json").read_text() == RIGHT
    urls = [each["request"]["url"] for each in json.loads(last.read_text())["log"]["entries"]]
    assert urls[-1].endswith("/search?query=parking+near+Carnegie+Mellon+University&token=scrubbed")


async def test_an_environment_that_searches_is_not_recorded(served: WebArenaVerified, executable: str) -> None:
    async with served.environments(BrowserConfig(screenshots=False)) as environments, environments.open(simulation=True) as environment:
        await environment.reset(served.task(f"webarena_verified/{NAVIGATE}"))
        with pytest.raises(EnvironmentFailure, match="no traffic of this environment was recorded"):
            await environment.evaluate(Outcome(actions=(), answer=RIGHT))


async def test_missing_evaluators_are_told_before_an_attempt(
    served: WebArenaVerified, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = served.task(f"webarena_verified/{NAVIGATE}")
    monkeypatch.setattr(install, "_OURS", Path("/nowhere"))
    monkeypatch.delenv(install.VARIABLE, raising=False)
    async with served.environments(BrowserConfig(screenshots=False)) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(UsageError, match="the evaluators of webarena_verified are not installed"):
            await environment.reset(task)
