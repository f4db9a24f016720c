"""A click reaches the element that was named, wherever it is by then, and nothing else."""

import asyncio
from typing import Any, cast

import pytest

from exact.environments.browser.page.cdp import Cdp
from exact.errors import ActionError
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

GO = "<button onclick=\"document.title='hit'\">Go</button>"
BAD = "<button onclick=\"document.title='wrong'\" style='{}'>Other</button>"
GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def framed(html: str, style: str = "", around: str = "{}") -> str:
    inner = html.replace("&", "&amp;").replace('"', "&quot;").replace("document.title", "top.document.title")
    return around.format(f'<iframe style="{style}" srcdoc="{inner}"></iframe>')


COVERED = {
    "under a sticky head after the page was scrolled": f"""<style>header {{ position: sticky; top: 0; height: 90px; background: #ccc
        }}</style>
        <header>Shop</header><div style="height:500px"></div>{GO}<div style="height:2000px"></div><script>scrollTo(0, 560)</script>""",
    "under a fixed foot": f"""<footer style="position:fixed;bottom:0;left:0;right:0;height:120px;background:#ccc">Cookies</footer>
        <div style="height:330px"></div>{GO}<div style="height:900px"></div>""",
    "under the sticky head of a table in a scroller": """<div style="height:150px;overflow:auto" id=box><table><thead
        style="position:sticky;top:0;background:#ccc;height:60px"><tr><th>Name</thead><tbody>"""
    + "".join(
        f"<tr><td><button onclick=\"document.title='{'hit' if i == 4 else 'wrong'}'\">{'Go' if i == 4 else i}</button>" for i in range(30)
    )
    + "</table></div><script>box.scrollTop = document.querySelectorAll('button')[4].offsetTop - 4</script>",
    "between a sticky head and a sticky foot": f"""<style>.s {{ position: sticky; height: 150px; background: #ccc }}</style>
        <div class=s style="top:0">Head</div><div style="height:1400px"></div>{GO}<div style="height:700px"></div><div class=s
        style="bottom:0">Foot</div>""",
}
CLIPPED = {
    "in a scroller that scrolls sideways": f"""<div style="width:200px;overflow-x:auto;white-space:nowrap">{BAD.format("width:190px")}{
        BAD.format("width:190px")
    }{GO}</div>""",
    "in a scroller in a scroller": f"""<div style="height:200px;overflow:auto"><div style="height:600px"></div><div
        style="height:120px;overflow:auto"><div style="height:500px"></div>{GO}</div><div style="height:600px"></div></div>""",
    "in a scroller that snaps": """<div style="height:100px;overflow:auto;scroll-snap-type:y mandatory">"""
    + "".join(f"<div style='scroll-snap-align:start;height:100px'>{i}</div>" for i in range(4))
    + f"<div style='scroll-snap-align:start;height:100px'>{GO}</div></div>",
    "on a page that scrolls smoothly": f"<style>html {{ scroll-behavior: smooth }}</style><div style='height:3000px'></div>{GO}",
    "in a scroller in a shadow root": f"""<div><template shadowrootmode=open><div style="height:90px;overflow:auto"><div
        style="height:400px"></div><slot></slot></div></template>{GO}</div>""",
    "in a closed shadow root": f"""<div><template shadowrootmode=closed><div style="height:90px;overflow:auto"><div
        style="height:400px"></div>{GO}</div></template></div>""",
    "far down in a frame that is far down": "<div style='height:900px'></div>" + framed(f"<div style='height:900px'></div>{GO}"),
    "text in a tall paragraph": "<p onclick=\"document.title='hit'\" style='height:900px;margin-top:700px'>Go</p>",
}
SHAPES = {
    "a link that wraps": """<p style="width:200px;font-size:20px">Some words before it <a href=#x onclick="document.title='hit'">Go
        over two lines</a> and after""",
    "contents of a button, wrapped twice": """<button style="display:contents" onclick="document.title='hit'"><span
        style="display:contents"><b>Go</b></span></button>""",
    "a link around a float": """<a href=#x onclick="document.title='hit'" style="display:block"><img alt=Go src="GIF"
        style="float:left;width:50px;height:50px"></a>""".replace("GIF", GIF),
    "an area that is a triangle": f"""<img usemap=#m width=200 height=100 alt=Plan src="{GIF}"><map name=m><area shape=poly
        coords="0,0,200,0,0,100" href="#x" alt=Go onclick="document.title='hit'"><area shape=default href="#y" alt=Rest
        onclick="document.title='wrong'"></map>""",
    "the area around the others": f"""<img usemap=#m width=200 height=100 alt=Plan src="{GIF}"><map name=m><area shape=circle
        coords="100,50,48" href="#x" alt=Rest onclick="document.title='wrong'"><area shape=default href="#y" alt=Go
        onclick="document.title='hit'"></map>""",
    "an area of an image that is drawn larger": f"""<img usemap=#m width=100 height=50 alt=Plan src="{GIF}"
        style="transform:scale(2);transform-origin:0 0"><map name=m><area shape=rect coords="0,0,50,50" href="#x" alt=Rest
        onclick="document.title='wrong'"><area shape=rect coords="70,0,100,20" href="#y" alt=Go onclick="document.title='hit'"></map>""",
    "a hollow circle": """<svg width=200 height=200><rect width=200 height=200 fill="#eee" onclick="document.title='wrong'"/><circle cx=100
        cy=100 r=80 fill=none stroke=red stroke-width=4 aria-label=Go role=button onclick="document.title='hit'"/></svg>""",
    "a line of a chart": """<svg width=300 height=200><path d="M10 190 Q 150 -150 290 190" fill=none stroke=blue stroke-width=3 role=button
        aria-label=Go onclick="document.title='hit'"/></svg>""",
    "words in a wide button": "<button style='padding:80px 200px' onclick=\"document.title='hit'\">Go</button>",
    "a picture that lets the pointer through": """<button onclick="document.title='hit'"><span
        style="pointer-events:none">Go</span></button>""",
    "a field whose label is drawn": """<style>input { position: absolute; opacity: 0; width: 0; height: 0 }</style><input type=checkbox id=c
        onchange="document.title='hit'"><label for=c>Go <a href=#y onclick="document.title='wrong'">terms of use of it all</a></label>""",
    "a card with a button in its middle": """<div tabindex=0 role=link aria-label=Go onclick="document.title ||= 'hit'"
        style="width:300px;height:100px;padding:30px"><button style="width:240px;height:60px" onclick="document.title='wrong'">Delete
        </button></div><script>document.title = ''</script>""",
}
FRAMES = {
    "a turned frame": framed(GO, "transform:rotate(25deg) scale(1.5);margin:100px"),
    "a small frame in a zoomed page": "<style>body { zoom: 1.5 }</style>" + framed(GO, "transform:scale(.5)"),
    "a frame in a shadow root": framed(GO, around="<div><template shadowrootmode=open>{}</template></div>"),
    "a frame in a turned frame": framed(
        framed(GO, "width:200px;height:90px;transform:rotate(10deg)"), "transform:scale(.8) rotate(-20deg)"
    ),
    "a frame seen at an angle": framed(GO, "transform:perspective(300px) rotateY(40deg)"),
}


@pytest.mark.parametrize("page", [*COVERED.values(), *CLIPPED.values(), *SHAPES.values(), *FRAMES.values()],
                         ids=[*COVERED, *CLIPPED, *SHAPES, *FRAMES])  # fmt: skip
async def test_a_click_reaches_what_playwright_would_reach(visit: Visit, page: str) -> None:
    async with visit(page) as (env, seen):
        go = find(seen, "Go", "button" if "<table" in page else "")  # not the row
        assert (await look(env, f"click [{go.id}]")).title == "hit"


MOVING = {
    "hovering puts something above it": f"""<style>#bar {{ display: none }} #list:hover #bar {{ display: block }} button {{ display: block;
        width: 200px; height: 40px }}</style><div id=list><div id=bar>{BAD.format("")}</div>{GO}</div>""",
    "it moves when the pointer comes": f"<div id=d onmouseenter=\"d.style.paddingTop='60px'\">{GO}</div>",
    "something is put above it a frame later": f"""<style>button {{ display: block; width: 200px; height: 40px }}</style><div id=d
        onmouseenter="setTimeout(() => top1.style.display = 'block')"><div id=top1 style="display:none">{BAD.format("")}</div>{GO}</div>""",
    "something is put above it in the frame that the pointer asks for": f"""<style>button {{ display: block; width: 200px; height: 40px }}
        </style><div id=d onpointermove="requestAnimationFrame(() => top1.style.display = 'block')"><div id=top1
        style="display:none">{BAD.format("")}</div>{GO}</div>""",
    "a picture above it comes late": f"""<style>button {{ display: block; height: 40px }}</style><div style="height:900px"></div><div
        id=d></div>{GO}{
        BAD.format("")
    }<div style="height:900px"></div><script>addEventListener('scroll', () => fetch('/').then(() => {{ d.style.height = '90px' }}),
        {{once: true}})</script>""",
}


@pytest.mark.parametrize("page", MOVING.values(), ids=MOVING)
async def test_what_moves_before_it_is_pressed_is_aimed_at_again(visit: Visit, page: str) -> None:
    async with visit(page) as (env, seen):
        assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "hit"


FLEEING = {
    "an overlay opens under the pointer": f"""<style>div {{ position: relative; width: 99px }} p {{ display: none; position: absolute;
        inset:
        0; margin: 0; background: #eee }} div:hover p {{ display: block }}</style><div>{GO}<p
        onclick="document.title='wrong'">Preview</p></div>""",
    "it runs from the pointer": """<button style="position:absolute;left:0;top:0;width:90px;height:40px" onclick="document.title='hit'"
        onpointermove="style.left = style.left === '0px' ? '300px' : '0px'">Go</button><button onclick="document.title='wrong'"
        style="position:absolute;left:0;top:0;z-index:-1;width:90px;height:40px">Other</button>""",
    "another one comes under the pointer when it is pressed": f"""<script>addEventListener('pointerdown', () => {{
        document.querySelector('button').before(document.querySelectorAll('button')[1]) }}, true)</script><style>button {{ display:
        block; width:
        90px; height: 40px }}</style>{GO}{BAD.format("")}""",
}


@pytest.mark.parametrize("page", FLEEING.values(), ids=FLEEING)
async def test_nothing_else_is_pressed_where_the_element_cannot_be(visit: Visit, page: str) -> None:
    async with visit(page) as (env, seen):
        try:
            step = await do(env, f"click [{find(seen, 'Go').id}]")
        except ActionError as error:
            assert "cover" in str(error) or "move" in str(error)
        else:
            assert step.observation is not None and step.observation.title != "wrong" and "refused" in step.info


async def test_a_press_that_lands_in_a_frame_on_top_is_stopped(visit: Visit) -> None:
    frame = framed("<body onmousedown=\"document.title='wrong'\">Chat", "position:fixed;inset:0;width:600px;height:400px")
    async with visit(f"<div onmouseenter='hid.hidden = false'>{GO}</div><div id=hid hidden>{frame}</div>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert "is covered by <iframe>" in step.info["refused"] and await env.page.title() == "Test"


async def test_not_even_a_listener_on_the_window_hears_of_a_press_beside_the_element(visit: Visit) -> None:
    listen = """<script>for (const each of ['pointerdown', 'mousedown', 'click'])
    addEventListener(each, e => document.title += ' ' + e.target.textContent, true)</script>"""
    async with visit(listen + MOVING["hovering puts something above it"].replace("document.title='hit'", "")) as (env, seen):
        assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "Test Go Go Go"


async def test_a_click_that_is_lost_as_the_page_moves_under_it_says_so(visit: Visit) -> None:
    page = f"<input autofocus onblur='e.hidden = false'><p id=e hidden style='height:90px'>Too short</p>{GO}"
    async with visit(page) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert "moved away while it was pressed" in step.info["refused"] and await env.page.title() == "Test"


async def test_a_link_in_a_disabled_group_of_fields_is_clicked(visit: Visit) -> None:
    async with visit("<fieldset disabled><a href=#x onclick=\"document.title='hit'\">Go</a></fieldset>") as (env, seen):
        assert (await look(env, f"click [{find(seen, 'Go', 'link').id}]")).title == "hit"


async def test_hovering_follows_what_moves_away(visit: Visit) -> None:
    page = MOVING["hovering puts something above it"].replace("onclick=\"document.title='hit'\"", "onmouseenter=\"document.title='over'\"")
    async with visit(page) as (env, seen):
        await look(env, f"hover [{find(seen, 'Go').id}]")
        assert await env.page.evaluate("document.querySelector(':hover button:hover')?.textContent") == "Go"


async def test_a_drag_begins_on_the_element_or_not_at_all(visit: Visit) -> None:
    page = """<script>onmousedown = e => document.title = e.target.localName</script><div role=group aria-label=From style="height:50px"
    onmouseenter="cover.hidden = false">From</div><div role=group aria-label=To style="height:50px">To</div>
    <p id=cover hidden style="position:fixed;inset:0;margin:0">Cover</p>"""
    async with visit(page) as (env, seen):
        step = await do(env, f"drag [{find(seen, 'From', 'group').id}] to [{find(seen, 'To', 'group').id}]")
        assert 'covered by <p> "Cover"' in step.info["refused"] and await env.page.title() == "Test"


class LateAnswers:
    """A connection by which the page hears what became of a press only after the button was released, as on a busy machine."""

    def __init__(self, cdp: Cdp) -> None:
        self._cdp, self._released = cdp, asyncio.Event()

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:
        if "function disarm" in (params or {}).get("expression", ""):
            await self._released.wait()
        found = await self._cdp.send(method, params)
        if (params or {}).get("type") == "mouseReleased":
            self._released.set()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cdp, name)


async def test_a_point_is_pressed_after_a_press_whose_end_was_asked_for_late(visit: Visit) -> None:
    page = f"{GO}<p style='position:fixed;left:0;top:200px' onclick=\"document.title='point'\">Elsewhere</p>"
    async with visit(page) as (env, seen):
        tab = env.episode.tabs.present
        tab.cdp = cast(Cdp, LateAnswers(tab.cdp))
        assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "hit"
        assert (await look(env, "click_at 10 225")).title == "point"


@pytest.mark.parametrize(
    ("field", "button"),
    [
        ("<input aria-label=Mail onchange='{}'>", "<button id=b disabled {}>Go</button>"),
        ("<textarea aria-label=Mail onblur='{}'></textarea>", "<button id=b disabled {}><b>Go</b></button>"),
        (
            "<p contenteditable aria-label=Mail onblur='queueMicrotask(() => {})'></p>",
            "<input id=b type=submit value=Go disabled {}>",
        ),
        ("<input aria-label=Mail onblur='requestAnimationFrame(() => {})'>", "<div id=b role=button aria-disabled=true {}>Go</div>"),
    ],
)
async def test_a_click_on_a_button_that_leaving_the_field_enables_works(visit: Visit, field: str, button: str) -> None:
    enable = "(b.disabled = false, b.ariaDisabled = null)"
    page = field.replace("{}", enable) + button.replace("{}", "onclick=\"if (ariaDisabled !== 'true') document.title = 'sent'\"")
    async with visit(page) as (env, seen):
        seen = await look(env, f'fill [{find(seen, "Mail").id}] "a@b.example"')
        for action in ("hover", "drag"):
            there = f"{action} [{find(seen, 'Go').id}]" + (f" to [{find(seen, 'Mail').id}]" if action == "drag" else "")
            with pytest.raises(ActionError, match="is disabled"):
                await do(env, there)
        assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "sent"


async def test_a_click_on_a_button_that_stays_disabled_gives_the_field_its_focus_back(visit: Visit) -> None:
    page = "<input aria-label=Mail><input aria-label=Age onblur=\"p.textContent = 'too young'\"><p id=p></p><button disabled>Go</button>"
    async with visit(page) as (env, seen):
        seen = await look(env, f'fill [{find(seen, "Mail").id}] "ab"')
        with pytest.raises(ActionError, match="is disabled"):
            await do(env, f"click [{find(seen, 'Go').id}]")
        assert find(await look(env, 'type "c"'), "Mail").value == "abc"
        await do(env, f'fill [{find(seen, "Age").id}] "3"')
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert "is disabled" in step.info["refused"] and find(step.observation, "too young")


TABLE = """<table><tr tabindex=0 aria-label=Two><td>Two<tr tabindex=0 aria-label=Three><td>Three</table>
<script>onclick = event => document.title = ['ctrl', 'shift', 'alt', 'meta'].filter(key => event[key + 'Key']).join('+')
  + ' ' + event.target.textContent</script>"""


@pytest.mark.parametrize(("held", "heard"), [("Ctrl", "ctrl"), ("shift+ctrl", "ctrl+shift"), ("Alt", "alt"), ("cmd", "meta")])
async def test_a_click_is_made_while_keys_are_held_and_releases_them(visit: Visit, held: str, heard: str) -> None:
    async with visit(TABLE) as (environment, seen):
        after = await look(environment, f'click_with [{find(seen, "Two").id}] "{held}"')
        assert after.title == f"{heard} Two"
        assert (await look(environment, f"click [{find(after, 'Three').id}]")).title == "Three"


async def test_several_options_of_a_native_list_are_chosen_with_a_held_key(visit: Visit) -> None:
    page = (
        '<select multiple size=4 onchange="document.title = [...this.selectedOptions].map(each => each.text)"><option>A<option>B<option>C'
    )
    async with visit(page) as (environment, seen):
        after = await look(environment, f"click [{find(seen, 'A', 'option').id}]")
        assert (await look(environment, f'click_with [{find(after, "C", "option").id}] "Control"')).title == "A,C"


async def test_only_modifiers_are_held_during_a_click(visit: Visit) -> None:
    async with visit(TABLE) as (environment, seen):
        with pytest.raises(ActionError, match="unknown modifier 'a': valid: Alt, Control, Meta, Shift"):
            await do(environment, f'click_with [{find(seen, "Two").id}] "a"')
