"""A button that a script lets press the button of a form is presumed to send it, by its name."""

from __future__ import annotations

import pytest

from exact.environments.browser.presume.presume import StepHistory, WritePresumption
from tests.conftest import Visit
from tests.environments.browser.pages import find

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "an input": "<button type=button onclick=s.click()>OK</button>"
    "<form method=post action=/p><input id=s type=submit value=OK hidden></form>",
    "a button": "<button onclick=s.click()>Fertig</button>"
    "<form method=post><button id=s style='display: none'><b>Fertig</b></button></form>",
}
READS = "<button type=button onclick=s.click()>OK</button><form action=/s><input id=s type=submit value=OK hidden></form>"


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
async def test_a_button_named_like_one_that_posts_a_form_is_presumed_to_write(page: str, visit: Visit) -> None:
    async with visit(page) as (env, seen):
        presumption = WritePresumption(StepHistory())
        (button,) = [each for each in seen.elements if each.role == "button"]
        found = presumption.of(env.actions.action("click", button.id), seen, env.episode.observer.controls)
        assert found is not None and "named like one that sends a form" in found.why and not found.certain


async def test_a_button_named_like_one_that_reads_is_not(visit: Visit) -> None:
    async with visit(READS) as (env, seen):
        presumption = WritePresumption(StepHistory())
        assert presumption.of(env.actions.action("click", find(seen, "OK").id), seen, env.episode.observer.controls) is None
