"""What is volatile does not tell states apart, and everything else does."""

import itertools
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.environments.browser.observe.describe import Masks, fingerprint
from exact.environments.restore.waypoint import compare_states, state_key
from exact.errors import UsageError
from exact.observation import Element
from exact.task import Task
from tests.environments.browser.pages import do, find

browsing = pytest.mark.asyncio(loop_scope="session")
CONFIG = BrowserConfig(screenshots=False, width=600, height=400)


def text(name: str, role: str = "StaticText", **fields: object) -> Element:
    return Element(id="1", role=role, name=name, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (text("It is 12:30:45"), text("It is 12:30:46"), True),
        (text("posted 3 minutes ago"), text("posted 14 seconds ago"), True),
        (text("Just now"), text("1 minute ago"), True),
        (text("Page: 75.19 ms"), text("Page: 8.2 ms"), True),
        (text("Page: 37ms Template: 2ms"), text("Page: 5ms Template: 11ms"), True),
        (text("Powered by a forum in 0.123 seconds"), text("Powered by a forum in 1.04 seconds"), True),
        (text("Generated within 0.2s"), text("Generated within 0.31s"), True),
        (text("Lasts 0.5 seconds"), text("Lasts 1.5 seconds"), False),
        (text("In 3 seconds"), text("In 4 seconds"), False),
        (text("10 ms", "option"), text("20 ms", "option"), False),
        (text("Leaves at 12:30"), text("Leaves at 12:45"), False),
        (text("12:30:45", "option"), text("12:30:46", "option"), False),
        (text("At", "textbox", value="12:30:45"), text("At", "textbox", value="12:30:46"), False),
        (
            text("At", "textbox", value="12:30:45", states=("disabled",)),
            text("At", "textbox", value="12:30:46", states=("disabled",)),
            True,
        ),
        (text("41", "timer"), text("40", "timer"), True),
        (text("41"), text("40"), False),
    ],
)
def test_clocks_and_ages_are_volatile_where_no_user_chooses_among_them(one: Element, other: Element, same: bool) -> None:
    a, b = fingerprint("http://a.test/", [one]), fingerprint("http://a.test/", [other])
    assert (a.fingerprint == b.fingerprint) is same
    assert a.volatile != b.volatile or not same


@pytest.mark.parametrize(
    ("query", "same"),
    [("csrf_token", True), ("csrfmiddlewaretoken", True), ("_", True), ("authenticity_token", True), ("page", False), ("state", False)],
)
def test_tokens_in_addresses_are_volatile(query: str, same: bool) -> None:
    one, other = (fingerprint(f"http://a.test/?{query}={value}&q=x", []) for value in (1, 2))
    assert (one.fingerprint == other.fingerprint) is same


@given(st.lists(st.text(max_size=10), max_size=4), st.lists(st.text(max_size=10), max_size=4))
def test_masks_do_not_affect_elements_without_volatile_text(one: list[str], other: list[str]) -> None:
    masks = Masks([r"\bsession \w{8}\b"])
    a, b = (fingerprint("", [text(name) for name in names], masks=masks) for names in (one, other))
    assert (a.fingerprint == b.fingerprint) is (one == other) or a.volatile or b.volatile


def test_a_user_and_a_task_add_patterns_and_a_wrong_one_is_named() -> None:
    task = Task(id="t", instruction="", metadata={"masks": "basket \\d+\n\nvisit \\d+"})
    masks = Masks(["order [0-9a-f]+"]).for_task(task)
    names = [("order 1f", "order 2e"), ("basket 1", "basket 2"), ("visit 7", "visit 8")]
    for one, other in names:
        assert fingerprint("", [text(one)], masks=masks).fingerprint == fingerprint("", [text(other)], masks=masks).fingerprint
    with pytest.raises(UsageError, match=r"invalid pattern '\(' in browser\.masks"):
        Masks(["("])


def test_a_difference_between_two_observations_is_learned_for_that_field_of_that_element_only() -> None:
    masks = Masks()
    a, b = [0, "StaticText", "x1", None, [], True, ""], [0, "StaticText", "x2", None, [], True, ""]
    assert masks.learn({"0#n": a, "0#m": a}, {"0#n": b, "0#m": a, "0#new": a}) == 2
    assert masks.learned == {"0#n": {"name"}, "0#new": {"gone"}}

    def digest(names: list[str], places: list[str]) -> str:
        return fingerprint("", [text(name) for name in names], masks=masks, paths=places).fingerprint

    assert digest(["x1", "y"], ["0#n", "0#m"]) == digest(["x9", "y"], ["0#n", "0#m"])
    assert digest(["x1", "y"], ["0#n", "0#m"]) == digest(["x1", "y", "z"], ["0#n", "0#m", "0#new"])
    assert digest(["x1", "y"], ["0#n", "0#m"]) != digest(["x1", "q"], ["0#n", "0#m"])


@pytest.mark.parametrize("masks", [(r"order \d+",), ()])
@browsing
async def test_states_that_differ_in_masked_text_only_are_equal(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], masks: tuple[str, ...]
) -> None:
    loads = itertools.count(1)
    httpserver.expect_request("/").respond_with_handler(lambda _: Response(f"<p>This is order {next(loads)}", content_type="text/html"))
    environments = BrowserFactory(browser, PageSetup(), msgspec.structs.replace(CONFIG, masks=masks), isolated=True)
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        first, second = await one.reset(task_at()), await other.reset(task_at())
    assert compare_states(state_key(first), state_key(second)) == ("equivalent" if masks else "drifted")


@pytest.mark.parametrize("learn", [True, False])
@browsing
async def test_a_token_that_each_load_draws_is_learned_by_two_resets(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], learn: bool
) -> None:
    loads = itertools.count()

    def page(_: Request) -> Response:
        return Response(
            f"<!doctype html><p>Visit <b>v{next(loads)}</b></p><button onclick='this.textContent = 1'>Go</button>", content_type="text/html"
        )

    httpserver.expect_request("/").respond_with_handler(page)
    config = BrowserConfig(screenshots=False, width=600, height=400, learn_masks=learn)
    environments = BrowserFactory(browser, PageSetup(), config, isolated=True)
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        first, second = await one.reset(task_at()), await other.reset(task_at())
        assert compare_states(state_key(first), state_key(second)) == ("equivalent" if learn else "drifted")
        after = (await do(one, f"click [{find(first, 'Go').id}]")).observation
        assert compare_states(state_key(first), state_key(after)) == "drifted"
        assert next(loads) == (4 if learn else 2)
