"""What tells states apart beside their text: scroll positions, media, and content that a page masks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from exact.observation import Observation, same_state, without_hash
from exact.task import Task
from tests.conftest import Visit
from tests.environments.browser.pages import find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLIDE = "<div style='flex:none;width:300px;height:60px;background:{}'></div>"
CAROUSEL = f"""<div id=c style='display:flex;width:300px;overflow-x:auto;scroll-behavior:smooth'>
{SLIDE.format("red")}{SLIDE.format("blue")}</div>
<button onclick="c.scrollLeft += 300">Next</button><button onclick="c.scrollLeft -= 300">Back</button>
<button onclick="c.scrollLeft += 9">Nudge</button>"""
EMPTY = "<div style='height:3000px'></div>"


async def test_a_carousel_that_only_scrolls_is_in_another_state_and_back_again(visit: Visit) -> None:
    async with visit(CAROUSEL) as (environment, seen):
        moved = await look(environment, f"click [{find(seen, 'Next').id}]")
        assert moved.fingerprint != seen.fingerprint
        assert (await look(environment, f"click [{find(seen, 'Back').id}]")).fingerprint == seen.fingerprint
        assert (await look(environment, f"click [{find(seen, 'Nudge').id}]")).fingerprint == seen.fingerprint


async def test_an_empty_page_that_scrolls_is_in_another_state(visit: Visit) -> None:
    async with visit(EMPTY) as (environment, seen):
        assert (await look(environment, "scroll down")).fingerprint != seen.fingerprint
        assert (await look(environment, "scroll up")).fingerprint == seen.fingerprint


@pytest.mark.parametrize(
    ("do", "shows"),
    [("a.muted = true", "muted"), ("a.currentTime = 65", 'value="1:05"'), ("a.play()", "playing")],
)
@pytest.mark.parametrize("tag", ["video", "audio"])
async def test_a_medium_is_in_another_state_after_what_its_buttons_do(visit: Visit, tag: str, do: str, shows: str) -> None:
    page = f'<{tag} id=a controls></{tag}><button onclick="{do}">Do</button>'
    async with visit(page) as (environment, seen):
        assert "paused" in seen.text
        after = await look(environment, f"click [{find(seen, 'Do').id}]")
        assert shows in after.text and after.fingerprint != seen.fingerprint
        if shows == "playing":
            assert (await look(environment, "wait")).fingerprint == after.fingerprint, "time goes on by itself"


async def test_a_sound_that_is_not_drawn_is_an_element_while_it_plays(visit: Visit) -> None:
    page = '<audio id=a></audio><button onclick="a.paused ? a.play() : a.pause()">Sound</button>'
    async with visit(page) as (environment, seen):
        assert seen.text == '[1] button "Sound"'
        after = await look(environment, "click [1]")
        assert "Audio playing" in after.text and after.fingerprint != seen.fingerprint


PASSWORDS = "<input type=password aria-label=One><input type=password aria-label=Two>"
KEYPAD = """<meta charset=utf-8><p id=d aria-label=Code>{start}</p><button>1</button><button>2</button><button id=c>Clear</button>
<script>let t = ''; onmousedown = event => event.preventDefault()
onclick = ({{target}}) => {{ t = target.id == 'c' ? '' : t + target.textContent
d.textContent = '{start}' + '{dot}'.repeat(t.length) }}</script>"""
TYPED = """<input aria-label=Pin id=p><script>let t = ''; p.onbeforeinput = event => {
event.preventDefault(); t += event.data ?? ''; p.value = '\\u25cf'.repeat(t.length) }</script>"""


async def test_two_passwords_of_one_length_are_two_states(visit: Visit) -> None:
    async with visit(PASSWORDS) as (environment, seen):
        one, two = find(seen, "One").id, find(seen, "Two").id
        states = [await look(environment, f'fill [{one}] "{word}"') for word in ("secret", "guess1", "secret")]
        assert {each.text for each in states} == {states[0].text}
        assert states[0].fingerprint == states[2].fingerprint != states[1].fingerprint
        moved = await look(environment, f'fill [{one}] ""')
        other = await look(environment, f'fill [{two}] "secret"')
        assert len({each.fingerprint for each in (states[0], moved, other)}) == 3


@pytest.mark.parametrize(("dot", "start"), [("\u2022", ""), ("*", ""), ("\u25cf", "\u25cf ")])
async def test_keys_of_a_pad_that_draws_dots_lead_to_different_states(visit: Visit, dot: str, start: str) -> None:
    async with visit(KEYPAD.format(dot=dot, start=start)) as (environment, seen):
        keys = {each.name: each.id for each in seen.elements if each.role == "button"}
        found = dict[str, str]()
        for word in ("1", "2", "12", "21", "22"):
            for key in word:
                came = await look(environment, f"click [{keys[key]}]")
            found[word] = came.fingerprint
            cleared = await look(environment, f"click [{keys['Clear']}]")
            assert [each.name for each in cleared.elements] == [each.name for each in seen.elements]
        assert len(set(found.values())) == 5


async def test_what_is_typed_into_a_field_that_draws_dots_tells_states_apart(visit: Visit, task_at: Callable[..., Task]) -> None:
    found = list[Observation]()
    async with visit(TYPED) as (environment, seen):
        for word in ("4711", "1234", "4711"):
            seen = await environment.reset(task_at())
            found.append(await look(environment, f'fill [{find(seen, "Pin").id}] "{word}"'))
    assert {each.text for each in found} == {found[0].text} and "\u25cf\u25cf\u25cf\u25cf" in found[0].text
    assert found[0].fingerprint == found[2].fingerprint != found[1].fingerprint
    assert len({without_hash(each.fingerprint) for each in found}) == 1


async def test_dots_that_a_page_draws_are_no_content_that_it_masks(visit: Visit) -> None:
    page = (
        "<meta charset=utf-8><p id=a>Home</p><p>\u2022</p><p>About</p><button onclick=\"a.outerHTML += '<p>*</p><p>*</p>'\">More</button>"
    )
    async with visit(page) as (environment, seen):
        assert "." not in seen.fingerprint
        assert "." not in (await look(environment, f"click [{find(seen, 'More').id}]")).fingerprint


async def test_a_hash_of_another_key_neither_equals_nor_contradicts_a_state(visit: Visit) -> None:
    found = list[Observation]()
    for word in ("secret", "secret", "guess1", "longer1"):
        async with visit(PASSWORDS) as (environment, seen):
            found.append(await look(environment, f'fill [{find(seen, "One").id}] "{word}"'))
    one, same, guess, longer = (each.fingerprint for each in found)
    assert len({one, same, guess}) == 3, "nobody derives the password from the fingerprints of two runs"
    assert same_state(one, same) and same_state(one, guess) and not same_state(one, longer)
