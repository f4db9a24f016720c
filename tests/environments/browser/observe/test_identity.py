"""What tells states apart beside their text: scroll positions and media."""

from __future__ import annotations

import pytest

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
