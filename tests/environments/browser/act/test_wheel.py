"""The wheel of the mouse, for pages that listen to it."""

from __future__ import annotations

import pytest

from exact.errors import ActionError
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLIDES = """<div id=a style='position:fixed;inset:0'>Slide 1</div>
<script>addEventListener('wheel', e => a.textContent = 'Slide ' + (e.deltaY > 0 ? 2 : 0))</script>"""
MAP = """<button id=m style='width:200px;height:100px'>Zoom 1</button><p>Page</p><script>let zoom = 1;
m.addEventListener('wheel', e => { e.preventDefault(); zoom += Math.sign(e.deltaY - e.deltaX);
m.textContent = 'Zoom ' + zoom }, {passive: false})</script>"""
BOX = "<div style='height:60px;overflow:auto'><p>First<p style='margin-top:300px'>Last</div>"


@pytest.mark.parametrize(("way", "shown"), [("down", "Slide 2"), ("up", "Slide 0")])
async def test_scrolling_a_page_that_listens_to_the_wheel_turns_the_wheel(visit: Visit, way: str, shown: str) -> None:
    async with visit(SLIDES) as (environment, _):
        done = await do(environment, f"scroll {way}")
        assert done.observation is not None and shown in done.observation.text and done.info == {}


async def test_scrolling_at_the_end_of_a_page_that_does_not_listen_is_refused(visit: Visit) -> None:
    async with visit("<p>Short") as (environment, _):
        with pytest.raises(ActionError, match="nothing to scroll down: this is the end"):
            await do(environment, "scroll down")


@pytest.mark.parametrize(("way", "zoom"), [("up", 0), ("down", 2), ("left", 2), ("right", 0)])
async def test_the_wheel_turns_over_an_element(visit: Visit, way: str, zoom: int) -> None:
    async with visit(MAP) as (environment, seen):
        assert f"Zoom {zoom}" in (await look(environment, f"wheel [{find(seen, 'Zoom').id}] {way}")).text


async def test_the_wheel_scrolls_what_it_is_over(visit: Visit) -> None:
    async with visit(BOX) as (environment, seen):
        after = await look(environment, f"wheel [{find(seen, 'First').id}] down")
        assert find(after, "First").box != find(seen, "First").box
