"""The 60 tasks: what they are made of, and what the suites say about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from exact.benchmarks import registry
from exact.benchmarks.sites.suite import TRAC, SiteSuite, _reset, interpreter, trac, wagtail
from exact.environments.browser.observe.describe import Masks, fingerprint
from exact.errors import EnvironmentFailure, UsageError
from exact.observation import Element, Observation
from exact.task import Task
from tests.benchmarks.sites.walk import REFERENCE, facts, said, stands, unsaid


@pytest.fixture(params=[trac, wagtail])
def site(request: pytest.FixtureRequest) -> SiteSuite:
    made: SiteSuite = request.param()
    return made


def test_each_site_has_thirty_tasks_whose_evaluators_can_be_made(site: SiteSuite) -> None:
    assert list(site.ids()) == [f"{site.name}/{number}" for number in range(1, 31)]
    assert all(site.checks(id.partition("/")[2]) for id in site.ids())


def test_tasks_are_of_all_kinds(site: SiteSuite) -> None:
    lists = site.lists()
    assert sum(len(lists[name]) for name in ("easy", "medium", "hard")) == 30
    assert min(len(lists[name]) for name in ("easy", "medium", "hard")) >= 7
    assert min(len(lists[name]) for name in ("reads", "writes")) >= 12
    files = site.files.values()
    assert len({file.storage_state for file in files}) >= 4, "several people, and nobody"
    assert sum("N/A" in file.goal for file in files) >= 2, "some cannot be done"
    assert len({file.goal for file in files}) == 30


def test_each_task_has_a_reference_and_a_wrong_sequence(site: SiteSuite) -> None:
    for id in site.ids():
        sequences = REFERENCE[id]
        assert sequences["right"][-1][0] == sequences["wrong"][-1][0] == "stop" and sequences["right"] != sequences["wrong"]


def test_each_references_pages_hold_its_answer_or_it_says_why_no_page_does(site: SiteSuite) -> None:
    for id in site.ids():
        wanted, reference = site.files[id.partition("/")[2]].eval.reference_answers, REFERENCE[id]
        assert ("says" in reference) == (wanted is not None), id
        if wanted is not None:
            assert facts(wanted) and not unsaid(
                wanted, reference["says"], [" ".join(reference["says"]).lower()], reference.get("because", "")
            )


def ticket(priority: str) -> str:
    """Return the text of Trac's page of a ticket."""
    cells = [("heading", "Wheel for arm64 is missing"), ("rowheader", "Priority:"), ("cell", priority), ("link", priority)]
    elements = tuple(Element(id=str(number), role=role, name=name) for number, (role, name) in enumerate(cells))
    return said(Observation(text="", fingerprint="", elements=elements))


def test_a_reference_fails_where_a_wrong_datum_has_the_site_say_another_answer() -> None:
    wanted, says = trac().files["3"].eval.reference_answers, REFERENCE["trac/3"]["says"]
    assert wanted is not None
    assert unsaid(wanted, says, [ticket("critical")]) == ""
    assert unsaid(wanted, says, [ticket("major")]) == "no page says 'Priority: critical'"
    assert unsaid(wanted, says[:1], [ticket("major")]) == "nothing that the pages are to say has the answer 'critical'"
    assert unsaid(wanted, says[:1], [ticket("major")], "counted") == ""
    assert unsaid(wanted, (), [ticket("critical")], "counted") == "nothing is named that the pages are to say"


@pytest.mark.parametrize(
    ("fact", "text", "there"),
    [
        ("4", "(4 matches)", True),
        ("4", "4.2 million", False),
        ("4", "3,400", False),
        ("2.11", "room 2.11.", True),
        ("Ness", "wellness", False),
    ],
)
def test_a_page_holds_an_answer_that_is_a_separate_word_or_number(fact: str, text: str, there: bool) -> None:
    assert stands(fact, text) is there


@pytest.mark.parametrize(
    ("task", "now", "later", "other"),
    [
        (wagtail().task("wagtail/26"), "Nov 23, 2026, 3:32 AM", "Nov 23, 2026, 3:33 AM", "20 May 2024"),
        (trac().task("trac/14"), "by bob, on 11/23/26 at 03:40:37", "by bob, on 11/23/26 at 06:02:48", "by bob, on 11/23/26"),
    ],
    ids=["wagtail", "trac"],
)
def test_text_with_the_present_time_does_not_distinguish_states(task: Task, now: str, later: str, other: str) -> None:
    def seen(date: str) -> str:
        element = Element(id="1", role="StaticText", name=date)
        return fingerprint("http://site.test/page", [element], masks=Masks().for_task(task)).fingerprint

    assert seen(now) == seen(later) != seen(other)


def test_no_reference_is_in_the_package(site: SiteSuite) -> None:
    for path in site.path.parent.rglob("*.json"):
        assert "right" not in path.read_text("utf-8").split('"')


def test_the_registry_knows_the_suites() -> None:
    found = registry.expand(["trac/@writes", "wagtail/1"])
    assert found[-1].id == "wagtail/1?seed=0" and found[0].start.startswith("http://trac.test/")
    with pytest.raises(UsageError, match="did you mean 'trac/3"):
        registry.task("trac/33")


def test_an_unknown_site_in_a_users_task_file_is_named_with_file_task_and_field(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(trac().path.read_text("utf-8").replace("__TRAC__/report/1", "__REDDIT__/report/1"), "utf-8")
    with pytest.raises(UsageError, match=r"mine\.json: task 6: `start_url`: the site reddit has no address"):
        SiteSuite(TRAC, path=path).task("trac/6")


def test_without_the_applications_the_way_to_get_them_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_SITES", str(tmp_path))
    with pytest.raises(UsageError, match=r"EXACT_SITES is .* there is no Python"):
        interpreter()


def test_missing_applications_are_reported_with_the_way_to_install_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("EXACT_SITES", raising=False)
    monkeypatch.setattr("exact.benchmarks.sites.suite._OURS", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"^Trac and Wagtail are not installed: run shells/setup\.sh --sites, or .* EXACT_SITES to it"):
        interpreter()


def test_a_site_beside_the_browser_is_reset_without_the_users_proxy(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    httpserver.expect_request("/__reset__", method="POST", headers={"X-Reset": "t"}).respond_with_data("")
    _reset(httpserver.port, "t")
    with pytest.raises(EnvironmentFailure, match="was not reset"):
        _reset(httpserver.port, "another")
