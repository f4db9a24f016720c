"""A page cannot tell our pointer from Playwright's."""

from typing import Any

import pytest

from exact.environments.browser.page.cdp import Button, click_mouse, move_mouse
from tests.conftest import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = """<body style='height:400px'><script>
const heard = [], down = ['pointerdown', 'mousedown', 'pointerup', 'mouseup']
for (const kind of ['pointermove', 'mousemove', ...down, 'click', 'dblclick', 'auxclick', 'contextmenu'])
  addEventListener(kind, e => heard.push(
    [e.type, e.button, e.buttons, e.detail, e.pressure ?? '', e.clientX, e.clientY, e.pointerType ?? '', e.isTrusted]))
</script>"""


@pytest.mark.parametrize(("button", "count"), [("left", 1), ("left", 2), ("right", 1)])
async def test_a_page_hears_the_same_of_ours_as_of_playwrights(visit: Visit, button: Button, count: int) -> None:
    heard: list[list[Any]] = []
    for own in (True, False):
        async with visit(PAGE) as (env, _):
            if own:
                cdp = await env.page.context.new_cdp_session(env.page)
                await move_mouse(cdp, 20, 30)
                await click_mouse(cdp, 20, 30, button=button, count=count)
            else:
                await env.page.mouse.move(20, 30)
                await env.page.mouse.click(20, 30, button=button, click_count=count)
            events: list[Any] = await env.page.evaluate("heard")
            told = [event for event in events if event[5:7] != [0, 0]]  # where a browser takes its pointer to be when a page opens
            heard.append([event for at, event in enumerate(told) if event not in told[:at]])  # Playwright moves twice
    assert heard[0] == heard[1] and len(heard[0]) > 6
