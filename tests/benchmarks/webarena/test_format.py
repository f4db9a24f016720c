"""Task files: all of both benchmarks read, and what is wrong in one is named with file, task and field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from exact.benchmarks.webarena import WebArena, parse, read
from exact.benchmarks.webarena.judges import Judges
from exact.errors import UsageError
from tests.benchmarks.webarena.conftest import checks, item, nobody


def test_every_task_file_is_a_task_whose_evaluators_can_be_made(suite: WebArena) -> None:
    made = {id: len(suite.checks(id.partition("/")[2], Judges(nobody))) for id in suite.ids()}
    assert len(made) == {"webarena": 812, "visualwebarena": 910}[suite.name] and min(made.values()) >= 1
    tasks = [suite.task(id) for id in suite.ids()]
    assert all(task.start.startswith("http://127.0.0.1:9") and task.instruction and task.origins for task in tasks)
    assert not any("__" in url for task in tasks for url in (task.start, *task.images, *task.origins))


def test_several_start_addresses_are_tabs_and_pictures_have_addresses(suite: WebArena) -> None:
    tasks = [suite.task(id) for id in suite.ids()]
    tabs = [task for task in tasks if "tabs" in task.metadata]
    assert len(tabs) == {"webarena": 5, "visualwebarena": 62}[suite.name]
    assert all(url.startswith("http://127.0.0.1:9") for task in tabs for url in str(task.metadata["tabs"]).splitlines())
    assert sum(bool(task.images) for task in tasks) == {"webarena": 0, "visualwebarena": 321}[suite.name]


def test_the_name_of_the_storage_state_says_who_begins_logged_in(suite: WebArena) -> None:
    logged_in = [file.logged_in for file in suite.files.values()]
    assert sum(map(bool, logged_in)) == {"webarena": 684, "visualwebarena": 910}[suite.name]
    assert logged_in.count(("gitlab", "reddit")) == {"webarena": 18, "visualwebarena": 0}[suite.name]


def test_the_ids_of_the_release_are_those_of_its_file(suite: WebArena) -> None:
    assert set(suite.ids()) == {f"{suite.name}/{number}" for number in suite.files}
    assert {f"{suite.name}/{at}" for at in range(len(suite.files))} == set(suite.ids())


def test_the_ids_are_those_of_a_file_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "few.json").write_text(json.dumps([item(task_id=number) for number in (3, 5)]))
    monkeypatch.setenv("EXACT_WEBARENA", str(tmp_path / "few.json"))
    assert WebArena().ids() == ("webarena/3", "webarena/5")


def test_lists_are_by_site_difficulty_and_template(suite: WebArena) -> None:
    lists = suite.lists()
    assert len(lists["shopping"]) == {"webarena": 192, "visualwebarena": 479}[suite.name]
    assert any(name.startswith("template-") and len(ids) > 1 for name, ids in lists.items())


def test_a_goal_is_made_of_its_template() -> None:
    made = parse(item(intent="", intent_template="Buy {{n}} of {{what}}", instantiation_dict={"n": 3, "what": "tea"}), "x.json")
    assert made.goal == "Buy 3 of tea"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"eval": {"eval_types": ["magic_match"]}}, r"x\.json: task 7: Invalid enum value 'magic_match' - at `\$\.eval\.eval_types\[0\]`"),
        ({"eval": None}, r"x\.json: task 7: Expected `object`, got `null` - at `\$\.eval`"),
        ({"start_url": 3}, r"x\.json: task 7: Expected `str`, got `int` - at `\$\.start_url`"),
        ({"require_reset": "no"}, r"task 7: .*`\$\.require_reset`"),
        ({"eval": {"eval_types": ["url_match"]}}, r"task 7: `url_match` needs the field `eval\.reference_url`"),
        ({"eval": {"eval_types": ["string_match"], "reference_answers": {"exactly": "5"}}}, r"task 7: .*unknown field `exactly`"),
        ({"eval": {"eval_types": []}}, r"task 7: `eval\.eval_types` is empty"),
        ({"geolocation": {"latitude": 91, "longitude": 3}}, r"task 7: Expected `float` <= 90.0 - at `\$\.geolocation\.latitude`"),
        ({"geolocation": {"latitude": 9, "longitude": -181}}, r"task 7: Expected `float` >= -180.0 - at `\$\.geolocation\.longitude`"),
        ({"intent": "", "intent_template": ""}, r"task 7: neither `intent` nor `intent_template`"),
    ],
)
def test_an_error_in_a_task_file_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(item(**change), "x.json")


LAST = {"url": "last", "locator": "", "required_contents": {"must_include": ["x"]}}
PICTURES = {"eval_image_url": "last", "eval_image_class": "", "eval_fuzzy_image_match": "x.png"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"eval_types": ["string_match"], "reference_answers": {}}, "eval.reference_answers"),
        ({"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": []}}, "eval.reference_answers.fuzzy_match"),
        ({"eval_types": ["string_match"], "reference_answers": {"exact_match": "x", "one_of": [""]}}, "eval.reference_answers.one_of"),
        ({"eval_types": ["string_match"], "reference_answers": {"must_include": ["x", "y |OR| "]}}, "eval.reference_answers.must_include"),
        ({"eval_types": ["url_match"], "reference_url": ""}, "eval.reference_url"),
        ({"eval_types": ["url_match"], "reference_url": "__SHOPPING__/x |OR|  |OR| __SHOPPING__/y"}, "eval.reference_url"),
        ({"eval_types": ["program_html"], "program_html": []}, "eval.program_html"),
        ({"eval_types": ["program_html"], "program_html": [LAST, {**LAST, "url": ""}]}, "eval.program_html[1].url"),
        (
            {"eval_types": ["program_html"], "program_html": [{**LAST, "required_contents": {}}]},
            "eval.program_html[0].required_contents",
        ),
        (
            {"eval_types": ["program_html"], "program_html": [{**LAST, "required_contents": {"fuzzy_match": " |OR| tea"}}]},
            "eval.program_html[0].required_contents.fuzzy_match",
        ),
        ({"eval_types": ["page_image_query"], "page_image_query": []}, "eval.page_image_query"),
        (
            {"eval_types": ["page_image_query"], "page_image_query": [{**PICTURES, "eval_fuzzy_image_match": "x.png |OR| "}]},
            "eval.page_image_query[0].eval_fuzzy_image_match",
        ),
        (
            {"eval_types": ["page_image_query"], "page_image_query": [{**PICTURES, "eval_image_url": ""}]},
            "eval.page_image_query[0].eval_image_url",
        ),
    ],
)
def test_an_evaluation_that_always_holds_is_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"x.json: task 7: `{field}` is empty: it would judge nothing")):
        parse(item(eval=change), "x.json")


@pytest.mark.parametrize("start", ["", "__SHOPPING__ |AND| "])
def test_a_task_starts_somewhere(start: str) -> None:
    with pytest.raises(UsageError, match=r"x\.json: task 7: `start_url` is empty"):
        parse(item(start_url=start), "x.json")


def test_an_expected_empty_value_may_be_compared_with_nothing() -> None:
    assert parse(item(eval={"eval_types": ["string_match"], "reference_answers": {"exact_match": ""}}), "x.json").task_id == 7


def test_two_tasks_of_one_file_have_two_ids(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps([item(), item(task_id=8), item(task_id="7")]))
    with pytest.raises(UsageError, match=r"tasks\.json: task 7: `task_id` is there twice: each needs one of its own"):
        read(tmp_path / "tasks.json")


def test_a_missing_field_is_named() -> None:
    lacking = item()
    del lacking["start_url"]
    with pytest.raises(UsageError, match=r"x\.json: task 7: Object missing required field `start_url`"):
        parse(lacking, "x.json")


@pytest.mark.parametrize(("text", "said"), [("{", "is not JSON"), ("[3]", "that is no object")])
def test_a_file_that_holds_no_tasks_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(text)
    with pytest.raises(UsageError, match=rf"tasks\.json.*{said}"):
        read(tmp_path / "tasks.json")


@pytest.mark.parametrize(
    ("target", "field", "said"),
    [
        ({"locator": "func:os.system('x')"}, "locator", "func: .*no call"),
        ({"locator": "func:__import__('os')"}, "locator", "func: '__import__' is no helper: known are get_query_text"),
        ({"locator": "func:get_query_text(__page__)"}, "locator", "func: get_query_text takes other arguments: missing"),
        ({"url": "func:reddit_get_post_url('a', 2)"}, "url", "func: reddit_get_post_url takes other arguments: too many"),
        ({"locator": "func:get_query_text(open('x'))"}, "locator", "func: .* cannot be read"),
        ({"locator": "alert(1)"}, "locator", r"unknown locator 'alert\(1\)'"),
        ({"locator": "document.cookie"}, "locator", "unknown locator"),
        ({"locator": "lambda: fetch('/')"}, "locator", "unknown locator"),
        ({"locator": "document.querySelector('__NOWHERE__')"}, "locator", "the site nowhere has no address"),
        (
            {"required_contents": {"required_values": ["> 1", "about 3"]}},
            "required_contents.required_values[1]",
            "'about 3' is no comparison",
        ),
        ({"url": "__NOWHERE__/x"}, "url", "the site nowhere has no address: export WA_NOWHERE="),
        ({"url": "func:get_query_text('__NOWHERE__', 'a')"}, "url", "the site nowhere has no address: export WA_NOWHERE="),
    ],
)
def test_a_look_that_cannot_be_made_is_named_by_its_number_before_anything_runs(target: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(UsageError, match="^" + re.escape(f"test.json: task 7: `eval.program_html[1].{field}`: ") + said):
        checks({"eval_types": ["program_html"], "program_html": [LAST, {**LAST, **target}]})


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"eval_image_url": "func:os.system('x')"}, ".eval_image_url", "func: .*no call"),
        ({"eval_image_url": "__NOWHERE__"}, ".eval_image_url", "the site nowhere has no address"),
        ({"eval_image_class": "img"}, ".eval_image_class", "unknown eval_image_class 'img'"),
        ({"eval_fuzzy_image_match": "__NOWHERE__/x.png"}, ".eval_fuzzy_image_match", "the site nowhere has no address"),
        ({"eval_fuzzy_image_match": ""}, "", "it asks nothing: give eval_vqa or eval_fuzzy_image_match"),
    ],
)
def test_a_look_at_pictures_that_cannot_be_made_is_named_by_its_number(query: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(UsageError, match="^" + re.escape(f"test.json: task 7: `eval.page_image_query[1]{field}`: ") + said):
        checks({"eval_types": ["page_image_query"], "page_image_query": [PICTURES, {**PICTURES, **query}]})


@pytest.mark.parametrize(
    ("evaluation", "field", "said"),
    [
        (
            {"eval_types": ["string_match"], "reference_answers": {"required_values": ["about 3"]}},
            "eval.reference_answers.required_values[0]",
            "'about 3' is no comparison",
        ),
        (
            {"eval_types": ["url_match"], "reference_url": "__NOWHERE__/x"},
            "eval.reference_url",
            "the site nowhere has no address: export WA_NOWHERE=",
        ),
    ],
)
def test_an_evaluator_that_cannot_be_made_names_its_field(evaluation: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(UsageError, match="^" + re.escape(f"test.json: task 7: `{field}`: {said}")):
        checks(evaluation)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"start_url": "__SHOPPING__ |AND| __NOWHERE__/x"}, "start_url"),
        ({"image": ["__SHOPPING__/x.png", "__NOWHERE__/x.png"]}, "image[1]"),
        ({"sites": ["shopping", "nowhere"]}, "sites[1]"),
    ],
)
def test_a_site_that_is_not_known_is_named_with_file_task_and_field(
    change: dict[str, Any], field: str, tmp_path: Path, loopback: dict[str, str]
) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([item(**change)]))
    with pytest.raises(
        UsageError, match="^" + re.escape(f"{path}: task 7: `{field}`: the site nowhere has no address: export WA_NOWHERE=")
    ):
        WebArena(path=path).task("webarena/7")


def test_a_task_that_could_not_be_judged_is_refused_before_it_is_attempted(tmp_path: Path, loopback: dict[str, str]) -> None:
    look = {"url": "last", "locator": "func:get_query_text(__page__, '.a', 3, 4)", "required_contents": {"exact_match": "x"}}
    (tmp_path / "tasks.json").write_text(json.dumps([item(eval={"eval_types": ["program_html"], "program_html": [look]})]))
    with pytest.raises(
        UsageError, match=r"tasks\.json: task 7: `eval\.program_html\[0\]\.locator`: func: get_query_text takes other arguments"
    ):
        WebArena(path=tmp_path / "tasks.json").task("webarena/7")
