"""Objects read from pages without acting on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict

import pytest

import exact
from exact.library.extract import added, joined, next_page
from exact.models.scripted import Question, ScriptedServer
from exact.observation import Element, Observation
from tests.http_server import BriefServer


class Shoe(TypedDict):
    name: str
    price: int


class Shoes(TypedDict):
    shoes: list[Shoe]


GOAL = "the prices of all shoes"


def table(rows: range) -> str:
    return "".join(f"<tr><td>Shoe {row}<td>{row % 2} euros</tr>" for row in rows)


def reader(question: Question, sample: int) -> str:
    """Answer with the rows of the page that is asked about."""
    page = question.messages[-1][1].partition("The page, or the next part of it:")[2]
    rows = re.findall(r'"Shoe (\d+)".*?"(\d+) euros"', page, re.S)
    return json.dumps({"shoes": [{"name": f"Shoe {row}", "price": int(price)} for row, price in rows]})


@contextmanager
def site(pages: Mapping[str, str]) -> Iterator[BriefServer]:
    server = BriefServer(host="127.0.0.1")
    server.expect_request("/sent", method="POST").respond_with_data("written")
    for path, html in pages.items():
        server.expect_request(path).respond_with_data(html, content_type="text/html; charset=utf-8")
    with server:
        yield server


async def read(site_pages: Mapping[str, str], answer: Any = Shoes, answering: Any = reader, **arguments: Any) -> tuple[Any, list[str]]:
    """Return the outcome of reading from `/` on, and the requests that the site got."""
    with site(site_pages) as server:
        async with ScriptedServer(answering) as model:
            solution = await exact.extract(answer, GOAL, url=server.url_for("/"), model=model.base_url, **arguments)
        return solution, [f"{request.method} {request.path}" for request, _ in server.log]


def numbered(last: int, link: str = "<a href=/{next}>Next page</a>") -> dict[str, str]:
    return {
        "/" if page == 1 else f"/{page}": f"<h1>Shoes</h1><table>{table(range(page * 3, page * 3 + 3))}</table>"
        + (link.format(next=page + 1) if page < last else "<span>Next page</span>")
        for page in range(1, last + 1)
    }


def names(solution: exact.Solution[Any]) -> list[int]:
    return [int(each["name"].rpartition(" ")[2]) for each in solution.data["shoes"]]


async def test_a_list_has_the_entries_of_all_pages() -> None:
    solution, sent = await read(numbered(4))
    assert names(solution) == [*range(3, 15)] and not solution.result.partial
    assert [each["price"] for each in solution.data["shoes"]] == [row % 2 for row in range(3, 15)]
    assert all(each.startswith("GET") for each in sent)


async def test_as_many_pages_are_read_as_are_allowed() -> None:
    assert names((await read(numbered(4), pages=2))[0]) == [*range(3, 9)]


async def test_a_page_that_grows_at_its_end_is_read_to_its_end_and_nothing_twice() -> None:
    grow = """<style>td { height: 300px }</style><h1>Shoes</h1><table id=t>ROWS</table><p id=end>-</p><script>
      let n = 3; new IntersectionObserver(seen => { if (seen.some(each => each.isIntersecting) && n < 9) for (let i = 0; i < 3; i++, n++)
      t.insertAdjacentHTML('beforeend', `<tr><td>Shoe ${n}<td>${n % 2} euros</tr>`)
      }).observe(end)</script>""".replace("ROWS", table(range(3)))
    assert names((await read({"/": grow}))[0]) == [*range(9)]


async def test_a_button_that_brings_more_is_pressed_while_it_is_there() -> None:
    more = """<table id=t>ROWS</table><button id=b onclick="for (let i = 0; i < 3; i++, n++)
      t.insertAdjacentHTML('beforeend', `<tr><td>Shoe ${n}<td>${n % 2} euros</tr>`); if (n > 8) b.remove()">Load more</button>
      <footer>About us</footer><script>let n = 3</script>""".replace("ROWS", table(range(3)))
    assert names((await read({"/": more}))[0]) == [*range(9)]


async def test_rows_that_are_replaced_in_place_are_read_whole() -> None:
    turned = """<table id=t>ROWS</table><nav>Page <span id=p>1</span> of 3</nav><button onclick="p.textContent = ++n; t.innerHTML = '';
      for (let i = 3 * n - 3; i < 3 * n; i++) t.insertAdjacentHTML('beforeend', `<tr><td>Shoe ${i}<td>${i % 2} euros</tr>`);
      this.disabled = n > 2">›</button><script>let n = 1</script>""".replace("ROWS", table(range(3)))
    assert names((await read({"/": turned}))[0]) == [*range(9)]


async def test_nothing_that_writes_is_sent() -> None:
    pages = {"/": "<table>" + table(range(3)) + "</table><button onclick=\"fetch('/sent', {method: 'POST'})\">Load more</button>"}
    solution, sent = await read(pages)
    assert names(solution) == [0, 1, 2] and "POST /sent" not in sent


async def test_a_page_that_leads_back_to_itself_ends_the_reading() -> None:
    pages = {"/": f"<table>{table(range(3))}</table><a href=/>Next</a>"}
    solution, _ = await read(pages)
    assert names(solution) == [0, 1, 2] and len(solution.actions) < 8


async def test_an_object_without_a_list_is_read_from_one_page() -> None:
    class Price(TypedDict):
        price: int

    def told(question: Question, sample: int) -> str:
        return '{"price": 4}'

    solution, sent = await read(numbered(3), Price, told)
    assert solution.data == {"price": 4} and "GET /2" not in sent


async def test_a_long_page_is_read_in_pieces_of_the_view() -> None:
    with site({"/": f"<table>{table(range(60))}</table>"}) as server:
        async with ScriptedServer(reader) as model:
            config = exact.Config.parse(
                {"models": {"policy": {"model": "m", "base_url": model.base_url}}, "policy": {"kind": "llm"},
                 "view": {"observation_tokens": 400},
                 "search": {"algorithm": "react", "k": 1}, "value": {"kind": "constant"}, "reflection": {"kind": "none"}}
            )  # fmt: skip
            solution = await exact.extract(Shoes, GOAL, url=server.url_for("/"), config=config)
            asked = len(model.bodies)
    assert asked > 2 and len(set(names(solution))) >= 58, "a row may be cut in two at the edge of a piece"


async def test_a_model_may_write_as_much_as_its_part_of_the_page_can_tell() -> None:
    """A small model may name rows that do not exist, without end."""
    most = []
    for rows in (2, 20):
        with site({"/": f"<table>{table(range(rows))}</table>"}) as server:
            async with ScriptedServer(reader) as model:
                await exact.extract(Shoes, GOAL, url=server.url_for("/"), model=model.base_url, pages=1)
                most.append(max(body.get("max_tokens") or body["max_completion_tokens"] for body in model.bodies if "messages" in body))
    assert 256 < most[0] < 700 < most[1] <= 4096


async def test_a_part_that_cannot_be_read_leaves_the_rest_and_is_told() -> None:
    def answered(question: Question, sample: int) -> str:
        return "I cannot." if '"Shoe 6"' in str(question.messages) else reader(question, sample)

    solution, _ = await read(numbered(3), answering=answered)
    assert names(solution) == [3, 4, 5, 9, 10, 11] and solution.result.partial


async def test_a_model_is_not_shown_what_it_read_before() -> None:
    """A small model copies it in place of what the page tells."""
    asked = list[str]()

    def heard(question: Question, sample: int) -> str:
        asked.append(str(question.messages))
        return reader(question, sample)

    solution, _ = await read(numbered(3), answering=heard)
    assert names(solution) == [*range(3, 12)] and not any("Shoe 5" in each for each in asked[1:])


@pytest.mark.parametrize("first", ['{"title": "Shoes", "type": "object", "properties": {}}', '{"shoes": []}'], ids=["schema", "empty"])
async def test_a_model_that_tells_nothing_of_a_page_is_asked_again(first: str) -> None:
    def hasty(question: Question, sample: int) -> str:
        return reader(Question(messages=question.messages[:2]), sample) if len(question.messages) > 2 else first

    solution, _ = await read(numbered(2), answering=hasty)
    assert names(solution) == [*range(3, 9)] and not solution.result.partial


async def test_zero_is_an_answer_that_is_not_doubted() -> None:
    class Price(TypedDict):
        price: int
        sold: bool

    asked = list[Question]()

    def free(question: Question, sample: int) -> str:
        asked.append(question)
        return '{"price": 0, "sold": false}'

    solution, _ = await read(numbered(1), Price, free)
    assert solution.data == {"price": 0, "sold": False} and len(asked) == 1


async def test_a_page_that_tells_nothing_adds_nothing() -> None:
    def empty(question: Question, sample: int) -> str:
        return '{"shoes": []}' if '"Shoe 6"' in str(question.messages) else reader(question, sample)

    solution, _ = await read(numbered(3), answering=empty)
    assert names(solution) == [3, 4, 5, 9, 10, 11] and not solution.result.partial


async def test_what_a_cap_leaves_unread_is_told() -> None:
    with site(numbered(4)) as server:
        async with ScriptedServer(reader) as model:
            priced = {"model": "m", "base_url": model.base_url, "price": {"input": 10, "output": 10}}
            config = exact.Config.parse(
                {"models": {"policy": priced}, "policy": {"kind": "llm"}, "search": {"algorithm": "react", "k": 1},
                 "value": {"kind": "constant"}, "reflection": {"kind": "none"}}
            )  # fmt: skip
            solution = await exact.extract(Shoes, GOAL, url=server.url_for("/"), config=config, money=0.025)
    assert solution.result.partial and 0 < len(names(solution)) < 12


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"pages": 0, "model": "gpt-4o"}, "pages is 0"), ({}, "asks a model what pages tell"), ({"model": "x/y"}, "unknown provider")],
)
async def test_a_wrong_argument_is_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(exact.UsageError, match=says):
        await exact.extract(Shoes, GOAL, url="http://127.0.0.1:9/", **arguments)


def seen(*elements: tuple[str, str] | tuple[str, str, str]) -> Observation:
    made = [Element(id=str(at), role=role, name=name, states=tuple(states)) for at, (role, name, *states) in enumerate(elements, 1)]
    return Observation(text="", elements=tuple(made))


@pytest.mark.parametrize(
    ("elements", "id"),
    [
        ([("link", "Next")], "1"),
        ([("link", "Next steps for buyers")], None),
        ([("link", "Weiter"), ("link", "Impressum")], "1"),
        ([("button", "Load more results")], "1"),
        ([("button", "Next")], None),
        ([("StaticText", "1–20 of 200"), ("button", "Next")], "2"),
        ([("button", "Next", "disabled"), ("StaticText", "Page 2 of 2")], None),
        ([("link", "1"), ("StaticText", "2"), ("link", "3"), ("link", "4")], "3"),
        ([("link", "1", "current: page"), ("link", "2"), ("link", "3")], "2"),
        ([("link", "1"), ("link", "2"), ("StaticText", "3")], None),
        ([("StaticText", "3"), ("link", "7")], None),
        ([("link", "›"), ("link", "Next"), ("link", "Help")], "2"),
        ([], None),
    ],
)
def test_the_link_to_the_next_page_is_found_by_its_name_or_number(elements: list[Any], id: str | None) -> None:
    found = next_page(seen(*elements))
    assert (found and found.id) == id


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [("", "abc", "abc"), ("abz", "abcdz", "cd"), ("abcz", "bcdz", "d"), ("abxz", "abcdyz", "cdy"), ("abcdefz", "ghijklz", "ghijklz"),
     ("abc", "abc", "")],
)  # fmt: skip
def test_lines_that_a_state_adds_to_the_one_before(before: str, now: str, new: str) -> None:
    assert "".join(now[added(list(before), list(now))]) == new


def test_objects_of_pages_are_joined() -> None:
    assert joined({"a": [1, 1]}, {"a": [1, 2]}) == {"a": [1, 1, 1, 2]}
    assert joined({"a": None, "b": 1, "c": {"d": [1]}}, {"a": 2, "b": 3, "c": {"d": [2]}}) == {"a": 2, "b": 1, "c": {"d": [1, 2]}}
