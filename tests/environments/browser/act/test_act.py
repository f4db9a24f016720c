"""Each action acts, and what it did is observed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.config import BrowserConfig
from exact.environments.base import SideEffect
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Task
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_click_reaches_the_element(visit: Visit) -> None:
    async with visit("<button onclick=\"this.textContent='done'\">Go</button>") as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "done").role == "button"


async def test_an_element_below_the_view_is_scrolled_to_and_clicked(visit: Visit) -> None:
    async with visit("<div style='height:3000px'></div><button onclick=\"this.textContent='done'\">Go</button>") as (env, seen):
        assert not find(seen, "Go").visible
        after = await look(env, f"click [{find(seen, 'Go').id}]")
        assert find(after, "done").visible


async def test_fill_replaces_the_value_by_typing(visit: Visit) -> None:
    page = "<input aria-label=Name value=old onkeyup=\"out.textContent='typed ' + this.value\"><p id=out>"
    async with visit(page) as (env, seen):
        after = await look(env, f'fill [{find(seen, "Name").id}] "Änn \\"B\\""')
        assert find(after, "Name").value == 'Änn "B"'
        assert find(after, 'typed Änn "B"')


async def test_fill_with_nothing_empties_a_field(visit: Visit) -> None:
    async with visit("<input aria-label=Name value=old>") as (env, seen):
        assert not find(await look(env, f'fill [{find(seen, "Name").id}] ""'), "Name").value


async def test_fill_with_lines_keeps_them_and_does_not_submit(visit: Visit) -> None:
    async with visit("<form action=/x><textarea aria-label=Note></textarea></form>") as (env, seen):
        after = await look(env, f'fill [{find(seen, "Note").id}] "one\\ntwo"')
        assert find(after, "Note").value == "one\ntwo"
        assert await env.page.evaluate("document.querySelector('textarea').value") == "one\ntwo"


async def test_a_date_is_set_and_announced(visit: Visit) -> None:
    async with visit("<input type=date aria-label=Day onchange='document.title=this.value'>") as (env, seen):
        day = find(seen, "Day").id
        assert (await look(env, f'fill [{day}] "2024-02-29"')).title == "2024-02-29"
        with pytest.raises(ActionError, match="write 2024-01-31"):
            await do(env, f'fill [{day}] "29 February"')


async def test_press_sends_chords_to_the_focus(visit: Visit) -> None:
    async with visit("<input aria-label=Name value=old autofocus>") as (env, _):
        await do(env, 'press "Ctrl+a"')
        assert find(await look(env, 'press "x"'), "Name").value == "x"


async def test_hover_shows_what_hides(visit: Visit) -> None:
    page = "<style>p{display:none} div:hover p{display:block}</style><div role=group aria-label=Menu>Menu<p>Secret</div>"
    async with visit(page) as (env, seen):
        assert "Secret" not in seen.text
        assert find(await look(env, f"hover [{find(seen, 'Menu').id}]"), "Secret")


_CITIES = (
    "<option>Choose<optgroup label=Spain><option value=es>Leon</optgroup><optgroup label=Mexico><option value=mx>Leon</optgroup>",
    "<option value=es>Leon (1)<option value=mx>Leon<option value=ar>Leon",
    "<optgroup label=X><option value=es>Leon<option value=mx>Leon</optgroup><optgroup label=Y><option>Leon</optgroup>",
    "<option value=es>Leon<option value=mx>LEON<option hidden>leon",
)


@pytest.mark.parametrize(
    ("options", "label", "names", "name"),
    [
        (_CITIES[0], "leon", "'Spain: Leon', 'Mexico: Leon'", "mexico: leon"),
        (_CITIES[1], "Leon", "'mx', 'ar'$", "mx"),
        (_CITIES[2], "Leon", r"'Leon \(1\)', 'Leon \(2\)', 'Leon \(3\)'", "Leon (2)"),
        (_CITIES[2], "X: Leon", r"'Leon \(1\)', 'Leon \(2\)'$", "Leon (2)"),
        (_CITIES[3], "leoN", "'Leon', 'LEON'$", "LEON"),
    ],
)
async def test_a_label_of_several_options_is_refused_with_names(visit: Visit, options: str, label: str, names: str, name: str) -> None:
    async with visit(f"<select id=s aria-label=City>{options}</select>") as (env, seen):
        city, before = find(seen, "City").id, await env.page.evaluate("s.selectedIndex")
        with pytest.raises(ActionError, match=f"options '{label}': write one of {names}"):
            await do(env, f'select [{city}] "{label}"')
        assert await env.page.evaluate("s.selectedIndex") == before
        await do(env, f'select [{city}] "{name}"')
        assert await env.page.evaluate("s.value") == "mx"


async def test_of_two_options_with_one_label_the_shown_one_is_chosen(visit: Visit) -> None:
    page = "<select id=s aria-label=City><option>Choose<option hidden value=es>Leon<option value=mx>Leon</select>"
    async with visit(page) as (env, seen):
        await do(env, f'select [{find(seen, "City").id}] "Leon"')
        assert await env.page.evaluate("s.value") == "mx"


async def test_select_chooses_by_label_and_is_announced(visit: Visit) -> None:
    page = "<select aria-label=Fruit onchange='document.title=this.value'><option value=a>Apple<option value=p>Pear</select>"
    async with visit(page) as (env, seen):
        after = await look(env, f'select [{find(seen, "Fruit").id}] "pear"')
        assert (find(after, "Fruit").value, after.title) == ("Pear", "p")


async def test_clicking_an_option_of_a_closed_drop_down_chooses_it(visit: Visit) -> None:
    async with visit("<select aria-label=Fruit><option>Apple<option>Pear</select>") as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Pear').id}]"), "Fruit").value == "Pear"


async def test_an_unknown_option_is_refused_with_the_nearest(visit: Visit) -> None:
    async with visit("<select aria-label=Fruit><option>Apple<option>Pear</select>") as (env, seen):
        with pytest.raises(ActionError, match="did you mean 'Pear'"):
            await do(env, f'select [{find(seen, "Fruit").id}] "Peas"')


async def test_a_pages_focus_handlers_run_before_anything_is_typed(visit: Visit) -> None:
    """Date pickers open on focus. Without the wait, the result depends on the speed of typing."""
    page = """<input aria-label=Day onfocus="setTimeout(() => document.title = `opened at '${value}'`, 100)">"""
    async with visit(page) as (env, seen):
        after = await look(env, f'fill [{find(seen, "Day").id}] "2024-05-20"')
        assert (after.title, find(after, "Day").value) == ("opened at ''", "2024-05-20")


@pytest.mark.parametrize("around", ["{}", "<iframe srcdoc='{}'></iframe>", "<div><template shadowrootmode=open>{}</template></div>"])
async def test_each_text_typed_at_a_list_is_a_new_word_without_a_pause(visit: Visit, around: str) -> None:
    page = around.format("<select autofocus aria-label=Fruit><option>Apple<option>Pear<option>Grape<option>Peach</select>")
    async with visit(page) as (env, seen):
        await do(env, f'select [{find(seen, "Fruit").id}] "Apple"')
        for action, chosen in (('type "Peach"', "Peach"), ('type "Gra"', "Grape"), ('press "p"', "Peach"), ('press "a"', "Apple")):
            assert find(await look(env, action), "Fruit").value == chosen


@pytest.mark.parametrize(
    "page",
    [
        "<input aria-label=Name>{}",
        "<iframe srcdoc=\"<input autofocus onfocus='blur()'>{}\"></iframe>",
        "<button id=b autofocus>Go</button><script>b.focus(); b.remove()</script>{}",
    ],
)
async def test_typing_without_a_focus_is_refused_and_no_key_is_sent(visit: Visit, page: str) -> None:
    async with visit(page.format("<script>onkeydown = e => parent.document.title += e.key</script>")) as (env, _):
        with pytest.raises(ActionError, match=r"nothing has the focus to type in: write fill \[id\], or click a field first"):
            await do(env, 'type "e"')
        assert (await look(env, 'press "e"')).title == "Teste"


@pytest.mark.parametrize(
    "page",
    [
        "<body contenteditable>",
        "<script>document.designMode = 'on'</script>",
        "<div contenteditable autofocus></div>",
        "<div tabindex=0 autofocus onkeydown='textContent += event.key'></div>",
        "<div id=host></div><script>host.attachShadow({mode: 'closed'}).innerHTML = '<input>';</script>",
    ],
)
async def test_typing_reaches_whatever_has_the_focus(visit: Visit, page: str) -> None:
    async with visit(page) as (env, _):
        if "autofocus" not in page:
            await do(env, "click_at 20 20")
        assert "abc" in (await look(env, 'type "abc"')).text


async def test_a_page_hears_nothing_of_a_new_word_but_its_keys(visit: Visit) -> None:
    page = """<select autofocus aria-label=Fruit><option>Apple<option>Pear</select><output></output><script>
    for (const each of ['blur', 'focusout', 'focus', 'focusin', 'change'])
      document.addEventListener(each, e => document.querySelector('output').append(e.type + ' '), true)
    </script>"""
    async with visit(page) as (env, _):
        await look(env, 'type "Pea"')
        assert 'status "focus focusin change change"' in (await look(env, 'type "App"')).text  # it got the focus once, at the start


async def test_drag_moves_by_pointer_events(visit: Visit) -> None:
    page = """<style>div { height: 50px }</style><div role=group aria-label=From></div><div role=group aria-label=To></div><script>
    let from; onmousedown = e => from = e.target.ariaLabel; onmouseup = e => document.title = from + ' to ' + e.target.ariaLabel
    </script>"""
    async with visit(page) as (env, seen):
        assert (await look(env, f"drag [{find(seen, 'From').id}] to [{find(seen, 'To').id}]")).title == "From to To"


async def test_a_drag_that_changes_positions_only_is_reported(visit: Visit) -> None:
    page = """<style>div { position: absolute; width: 40px; height: 40px }</style><script>let taken
    onmousedown = e => taken = e.target.closest('div'); onmouseup = () => taken = null
    onmousemove = e => { if (taken) { taken.style.left = e.clientX - 20 + 'px'; taken.style.top = e.clientY - 20 + 'px' } }</script>
    <div role=group aria-label=Piece style="left: 20px; top: 30px"></div>
    <div role=group aria-label=Field style="left: 200px; top: 130px"></div>"""
    async with visit(page) as (env, seen):
        piece, field = find(seen, "Piece").id, find(seen, "Field").id
        clicked, drawn = await do(env, f"click [{piece}]"), await do(env, f"drag [{piece}] to [{field}]")
        assert clicked.info == {} and drawn.info == {"moved": f"[{piece}] moved by 180,100"}
        assert drawn.observation and drawn.observation.fingerprint == seen.fingerprint


async def test_a_page_that_scrolls_under_a_drag_has_moved_nothing(visit: Visit) -> None:
    page = """<style>div { height: 90px }</style><div role=group aria-label=From></div><div role=group aria-label=To></div>
    <p style="height: 2000px"></p><script>onmouseup = () => scrollBy(0, 40)</script>"""
    async with visit(page) as (env, seen):
        assert (await do(env, f"drag [{find(seen, 'From').id}] to [{find(seen, 'To').id}]")).info == {}


async def test_drag_moves_what_is_draggable(visit: Visit) -> None:
    page = """<div draggable=true role=group aria-label=From ondragstart="event.dataTransfer.setData('text', 'it')">From</div>
    <div role=group aria-label=To ondragover="event.preventDefault()"
    ondrop="document.title = event.dataTransfer.getData('text')">To</div>"""
    async with visit(page) as (env, seen):
        assert (await look(env, f"drag [{find(seen, 'From').id}] to [{find(seen, 'To').id}]")).title == "it"


async def test_click_at_hits_the_point(visit: Visit) -> None:
    async with visit("<script>onclick = e => document.title = e.clientX + ' ' + e.clientY</script>") as (env, _):
        assert (await look(env, "click_at 30 40")).title == "30 40"
        with pytest.raises(ActionError, match="outside the viewport of 600 by 400"):
            await do(env, "click_at 600 10")


async def test_scroll_moves_the_view_and_says_when_it_ends(visit: Visit) -> None:
    async with visit("<p>Top<div style='height:500px'></div><p>Bottom") as (env, seen):
        after = await look(env, "scroll down")
        assert not find(after, "Top").visible
        assert find(after, "Bottom").visible
        assert after.fingerprint != seen.fingerprint
        with pytest.raises(ActionError, match="nothing to scroll down"):
            await do(env, "scroll down")
        assert (await look(env, "scroll up")).fingerprint == seen.fingerprint


async def test_scroll_moves_an_inner_list(visit: Visit) -> None:
    async with visit("<div style='height:380px;overflow:auto'><p>Top<p style='margin-top:500px'>Bottom</div>") as (env, seen):
        assert not find(seen, "Bottom").visible
        assert find(await look(env, "scroll down"), "Bottom").visible


async def test_goto_and_go_back_navigate(visit: Visit, httpserver) -> None:  # type: ignore[no-untyped-def]
    httpserver.expect_request("/two").respond_with_data("<p>Second", content_type="text/html")
    async with visit("<p>First") as (env, seen):
        with pytest.raises(ActionError, match="no page to go back to"):
            await do(env, "go_back")
        assert find(await look(env, 'goto "/two"'), "Second")
        assert (await look(env, "go_back")).fingerprint == seen.fingerprint


async def test_wait_sees_a_later_change(visit: Visit) -> None:
    async with visit("<p id=out>early<script>onclick = () => setTimeout(() => out.textContent = 'late', 700)</script>") as (env, _):
        assert "early" in (await look(env, "click_at 5 5")).text
        assert "late" in (await look(env, "wait")).text


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<button disabled>Go</button>", "is disabled"),
        ("<button>Go</button><div style='position:fixed;inset:0'>Cookie banner</div>", 'is covered by <div> "Cookie banner"'),
        ("<button>Stop</button>", 'was button "Go": it is gone'),
    ],
)
async def test_a_click_that_cannot_reach_is_refused(visit: Visit, page: str, words: str) -> None:
    async with visit("<button>Go</button>") as (env, seen):
        await env.page.evaluate("html => document.body.innerHTML = html", page)
        if "gone" not in words:
            seen = await look(env, "wait")
        with pytest.raises(ActionError, match=words):
            await do(env, f"click [{find(seen, 'Go').id}]")


@pytest.mark.parametrize(("page", "words"), [("<input readonly aria-label=it>", "read-only"), ("<button>it</button>", "not a field")])
async def test_fill_is_refused_where_nothing_can_be_typed(visit: Visit, page: str, words: str) -> None:
    async with visit(page) as (env, seen):
        with pytest.raises(ActionError, match=words):
            await do(env, f'fill [{find(seen, "it").id}] "x"')


async def test_an_id_that_was_never_given_is_refused(visit: Visit) -> None:
    async with visit("<button>Go</button>") as (env, _):
        with pytest.raises(ActionError, match=r"there is no element \[99\]"):
            await do(env, "click [99]")


async def test_an_element_in_a_frame_is_clicked(visit: Visit) -> None:
    page = """<div style="height:100px"></div><iframe srcdoc="<button onclick=&quot;this.textContent='done'&quot;>Go</button>"></iframe>"""
    async with visit(page) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "done")


async def test_a_checkbox_behind_its_label_is_ticked(visit: Visit) -> None:
    page = "<label><input type=checkbox style='opacity:0;position:absolute;z-index:-1'><b>Agree</b></label>"
    async with visit(page) as (env, seen):
        assert "checked" in find(await look(env, f"click [{find(seen, 'Agree', 'checkbox').id}]"), "Agree", "checkbox").states


BANNER = "<div style='position:fixed;inset:0;background:#eee'>Cookie banner</div>"
FAR = "<div style='height:3000px'>above</div><button>Go</button>"
INNER = f"<div style='height:150px;overflow:auto'>{FAR}</div>"


@pytest.mark.parametrize(
    "page", [FAR, f"<div style='height:900px'></div>{INNER}", f'<div style="height:900px"></div><iframe srcdoc="{FAR}"></iframe>']
)
async def test_the_view_stays_where_what_is_out_of_it_turns_out_to_be_covered(visit: Visit, page: str) -> None:
    async with visit(page + BANNER) as (env, seen):
        with pytest.raises(ActionError, match='is covered by <div> "Cookie banner"'):
            await do(env, f"click [{find(seen, 'Go').id}]")
        assert await env.page.evaluate("[...document.querySelectorAll('*')].every(each => !each.scrollTop)")
        assert await look(env, "wait") == seen


async def test_the_view_stays_where_two_ends_of_a_drag_are_too_far_apart(visit: Visit) -> None:
    async with visit("<div style='height:900px'></div><button>From</button><div style='height:900px'></div><button>To</button>") as (
        env,
        seen,
    ):
        with pytest.raises(ActionError, match="are not in view together"):
            await do(env, f"drag [{find(seen, 'From').id}] to [{find(seen, 'To').id}]")
        assert await look(env, "wait") == seen


async def test_a_key_that_no_keyboard_has_is_refused_and_none_stays_down(visit: Visit) -> None:
    async with visit("<script>let n = 0; onkeydown = e => document.title = ++n + e.key + e.ctrlKey</script>") as (env, _):
        with pytest.raises(ActionError, match=r"Control\+ä is on no keyboard"):
            await do(env, 'press "Ctrl+ä"')
        assert (await look(env, 'press "x"')).title == "1xfalse"


async def test_a_page_that_cannot_be_shown_is_what_the_step_led_to(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/round").respond_with_response(Response(status=302, headers={"Location": "/round"}))
    async with visit("<p>Here") as (env, seen):
        step = await do(env, 'goto "/round"')
        assert step.observation is not None and step.observation.fingerprint != seen.fingerprint
        assert "TOO_MANY_REDIRECTS" in step.info["refused"]
        assert (await look(env, "go_back")).fingerprint == seen.fingerprint


@pytest.mark.parametrize(
    ("way", "address", "why"),
    [
        ("<a href={}>Go</a>", "/round", "TOO_MANY_REDIRECTS"),
        ("<form action={}><button>Go</button></form>", "/round", "TOO_MANY_REDIRECTS"),
        ("<button onclick=\"location = '{}'\">Go</button>", "http://localhost:1234/", "outside the task's origins"),
        ("<a href={}>Go</a>", "/away", "cannot go to http://localhost:1234/: http://localhost:1234 is outside"),
        (
            "<a target=_blank href={}>Go</a>",
            "http://localhost:1234/",
            "cannot go to http://localhost:1234/: http://localhost:1234 is outside",
        ),
        ("<a href={}>Go</a>", "/broken", "/broken is empty: status 503"),
        ("<form method=post action={}><button>Go</button></form>", "/saved", "/saved: status 204 without a page"),
    ],
)
async def test_a_click_that_leads_to_no_page_says_so(visit: Visit, httpserver: HTTPServer, way: str, address: str, why: str) -> None:
    for path, status, to in (
        ("/round", 302, "/round"),
        ("/away", 307, "http://localhost:1234/"),
        ("/broken", 503, ""),
        ("/saved", 204, ""),
    ):
        httpserver.expect_request(path).respond_with_response(Response(status=status, headers={"Location": to} if to else {}))
    async with visit(f"<p>Here{way.format(address)}") as (env, seen):
        assert why in (await do(env, f"click [{find(seen, 'Go').id}]")).info["refused"]


@pytest.mark.parametrize("way", ['goto "/saved"', "click [{}]"])
async def test_a_navigation_that_leaves_the_page_as_it_is_is_refused(visit: Visit, httpserver: HTTPServer, way: str) -> None:
    httpserver.expect_request("/saved").respond_with_response(Response(status=205))
    async with visit("<p>Here<button onfocus='blur()' onclick=\"location = '/saved'\">Go</button>") as (env, seen):
        with pytest.raises(ActionError, match="/saved: status 205 without a page"):
            await do(env, way.format(find(seen, "Go").id))


async def test_a_click_that_goes_elsewhere_after_a_failure_or_gets_a_file_is_no_failure(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/file").respond_with_data("x", headers={"Content-Disposition": "attachment; filename=a.txt"})
    httpserver.expect_request("/two").respond_with_data("<h1>Second</h1>", content_type="text/html")
    page = (
        "<a href=/file>File</a><button onclick=\"location = 'http://localhost:1234/'; setTimeout(() => location = '/two', 50)\">Go</button>"
    )
    async with visit(page) as (env, seen):
        assert not (await do(env, f"click [{find(seen, 'File').id}]")).info
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert not step.info and find(step.observation, "Second")


async def test_a_relative_address_on_an_error_page_starts_from_what_was_asked_for(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/deep/round").respond_with_response(Response(status=302, headers={"Location": "/deep/round"}))
    httpserver.expect_request("/deep/two").respond_with_data("<h1>Second</h1>", content_type="text/html")
    async with visit("<p>Here") as (env, _):
        assert "TOO_MANY_REDIRECTS" in (await do(env, 'goto "/deep/round"')).info["refused"]
        assert find(await look(env, 'goto "/deep/two"'), "Second")
        await do(env, "new_tab")
        with pytest.raises(ActionError, match="has no address that it starts from: give a whole one"):
            await do(env, 'goto "/deep/two"')


GONE = "http://localhost:1234"
WAYS = {
    "link": "<a href={}>Go</a>",
    "form": "<form action={}><button>Go</button></form>",
    "link in a new tab": "<a target=_blank href={}>Go</a>",
    "popup": "<button onclick=\"window.open('{}')\">Go</button>",
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_of_the_task_that_is_gone_is_a_broken_environment(visit: Visit, task_at: Callable[..., Task], way: str) -> None:
    async with visit(WAYS[way].format(f"{GONE}/")) as (env, _):
        seen = await env.reset(task_at(origins=(GONE,)))
        with pytest.raises(EnvironmentFailure, match="CONNECTION_REFUSED"):
            await do(env, f"click [{find(seen, 'Go').id}]")
        await env.reset(task_at(origins=(GONE,)))
        with pytest.raises(EnvironmentFailure, match="CONNECTION_REFUSED"):
            await do(env, f'goto "{GONE}/"')


@pytest.mark.parametrize("way", WAYS)
async def test_a_dead_link_to_another_allowed_site_is_a_fact_about_the_page(visit: Visit, way: str) -> None:
    async with visit(WAYS[way].format(f"{GONE}/"), config=BrowserConfig(screenshots=False, allow_origins=(GONE,))) as (env, seen):
        try:
            said = (await do(env, f"click [{find(seen, 'Go').id}]")).info["refused"]
        except ActionError as refused:  # a popup that does not come leaves the page as it was
            said = str(refused)
        assert said.replace("/?:", "/:") == f"cannot go to {GONE}/: CONNECTION_REFUSED"
        if way in ("popup", "link in a new tab"):
            assert find(await look(env, "wait"), "Go") and not env.observation.tabs


async def test_an_allowed_site_that_is_gone_is_told_by_goto(visit: Visit) -> None:
    async with visit("<p>Here", config=BrowserConfig(screenshots=False, allow_origins=(GONE,))) as (env, _):
        assert (await do(env, f'goto "{GONE}/"')).info["refused"] == f"cannot go to {GONE}/: CONNECTION_REFUSED"


async def test_a_choice_that_takes_its_own_frame_away_is_carried_out(visit: Visit) -> None:
    inner = "<select aria-label=Fruit onchange='parent.document.title = value; frameElement.remove()'><option>Apple<option>Pear</select>"
    async with visit(f'<iframe srcdoc="{inner}"></iframe>') as (env, seen):
        step = await do(env, f'select [{find(seen, "Fruit").id}] "Pear"')
        assert step.observation is not None and step.observation.title == "Pear" and "Fruit" not in step.observation.text


@pytest.mark.parametrize(
    ("page", "clock", "writes"),
    [
        ("<form method=post action=/order><button>Send</button></form>", 0, True),
        ("<button onclick=\"fetch('/order', {method: 'POST'})\">Send</button>", 0, True),
        ("<button onclick=\"this.textContent = 'Sent'\">Send</button>", 0, False),
        ("<button onclick=\"setTimeout(() => this.textContent = 'Sent', 500)\">Send</button>", 100, False),
    ],
)
async def test_an_upload_to_what_asks_for_no_file_is_a_step_where_the_click_did_something(
    visit: Visit, httpserver: HTTPServer, task_at: Callable[..., Task], tmp_path: Path, page: str, clock: int, writes: bool
) -> None:
    (tmp_path / "a.txt").write_text("a")
    httpserver.expect_request("/order").respond_with_data("<p>Thanks", content_type="text/html")
    async with visit(page, config=BrowserConfig(screenshots=False, clock=clock)) as (env, _):
        seen = await env.reset(task_at(files=(str(tmp_path / "a.txt"),)))
        step = await do(env, f'upload [{find(seen, "Send").id}] "a.txt"')
        assert "asks for no file" in step.info["refused"] and step.observation is not None
        assert step.effects == (
            (SideEffect(kind="request", method="POST", url=f"{seen.url}order", status=200, reach="outside"),) if writes else ()
        )


@pytest.mark.parametrize("picker", ["showOpenFilePicker", "showSaveFilePicker", "showDirectoryPicker"])
async def test_an_upload_to_a_picker_of_the_browser_is_refused_in_words_and_the_page_goes_on(
    visit: Visit, httpserver: HTTPServer, task_at: Callable[..., Task], tmp_path: Path, picker: str
) -> None:
    (tmp_path / "a.txt").write_text("a")
    page = f"<button onclick=\"{picker}().catch(() => document.body.dataset.said = 'cancelled')\">Open</button>"
    async with visit(page) as (env, _):
        seen = await env.reset(task_at(files=(str(tmp_path / "a.txt"),)))
        with pytest.raises(ActionError, match=r"\[1\] opens a file picker of the browser itself"):
            await do(env, f'upload [{find(seen, "Open").id}] "a.txt"')
        await look(env, "wait")
        assert await env.page.evaluate("document.body.dataset.said") == "cancelled"
