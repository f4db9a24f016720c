"""Pictures tell states apart where their text is equal, and only by what an action drew."""

from __future__ import annotations

import io

import msgspec
import pytest
from PIL import Image, ImageDraw

from exact.environments.browser.observe.drawing import DrawnState, Look, PictureMemory, look_at
from exact.observation import Box
from tests.conftest import CONFIG, Visit
from tests.environments.browser.pages import find, look

browser = pytest.mark.asyncio(loop_scope="session")
SEEN = msgspec.structs.replace(CONFIG, screenshots=True)

CANVAS = """<canvas id=c width=300 height=200></canvas><button onclick="pen.clearRect(0, 0, 300, 200)">Clear</button><script>
const pen = c.getContext('2d'); c.onclick = e => { pen.moveTo(e.offsetX, e.offsetY);
pen.lineTo(e.offsetX + 40, e.offsetY); pen.stroke() }</script>"""
LAMP = "<div id=l style='width:60px;height:60px;background:grey'></div><button onclick=\"l.style.background = 'gold'\">On</button>"
HEART = """<img id=i alt=Heart width=40 height=40 src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>">
<button onclick="i.src = i.src.replace('svg%20', 'svg ').replace('/>', `><rect width='40' height='40' fill='red'/></svg>`)">Like</button>"""

STILL = "<p>Page</p><button>Nothing</button>"
HOVER = "<style>button:hover{background:orange} button:focus{outline:4px solid blue}</style>"
SPINNER = """<style>@keyframes turn { to { transform: rotate(1turn) } } i{display:block;width:50px;height:50px;
background:linear-gradient(red, blue);animation:turn 1s linear infinite}</style><i></i>"""
HANDS = """<canvas id=c width=100 height=100></canvas><script>let at = 0; setInterval(() => { const pen = c.getContext('2d');
pen.clearRect(0, 0, 100, 100); pen.fillRect(at = (at + 17) % 80, 20, 20, 60) }, 300)</script>"""
CLOCK = "<h1 id=t>12:00:00</h1><script>let at = 0; setInterval(() => { t.textContent = `12:00:0${at = (at + 1) % 10}` }, 300)</script>"


@browser
@pytest.mark.parametrize(
    ("page", "act", "other"), [(CANVAS, "click_at 100 100", "click_at 40 150"), (LAMP, 'click "On"', ""), (HEART, 'click "Like"', "")]
)
async def test_what_is_drawn_is_another_state(visit: Visit, page: str, act: str, other: str) -> None:
    async with visit(page, config=SEEN) as (environment, seen):
        verb, _, name = act.partition(' "')
        after = await look(environment, f"click [{find(seen, name[:-1]).id}]" if name else verb)
        assert after.fingerprint != seen.fingerprint
        if other:
            third = await look(environment, other)
            assert third.fingerprint not in (seen.fingerprint, after.fingerprint)
            cleared = await look(environment, f"click [{find(third, 'Clear').id}]")
            assert cleared.fingerprint == seen.fingerprint, "nothing is drawn any more"


@browser
@pytest.mark.parametrize("page", ["", HOVER, SPINNER, HANDS, CLOCK], ids=["still", "hover", "spinner", "hands", "clock"])
async def test_what_moves_by_itself_or_by_the_pointer_is_no_other_state(visit: Visit, page: str) -> None:
    async with visit(page + STILL, config=SEEN) as (environment, seen):
        for action in (
            f"click [{find(seen, 'Nothing').id}]",
            f"hover [{find(seen, 'Page').id}]",
            "wait",
            f"click [{find(seen, 'Nothing').id}]",
        ):
            assert (await look(environment, action)).fingerprint == seen.fingerprint


@browser
async def test_a_blinking_caret_is_no_other_state(visit: Visit) -> None:
    async with visit("<input aria-label=Name><p>Page</p>", config=SEEN) as (environment, seen):
        states = {(await look(environment, action)).fingerprint for action in (f"click [{find(seen, 'Name').id}]", "wait", "wait")}
        assert len(states) == 1


@browser
async def test_the_same_drawing_is_the_same_state_in_another_episode(visit: Visit) -> None:
    async with visit(CANVAS, config=SEEN) as (environment, seen):
        task = environment.episode.task
        assert task is not None
        first = await look(environment, "click_at 100 100")
        assert (await environment.reset(task)).fingerprint == seen.fingerprint
        assert (await look(environment, "click_at 100 100")).fingerprint == first.fingerprint


def shot(*boxes: tuple[int, int, int, int], noise: int = 0) -> bytes:
    image = Image.new("RGB", (160, 80), (255 - noise,) * 3)
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, fill="black")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


async def drawn(
    before: DrawnState | None,
    text: str,
    screenshot: bytes,
    *,
    boxes: tuple[Box, ...] = (),
    later: bytes = b"",
    memory: PictureMemory | None = None,
) -> DrawnState:
    async def restless() -> tuple[Box, ...]:
        return boxes

    async def again() -> bytes:
        return later or screenshot

    return await look_at(before, text, screenshot, Look("page", 1.0, restless, again), memory or PictureMemory())


@pytest.mark.parametrize(
    ("screenshot", "boxes", "later", "differs"),
    [
        (shot((20, 20, 60, 60)), (), b"", True),
        (shot((20, 20, 60, 21)), (), b"", True),
        (shot(noise=9), (), b"", False),
        (shot((20, 20, 20, 21)), (), b"", False),
        (shot((20, 20, 60, 60)), (Box(20, 20, 40, 40),), b"", False),
        (shot((20, 20, 60, 60)), (), shot((30, 20, 70, 60)), False),
        (shot((20, 20, 60, 60), (100, 10, 120, 30)), (), shot((24, 20, 64, 60), (100, 10, 120, 30)), True),
    ],
    ids=["a block", "a line", "anti-aliasing", "a dot", "under the pointer", "moving", "beside what moves"],
)
async def test_a_lasting_difference_counts(screenshot: bytes, boxes: tuple[Box, ...], later: bytes, differs: bool) -> None:
    before = await drawn(None, "a", shot())
    after = await drawn(before, "a", screenshot, boxes=boxes, later=later)
    moving = later and not differs
    assert (after.fingerprint != before.fingerprint) is differs or moving


async def test_where_the_text_differs_no_picture_is_compared() -> None:
    before = await drawn(None, "a", shot())
    after = await look_at(before, "b", b"no PNG", Look("page", 1.0, None, None), PictureMemory())  # type: ignore[arg-type]
    assert after.fingerprint == "b"


async def test_a_picture_that_looks_the_same_has_the_same_digest_again() -> None:
    memory, start = PictureMemory(), await drawn(None, "a", shot())
    one = await drawn(start, "a", shot((20, 20, 60, 60)), memory=memory)
    other = await drawn(start, "a", shot((20, 20, 60, 60), noise=5), memory=memory)
    assert one.fingerprint == other.fingerprint != start.fingerprint
