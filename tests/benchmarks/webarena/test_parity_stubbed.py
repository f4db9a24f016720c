"""As test_parity.py, of what asks a model or the shop: judges, looks at pictures and getters, against stubs that both sides are given."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from pytest_httpserver import HTTPServer

from exact.benchmarks.webarena.evaluate import evaluate
from exact.benchmarks.webarena.judges import Judges
from exact.environments.browser import Browser, BrowserEnvironment
from exact.errors import ExactError
from exact.task import Outcome, Task
from tests.benchmarks.webarena.cases import Case, look
from tests.benchmarks.webarena.conftest import FILES, LOOPBACK, checks, environments_of, file_of, standing
from tests.benchmarks.webarena.recorded import digest, published
from tests.benchmarks.webarena.stubbed import Stub, answered, queried, serve, stubbed_cases

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Said(NamedTuple):
    """A score, or the name of what is raised; and what models were asked on the way: question, reference and answer, or picture and
    question; of the published evaluators in digests."""

    score: float | str
    asked: list[list[str]]


def theirs(found: Any) -> Said:
    if isinstance(found, str):
        return Said(found, [])
    return Said(*found) if isinstance(found, list) else Said(found, [])


async def ours(case: Case, environment: BrowserEnvironment, shop: str) -> Said:
    stub = Stub(case)
    environ = {**LOOPBACK, "SHOPPING": shop}
    made = checks(case["eval"], case["dialect"], Judges(lambda role: stub), environ, 0.0, intent=case.get("intent", "Say it."))
    page = environment.page if "url" in case else standing("")
    if "url" in case:
        await page.goto(case["url"])
    try:
        return Said((await evaluate(made, page, Outcome(actions=(), answer=case.get("answer", "")))).value, stub.asked)
    except ExactError as error:
        return Said(type(error).__name__, stub.asked)


def page(path: str, locator: str, wanted: dict[str, Any], **more: Any) -> Case:
    return {**look("visualwebarena", path, {"url": "last", "locator": locator, "required_contents": wanted}), **more}


def pictures(path: str, like: str, place: str = "") -> dict[str, Any]:
    return {"eval_image_url": path, "eval_image_class": place, "eval_fuzzy_image_match": like}


def faults(server: str) -> dict[str, tuple[Case, float | str, float | str]]:
    """Return cases with the published result and ours, where the published one is wrong."""
    cup, box = f"{server}/picture/200.png", f"{server}/picture/60.png"
    reads = "func:shopping_get_sku_latest_review_{}('B4')"
    product = {"url": "func:shopping_get_sku_product_page_url('B1')", "locator": "", "required_contents": {"must_include": ["tea"]}}
    return {
        "a judge's reasons count as its verdict": (
            answered("webarena", "Paris", {"fuzzy_match": ["Paris"]}, ["That is not incorrect.\nverdict: correct"]),
            0.0,
            1.0,
        ),
        "a judge that says not correct says correct": (
            answered("visualwebarena", "Lyon", {"fuzzy_match": ["Paris"]}, ["That is not correct."]),
            1.0,
            "AnswerError",
        ),
        "the right reason makes up for what else an answer lacks": (
            answered("webarena", "Sold out", {"must_include": ["B1"], "fuzzy_match": "N/A"}, ["same"], note="sold out"),
            1.0,
            0.0,
        ),
        "a part of a page must mean all alternatives": (
            page(f"{server}/form", "document.querySelector('.desc').outerText", {"fuzzy_match": "a |OR| b"}, says=["incorrect", "correct"]),
            0.0,
            1.0,
        ),
        "of several looks at pictures only the last counts": (
            queried(f"{server}/gallery", pictures("last", box, ".shown"), pictures("last", cup, ".shown")),
            1.0,
            0.0,
        ),
        "a picture in the page itself is not seen": (queried(f"{server}/inline", pictures("last", cup)), 0.0, 1.0),
        "a picture for those who are logged in is not seen": (queried(f"{server}/private", pictures("last", cup)), 0.0, 1.0),
        "a picture that the site fails to give is none": (queried(f"{server}/down", pictures("last", cup)), 0.0, "EnvironmentFailure"),
        "a price of a thousand is one": (
            page(f"{server}/dear", "func:shopping_get_product_price(__page__)", {"required_values": ["== 1064.5"]}),
            0.0,
            1.0,
        ),
        "a number of a page includes nothing": (
            page(f"{server}/product", "func:shopping_get_num_reviews(__page__)", {"must_include": ["12"]}),
            "BeartypeCallHintParamViolation",
            1.0,
        ),
        "nothing is ordered once it is shipped": (
            page(f"{server}/shipped", "func:shopping_get_order_product_quantity(__page__, 'B1')", {"required_values": ["== 2"]}),
            0.0,
            1.0,
        ),
        "who answers their own comment is not seen": (
            page(
                f"{server}/thread",
                "func:reddit_get_parent_comment_username_of_latest_comment_by_username(__page__, 'ann')",
                {"exact_match": "ann"},
            ),
            0.0,
            1.0,
        ),
        "the title of a review cannot be asked for": (
            page(f"{server}/empty", reads.format("title"), {"exact_match": "Well"}),
            "NameError",
            1.0,
        ),
        "the page of a product cannot be asked for": (look("visualwebarena", f"{server}/empty", product), "NameError", 1.0),
        "a first review without a rating hides the latest one's": (
            page(f"{server}/empty", reads.format("rating"), {"exact_match": "60"}),
            "IndexError",
            1.0,
        ),
    }


def undecided(server: str) -> dict[str, tuple[Case, float | str, float | str]]:
    """Return cases as `faults`, where neither gives a score."""
    reads = "func:shopping_get_sku_latest_review_text('B9')"
    return {
        "a judge without a verdict": (
            answered("webarena", "Lyon", {"fuzzy_match": ["Paris"]}, ["Perhaps."]),
            "AssertionError",
            "AnswerError",
        ),
        "a reason without a verdict": (
            answered("visualwebarena", "Gone", {"fuzzy_match": "N/A"}, ["Perhaps."]),
            "AssertionError",
            "AnswerError",
        ),
        "a product that the shop has not": (
            page(f"{server}/empty", reads, {"exact_match": "x"}),
            "AssertionError",
            "EnvironmentFailure",
        ),
    }


class Heard(NamedTuple):
    """Results of all cases."""

    agreed: list[tuple[Case, Said, Said]]
    others: dict[str, tuple[Case, Said, Said]]
    """By name: the cases of `faults` and of `undecided`."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def heard(pytestconfig: pytest.Config, browser: Browser, executable: str) -> AsyncIterator[Heard]:
    """Both sides asked once, in one process each."""
    tasks = [task for name in FILES for task in json.loads(file_of(name).read_text())]
    with HTTPServer("127.0.0.1", 0) as server:
        shop = serve(server)
        agreed, others = stubbed_cases(tasks, shop), {**faults(shop), **undecided(shop)}
        cases = [*agreed, *(case for case, _, _ in others.values())]
        found = [theirs(each) for each in await published(pytestconfig, "stubbed", cases, executable, shop)]
        async with environments_of(browser).open(simulation=False) as environment:
            await environment.reset(Task(id="test/page", instruction="Look.", start=f"{shop}/empty"))
            said = [(case, one, await ours(case, environment, shop)) for case, one in zip(cases, found, strict=True)]
        yield Heard(said[: len(agreed)], dict(zip(others, said[len(agreed) :], strict=True)))


def same(case: Case, one: Said, mine: Said) -> bool:
    """Return whether both give the same result and ask the same questions.

    Ours stops asking at a score of 0, and asks nothing where a rule gave it.
    """
    first = 1 if case["kind"] == "program_html" else 0  # see the test on parts of pages
    wanted, found = [each[first:] for each in one.asked], [[digest(text) for text in each[first:]] for each in mine.asked]
    asks = bool(found) or not wanted or "must_include" in case["eval"].get("reference_answers", ())
    return one.score == mine.score and asks and found == (wanted if one.score else wanted[: len(found)])


async def test_scripted_judges_and_stubbed_pictures_and_getters_agree(heard: Heard) -> None:
    wrong = [each for each in heard.agreed if not same(*each)]
    assert not wrong, f"{len(wrong)} of {len(heard.agreed)}: {wrong[:3]}"
    assert len(heard.agreed) > 100
    scores = Counter((case["kind"], mine.score) for case, _, mine in heard.agreed)
    assert all(scores[kind, value] >= 12 for kind in ("string_match", "program_html", "page_image_query") for value in (0.0, 1.0)), scores


async def test_a_judge_of_a_part_of_a_page_sees_the_task_unlike_the_published_one(heard: Heard) -> None:
    told = {(one.asked[0][0], mine.asked[0][0]) for case, one, mine in heard.agreed if case["kind"] == "program_html" and one.asked}
    assert told == {(digest("NOT USED"), "Say it.")}


@pytest.mark.parametrize("name", faults(""))
async def test_a_published_fault_is_not_ours(heard: Heard, name: str) -> None:
    _, one, mine = heard.others[name]
    assert (one.score, mine.score) == faults("")[name][1:]


@pytest.mark.parametrize("name", undecided(""))
async def test_neither_evaluator_gives_a_score_without_a_judges_answer(heard: Heard, name: str) -> None:
    _, one, mine = heard.others[name]
    assert (one.score, mine.score) == undecided("")[name][1:]
