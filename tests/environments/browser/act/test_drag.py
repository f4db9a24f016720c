"""A drag shows the same on a slow machine as on a fast one, and scrolls only what the page scrolls."""

import pytest

from tests.conftest import Visit
from tests.environments.browser.pages import find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

STYLE = "<style>body { margin: 0 } #box { height: 200px; width: 300px; overflow: auto } p { height: 30px; margin: 0 }</style>"
SLOW = """const slow = () => { const end = performance.now() + 120; while (performance.now() < end); };
    for (const kind of ['dragover', 'dragleave']) addEventListener(kind, slow);
    addEventListener('mousemove', event => event.buttons && slow());"""
"""Takes so long for each event of a drag that the browser draws several frames meanwhile."""


def rows(script: str = "", *, draggable: bool = False, after: str = "") -> str:
    """Return a page with a box in which rows 10 to 16 are in view."""
    lines = "".join(f"<p {'draggable=true' if draggable else ''}>Row {n} of them</p>" for n in range(40))
    return f"{STYLE}<div id=box>{lines}</div>{after}<script>box.scrollTop = 300; {script}</script>"


def framed(html: str, around: str = "{}") -> str:
    return around.format(f'<iframe style="width: 400px; height: 250px" srcdoc="{html.replace(chr(34), "&quot;")}"></iframe>')


def shadowed(kind: str) -> str:
    lines = "".join(f"<p>Row {n}</p>" for n in range(40))
    return f"""<div id=host></div><button>Below</button><script>const root = host.attachShadow({{mode: '{kind}'}});
    root.innerHTML = `{STYLE}<div id=box>{lines}</div>`; root.getElementById('box').scrollTop = 300; {SLOW}</script>"""


BELOW = "<button>Below</button>"
FREE = {
    "of what is draggable to the upper edge": ("Row 13", "Row 10", rows(SLOW, draggable=True)),
    "of what is draggable to the lower edge": ("Row 13", "Row 16", rows(SLOW, draggable=True)),
    "over a text and out of the box": ("Row 13", "Below", rows(SLOW, after=BELOW)),
    "over a text and out of a box in a shadow root": ("Row 13", "Below", shadowed("open")),
    "over a text and out of a box in a closed shadow root": ("Row 13", "Below", shadowed("closed")),
    "of what is draggable to the end of the page": (
        "Row 3", "Row 12",
        f"{STYLE}<div style='height: 16px'></div>{''.join(f'<p draggable=true>Row {n}</p>' for n in range(60))}"
        f"<script>{SLOW.replace('120', '300')}</script>",
    ),
    "over a text and out of a box in a frame": ("Row 13", "Below", framed(rows(SLOW, after=BELOW))),
    "over a text in a frame to the end of the page": (
        "Row 3", "Below", framed(f"{STYLE}{''.join(f'<p>Row {n}</p>' for n in range(30))}<script>{SLOW}</script>",
                                 "{}<div style='height: 100px'></div><button>Below</button><div style='height: 900px'></div>"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FREE)
async def test_a_slow_drag_lets_the_browser_scroll_nothing(visit: Visit, case: str) -> None:
    one, other, page = FREE[case]
    async with visit(page) as (env, seen):
        after = await look(env, f"drag [{find(seen, one).id}] to [{find(seen, other).id}]")
        assert [each.box for each in after.elements] == [each.box for each in seen.elements]


async def test_a_drag_between_points_lets_the_browser_scroll_nothing(visit: Visit) -> None:
    async with visit(rows(SLOW)) as (env, seen):
        assert find(await look(env, "drag_at 40 100 to 40 260"), "Row 13").box == find(seen, "Row 13").box


OWN = {
    "by the page that pans": (
        "drag_at 40 40 to 40 195", 145,
        rows("onmousemove = e => { if (e.buttons) box.scrollTop -= e.movementY }"),
    ),
    "by the page that follows the pointer to the edge": (
        "drag_at 40 40 to 40 190", 490, rows("onmousemove = e => { if (e.buttons) box.scrollTop = 300 + e.clientY }"),
    ),
    "by the page when the button is released": ("drag_at 40 40 to 40 190", 340, rows("onmouseup = () => box.scrollBy(0, 40)")),
}  # fmt: skip


@pytest.mark.parametrize("case", OWN)
async def test_what_the_page_scrolls_during_a_drag_stays(visit: Visit, case: str) -> None:
    action, place, page = OWN[case]
    async with visit(page) as (env, _):
        box = find(await look(env, action), "Row 0").box
        assert box is not None and box.y == -place


async def test_the_box_of_a_drag_can_be_scrolled_afterwards(visit: Visit) -> None:
    async with visit(rows(SLOW, draggable=True)) as (env, seen):
        seen = await look(env, f"drag [{find(seen, 'Row 13').id}] to [{find(seen, 'Row 16').id}]")
        after = await look(env, f"scroll_in [{find(seen, 'Row 13').id}] down")
        assert find(after, "Row 13").box != find(seen, "Row 13").box
