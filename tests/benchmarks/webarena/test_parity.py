"""Our evaluators and the published ones agree, save where the published ones are at fault: each fault has a test below.

What the published ones say is recorded; with `--parity-live` they run in a virtual environment of their own (`shells/setup.sh --webarena`):
see peer.py for what is replaced there. Task files come from that environment in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page
from pytest_httpserver import HTTPServer

from exact.benchmarks.webarena import locate, text
from exact.benchmarks.webarena.evaluate import evaluate
from exact.benchmarks.webarena.pictures import similarity
from exact.environments.browser import Browser
from exact.task import Outcome, Task
from tests.benchmarks.webarena.cases import PAGES, Case, all_cases
from tests.benchmarks.webarena.conftest import FILES, checks, environments_of, file_of, standing
from tests.benchmarks.webarena.recorded import published, tokens

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ours(case: Case, page: Page) -> Any:
    """Return the result of our evaluators."""
    from PIL import Image

    if case["kind"] == "tokens":
        return tokens(text.tokens(case["text"]))
    if case["kind"] == "ssim":
        return similarity(*(Image.open(path) for path in case["pictures"]))
    made = checks(case["eval"], case["dialect"], quiet=0.0)
    if case["kind"] == "program_html":
        await page.goto(case["url"])
        return (await evaluate(made, page, Outcome(actions=()))).value
    elsewhere = standing(case.get("url", ""))
    return (await evaluate(made, elsewhere, Outcome(actions=(), answer=case.get("answer", "")))).value


@pytest.fixture
def server(httpserver: HTTPServer) -> str:
    for path, body in PAGES.items():
        httpserver.expect_request(path).respond_with_data(f"<!doctype html>{body}", content_type="text/html")
    return f"http://127.0.0.1:{httpserver.port}"


@pytest_asyncio.fixture(loop_scope="session")
async def at_page(browser: Browser, server: str) -> AsyncIterator[Page]:
    """The page of an environment."""
    async with environments_of(browser).open(simulation=False) as environment:
        await environment.reset(Task(id="test/page", instruction="Look.", start=f"{server}/empty"))
        yield environment.page


def same(case: Case, one: Any, other: Any) -> bool:
    if case["kind"] == "ssim":
        return isinstance(one, float) and abs(one - other) < 1e-6
    return bool(one == other)


def kinds(cases: Sequence[Case]) -> Counter[str]:
    """Return the number of cases of each reference, rule and address that the published evaluators know, in both dialects."""
    wanted = {
        "webarena": "exact_match must_include GOLD-in-PRED GOLD-in-PRED-OR in:must_include last literal prepared",
        "visualwebarena": "exact_match must_include must_exclude one_of required_values EXACT EXACT-OR GOLD-in-PRED in:must_include "
        "in:must_exclude in:required_values last literal",
    }
    found = Counter({f"{name} {kind}": 0 for name, every in wanted.items() for kind in every.split()})
    for case in cases:
        said = case.get("eval", {})
        names = list(said.get("reference_answers", ()))
        if reference := said.get("reference_url"):
            names.append((said.get("url_note") or locate.DEFAULT[case["dialect"]]).replace(" ", "-") + "-OR" * (" |OR| " in reference))
        for look in said.get("program_html", ()):
            names += [f"in:{kind}" for kind in look["required_contents"]]
            names += ["last" if look["url"] == "last" else "literal", *["prepared"] * ("prep_actions" in look)]
        found.update(f"{case['dialect']} {each}" for each in names if f"{case['dialect']} {each}" in found)
    return found


async def test_at_least_three_hundred_cases_agree(
    pytestconfig: pytest.Config, server: str, at_page: Page, executable: str, tmp_path: Path
) -> None:
    cases = all_cases({name: file_of(name) for name in FILES}, server, tmp_path)
    theirs = await published(pytestconfig, "agreed", cases, executable, server)
    found = [await ours(case, at_page) for case in cases]
    wrong = [(case, one, other) for case, one, other in zip(cases, theirs, found, strict=True) if not same(case, one, other)]
    counts = Counter(case["kind"] for case in cases)
    assert not wrong, f"{len(wrong)} of {dict(counts)}: {wrong[:3]}"
    assert counts["string_match"] >= 300 and counts["url_match"] >= 100 and counts["program_html"] >= 50 and counts["ssim"] >= 20
    assert not {kind: count for kind, count in kinds(cases).items() if count < 12}
    scores = Counter((case["kind"], one) for case, one in zip(cases, found, strict=True) if case["kind"] not in ("ssim", "tokens"))
    assert all(scores[kind, value] >= 10 for kind in ("string_match", "url_match", "program_html") for value in (0.0, 1.0)), scores


def program(wanted: dict[str, Any], locator: str = "document.querySelector('.desc').outerText", count: int = 1) -> dict[str, Any]:
    return {
        "eval_types": ["program_html"],
        "program_html": [{"url": "last", "locator": locator, "required_contents": wanted}] * count,
    }


def answer(references: dict[str, Any]) -> dict[str, Any]:
    return {"eval_types": ["string_match"], "reference_answers": references}


def url(reference: str) -> dict[str, Any]:
    return {"eval_types": ["url_match"], "reference_url": reference}


FAULTS: dict[str, tuple[Case, Any, float]] = {
    "a strict comparison holds for the bound itself": (
        {"kind": "string_match", "dialect": "visualwebarena", "answer": "700", "eval": answer({"required_values": ["< 700"]})},
        1.0,
        0.0,
    ),
    "an answer with decimals is no number": (
        {"kind": "string_match", "dialect": "visualwebarena", "answer": "12.5", "eval": answer({"required_values": [">= 12"]})},
        0.0,
        1.0,
    ),
    "of two conditions on one part of a page only the first is looked at": (
        {
            "kind": "program_html",
            "dialect": "visualwebarena",
            "url": "/form",
            "eval": program({"must_include": ["miles"], "must_exclude": ["30,000"]}),
        },
        1.0,
        0.0,
    ),
    "nothing on the page counts as the word none": (
        {
            "kind": "program_html",
            "dialect": "webarena",
            "url": "/form",
            "eval": program({"exact_match": "none"}, "document.querySelector('.absent')"),
        },
        1.0,
        0.0,
    ),
    "a selector with a quote in it finds nothing": (
        {
            "kind": "program_html",
            "dialect": "visualwebarena",
            "url": "/form",
            "eval": program({"must_include": ["Two"]}, "func:get_query_text(__page__, \"li[title='b']\")"),
        },
        0.0,
        1.0,
    ),
    "of alternative addresses one may give the path and another the parameter": (
        {"kind": "url_match", "dialect": "webarena", "url": "http://a/one?q=2", "eval": url("http://a/one?q=1 |OR| http://a/two?q=2")},
        1.0,
        0.0,
    ),
    "an alternative address without parameters is refused for want of the other's": (
        {"kind": "url_match", "dialect": "webarena", "url": "http://a/two", "eval": url("http://a/one?q=1 |OR| http://a/two")},
        0.0,
        1.0,
    ),
    "the comments of a post count as its author's own": (
        {
            "kind": "program_html",
            "dialect": "visualwebarena",
            "url": "/post",
            "eval": program({"must_include": ["first words"]}, "func:reddit_get_latest_comment_content_by_username(__page__, 'asker')"),
        },
        1.0,
        0.0,
    ),
    "a second condition after a number has no text to look at": (
        {
            "kind": "string_match",
            "dialect": "visualwebarena",
            "answer": "12",
            "eval": answer({"required_values": [">= 12"], "must_include": ["12"]}),
        },
        "BeartypeCallHintParamViolation",
        1.0,
    ),
}


async def test_the_faults_of_the_published_evaluators_are_not_ours(
    pytestconfig: pytest.Config, server: str, at_page: Page, executable: str
) -> None:
    cases = [{**case, "url": server + case["url"]} if case["kind"] == "program_html" else case for case, _, _ in FAULTS.values()]
    theirs = await published(pytestconfig, "faults", cases, executable, server)
    told = dict[str, Any]()
    for (name, (_, fault, right)), case, one in zip(FAULTS.items(), cases, theirs, strict=True):
        mine = await ours(case, at_page)
        if (one, mine) != (fault, right):
            told[name] = (one, mine)
    assert not told
