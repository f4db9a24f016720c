"""An action means the element that was seen, whatever its node has become while the agent thought."""

from __future__ import annotations

from typing import Any

import pytest

from exact.environments.base import StateChanged
from exact.environments.browser import BrowserEnvironment
from exact.environments.browser.act import press
from exact.environments.browser.page.cdp import click_mouse
from exact.errors import ActionError
from exact.observation import Observation
from tests.conftest import Visit
from tests.environments.browser.pages import do, find

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTE = "<script>var notes = []</script>"
ROW = "<li class=r><span>{}</span> <button onclick=\"notes.push(this.parentNode.querySelector('span').textContent)\">Delete</button></li>"
FILES = ("map.txt", "notes.md", "poem.txt")
ROWS = NOTE + "<ul id=d>" + "".join(map(ROW.format, FILES)) + "</ul>"
REVERSE = (
    "const s = [...d.querySelectorAll('span')], t = s.map(e => e.textContent).reverse(); s.forEach((e, i) => { e.textContent = t[i]; })"
)
GONE = "[...d.querySelectorAll('span')].forEach((e, i) => { e.textContent = 'other' + i; })"
INSERT = f"d.insertAdjacentHTML('afterbegin', {ROW.format('new.csv')!r})"
DIALOG = NOTE + "<div role=dialog><p id=q>Delete poem.txt?</p><button onclick='notes.push(q.textContent)'>OK</button></div>"
BOX = NOTE + "<label><input type=checkbox id=c onchange='notes.push(c.checked)'> Public</label>"
NAME = NOTE + "<label>Name <input id=n value=Ann></label>"


async def change(environment: BrowserEnvironment, script: str) -> None:
    await environment.page.evaluate(f"() => {{ {script} }}")


async def notes(environment: BrowserEnvironment) -> list[object]:
    return list(await environment.page.evaluate("notes"))


def delete(seen: Observation, name: str) -> str:
    """Return the click on the button in the row of a file."""
    ids = [each.id for each in seen.elements if each.name == "Delete"]
    return f"click [{ids[FILES.index(name)]}]"


@pytest.mark.parametrize(
    "script", [REVERSE, INSERT, "d.append(d.firstChild)", "d.innerHTML = d.innerHTML", f"{INSERT}; d.innerHTML = d.innerHTML"]
)
async def test_a_row_is_found_again(visit: Visit, script: str) -> None:
    async with visit(ROWS) as (environment, seen):
        await change(environment, script)
        await do(environment, delete(seen, "map.txt"))
        assert await notes(environment) == ["map.txt"]


async def test_a_row_that_is_gone_is_refused_with_both_names(visit: Visit) -> None:
    async with visit(ROWS) as (environment, seen):
        await change(environment, GONE)
        with pytest.raises(
            StateChanged, match=r'was button "Delete" beside "notes.md": it is button "Delete" beside "other1" now'
        ) as refused:
            await do(environment, delete(seen, "notes.md"))
        assert await notes(environment) == []
        assert refused.value.came.observation is not None and "other1" in refused.value.came.observation.text


async def test_one_of_several_equal_elements_is_refused(visit: Visit) -> None:
    async with visit(ROWS) as (environment, seen):
        await change(environment, "d.append(d.firstChild.cloneNode(true)); d.innerHTML = d.innerHTML")
        with pytest.raises(StateChanged, match="2 elements are like it now"):
            await do(environment, delete(seen, "map.txt"))
        assert await notes(environment) == []


@pytest.mark.parametrize(
    ("html", "script", "action", "name", "said"),
    [
        (
            NOTE + "<button id=b onclick='notes.push(1)'>Archive</button>",
            "b.textContent = 'Delete all'",
            "click [{}]",
            "Archive",
            "Delete all",
        ),
        (NOTE + "<button id=b onclick='notes.push(1)'>Go</button>", "b.setAttribute('role', 'switch')", "click [{}]", "Go", 'switch "Go"'),
        (DIALOG, "q.textContent = 'Delete all?'", "click [{}]", "OK", 'beside "Delete all\\?" now'),
        (BOX, "c.checked = true", "click [{}]", "Public", "checkbox"),
        (NAME, "n.value = 'Bob'", 'fill [{}] "Cy"', "Name", "textbox"),
    ],
)
async def test_what_was_seen_is_no_longer_there(visit: Visit, html: str, script: str, action: str, name: str, said: str) -> None:
    async with visit(html) as (environment, seen):
        target = next(each for each in seen.elements if each.name.startswith(name) and each.role != "StaticText")
        await change(environment, script)
        with pytest.raises(StateChanged, match=said):
            await do(environment, action.format(target.id))
        assert await notes(environment) == []


async def test_a_click_does_not_mind_the_value_of_a_field(visit: Visit) -> None:
    async with visit(NAME) as (environment, seen):
        await change(environment, "n.value = 'Bob'")
        await do(environment, f"click [{find(seen, 'Name', 'textbox').id}]")


@pytest.mark.parametrize(
    "script", ["t.textContent = '10:00:09'", "b.textContent = '4 new'", "l.innerHTML += '<p>Hi</p>'", "document.title = '(1)'"]
)
async def test_changes_elsewhere_do_not_matter(visit: Visit, script: str) -> None:
    page = "<p id=t>10:00:00</p><p id=b>3 new</p><div id=l><p>Hello</p></div>"
    page += "<form onsubmit='notes.push(1); return false'><input aria-label=Text><button>Send</button></form>"
    async with visit(NOTE + page) as (environment, seen):
        await change(environment, script)
        await do(environment, f"click [{find(seen, 'Send').id}]")
        assert await notes(environment) == [1]


async def test_a_row_before_a_control_does_not_belong_to_it(visit: Visit) -> None:
    async with visit(ROWS + "<button onclick='notes.push(1)'>Empty the trash</button>") as (environment, seen):
        await change(environment, "d.lastChild.remove()")
        await do(environment, f"click [{find(seen, 'Empty').id}]")
        assert await notes(environment) == [1]


async def test_an_own_step_is_no_change(visit: Visit) -> None:
    async with visit(NAME + "<button onclick='notes.push(n.value)'>Save</button>") as (environment, seen):
        await do(environment, f'fill [{find(seen, "Name", "textbox").id}] "Cy"')
        await do(environment, f'fill [{find(seen, "Name", "textbox").id}] "Di"')
        await do(environment, f"click [{find(seen, 'Save').id}]")
        assert await notes(environment) == ["Di"]


@pytest.mark.parametrize("kind", ["pointerover", "mouseenter", "mousemove"])
async def test_a_name_that_the_pointer_changes_is_no_other_element(visit: Visit, kind: str) -> None:
    page = "<button id=b onclick='notes.push(b.textContent)'>Following</button>"
    page += f"<script>b.on{kind} = () => {{ b.textContent = 'Unfollow'; }}</script>"
    async with visit(NOTE + page) as (environment, seen):
        await do(environment, f"click [{find(seen, 'Following').id}]")
        assert await notes(environment) == ["Unfollow"]


@pytest.mark.parametrize("milliseconds", [5, 15, 30])
async def test_a_row_that_is_written_over_while_the_action_is_under_way_is_not_pressed(visit: Visit, milliseconds: int) -> None:
    async with visit(ROWS) as (environment, seen):
        await change(environment, f"setTimeout(() => {{ {REVERSE} }}, {milliseconds})")
        await do(environment, delete(seen, "map.txt"))
        assert await notes(environment) == ["map.txt"]


async def test_a_row_that_is_written_over_between_press_and_release_is_not_clicked(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    async with visit(ROWS) as (environment, seen):
        clicked = click_mouse

        async def slow(cdp: Any, x: float, y: float, **more: Any) -> None:
            monkeypatch.setattr(press, "click_mouse", clicked)
            event = {"x": x, "y": y, "button": "left", "clickCount": 1}
            await cdp.send("Input.dispatchMouseEvent", {**event, "type": "mousePressed", "buttons": 1})
            await environment.page.evaluate(f"() => new Promise(next => setTimeout(() => {{ {REVERSE}; next(); }}))")
            await cdp.send("Input.dispatchMouseEvent", {**event, "type": "mouseReleased"})

        monkeypatch.setattr(press, "click_mouse", slow)
        await do(environment, delete(seen, "map.txt"))
        assert await notes(environment) == ["map.txt"]


@pytest.mark.parametrize("kind", ["pointerdown", "mousedown"])
async def test_a_name_that_the_press_changes_is_no_other_element(visit: Visit, kind: str) -> None:
    page = "<button id=b onclick='notes.push(b.textContent)'>Send</button>"
    page += f"<script>b.on{kind} = () => {{ b.textContent = 'Sending'; }}</script>"
    async with visit(NOTE + page) as (environment, seen):
        await do(environment, f"click [{find(seen, 'Send').id}]")
        assert await notes(environment) == ["Sending"]


@pytest.mark.parametrize("later", ["setTimeout(f, 0)", "setTimeout(f, 1)", "requestAnimationFrame(f)", "fetch('/').then(f)"])
async def test_a_row_that_is_written_over_when_the_pointer_has_come_is_not_pressed(visit: Visit, later: str) -> None:
    async with visit(ROWS) as (environment, seen):
        await change(environment, f"addEventListener('mousemove', () => {{ const f = () => {{ {REVERSE} }}; {later} }}, {{once: true}})")
        try:
            await do(environment, delete(seen, "map.txt"))
        except ActionError:
            assert await notes(environment) == []
        else:
            assert await notes(environment) == ["map.txt"]


async def test_a_price_that_always_changes_refuses_once(visit: Visit) -> None:
    page = (
        "<ul><li>ACME <b id=p>101.2</b> <button onclick='notes.push(1)'>Buy</button></li><li>Zeta <b>7.5</b> <button>Buy</button></li></ul>"
    )
    async with visit(NOTE + page) as (environment, seen):
        await change(environment, "p.textContent = '101.3'")
        with pytest.raises(StateChanged, match=r"101\.3") as refused:
            await do(environment, f"click [{find(seen, 'Buy').id}]")
        await change(environment, "p.textContent = '101.4'")
        await do(environment, f"click [{find(refused.value.came.observation, 'Buy').id}]")
        assert await notes(environment) == [1]


async def test_an_id_that_was_never_seen_is_no_change(visit: Visit) -> None:
    async with visit(ROWS) as (environment, _):
        await change(environment, REVERSE)
        with pytest.raises(ActionError, match="there is no element"):
            await do(environment, "click [999]")
