"""Equal states have equal ids in all environments that are opened together, whatever led there."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup
from exact.environments.browser.page import ids
from exact.environments.browser.page.ids import Ids, NodeLocation, NodeSignature, SharedIds
from exact.observation import Element
from exact.task import Task
from tests.conftest import CONFIG
from tests.environments.browser.pages import do, find, look


def called(*ids: str) -> list[Element]:
    return [Element(id=id, role="button") for id in ids]


def test_a_state_keeps_the_ids_that_it_was_first_seen_with() -> None:
    known = SharedIds()
    assert known.differ("task", "state", called("1", "2")) == {}
    assert known.differ("task", "state", called("7", "2")) == {"7": "1", "2": "2"}
    assert known.differ("other task", "state", called("7", "2")) == {}
    assert known.differ("task", "other state", called("7", "2")) == {}


def test_a_state_with_more_of_what_is_volatile_is_left_as_it_is() -> None:
    known = SharedIds()
    known.differ("task", "state", called("1", "2"))
    assert known.differ("task", "state", called("3", "4", "5")) == {}


def test_the_state_that_was_not_seen_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "MOST_STATES", 2)
    known = SharedIds()
    for state in ("one", "two", "one", "three"):
        known.differ("task", state, called("1"))
    assert known.differ("task", "one", called("9")) == {"9": "1"}
    assert known.differ("task", "two", called("9")) == {}


@given(st.lists(st.integers(1, 30), unique=True), st.lists(st.integers(1, 30), unique=True))
def test_any_ids_become_those_that_the_state_was_first_seen_with(first: list[int], later: list[int]) -> None:
    known = SharedIds()
    known.differ("task", "state", called(*map(str, first)))
    wanted = dict(zip(map(str, later), map(str, first), strict=False)) if len(first) == len(later) and first != later else {}
    assert known.differ("task", "state", called(*map(str, later))) == wanted


@pytest.mark.parametrize(("step", "most"), [(1, 100_000), (-1, 5_000_000)])
def test_many_states_of_a_large_page_take_little_memory_also_where_it_shuffles_its_nodes(step: int, most: int) -> None:
    known, elements = SharedIds(), called(*map(str, range(1, 5001)[::step]))
    tracemalloc.start()
    for state in range(100):
        known.differ("task", str(state), elements)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < most, "a thousand bytes a state, and at worst the 40,000 that 5,000 ids take by themselves"


@given(st.permutations(range(1, 7)), st.integers(1, 6), st.integers(0, 20))
def test_elements_may_swap_ids_and_take_those_of_others(order: list[int], shown: int, further: int) -> None:
    ids = Ids()
    places = [NodeLocation(0, 1, backend, "frame") for backend in range(6)]
    looks = [NodeSignature(1, "button", str(backend)) for backend in range(6)]
    before = ids.give(places, looks)
    wanted = [str(number + further) for number in order[:shown]]
    ids.rename(dict(zip(before[:shown], wanted, strict=True)))
    assert ids.give(places[:shown], looks[:shown]) == wanted
    assert [ids.location(id) for id in wanted] == places[:shown]
    everyone = ids.give(places, looks)
    assert everyone[:shown] == wanted and len(set(everyone)) == 6, "what lost its id has another"
    assert [ids.location(id) for id in everyone] == places
    assert ids.of(NodeLocation(0, 1, 99, "frame")) not in everyone


@pytest.mark.asyncio(loop_scope="session")
async def test_environments_that_come_another_way_find_the_same_ids_and_act_by_them(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task]
) -> None:
    links = "<a href=/end>End</a> <a href=/way>Way</a> <button onclick='alert(1)'>Warn</button>"
    for path in ("/", "/way"):
        httpserver.expect_request(path).respond_with_data(links, content_type="text/html")
    end = "<p id=out></p><button onclick=\"out.textContent = 'left'\">Left</button><button onclick='alert(2)'>Right</button>"
    httpserver.expect_request("/end").respond_with_data(end, content_type="text/html")
    environments = BrowserFactory(browser, PageSetup(), CONFIG, isolated=True)

    async def walk(environment: BrowserEnvironment, *names: str) -> list[str]:
        seen = await environment.reset(task_at())
        for name in names:
            seen = await look(environment, f"click [{find(seen, name).id}]")
        return [element.id for element in seen.elements]

    async with environments.open(simulation=True) as one, environments.open(simulation=False) as other:
        straight = await walk(one, "End")
        around = await walk(other, "Way", "End")
        assert around == straight
        seen = (await do(other, f"click [{straight[-2]}]")).observation
        assert seen is not None and "left" in seen.text, "the id means the element that stands there"
        assert await walk(other, "Way", "Way", "End", "Right") == await walk(one, "End", "Right"), "dialogs too"
