"""What is observed of a page."""

import asyncio
import sys
from collections.abc import Callable
from types import FrameType

import msgspec
import pytest

from exact.environments.browser import BrowserEnvironment, PageSetup
from exact.environments.browser.observe import capture, describe
from exact.errors import ActionError
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_elements_have_role_name_value_states_box_and_nesting(visit: Visit) -> None:
    page = "<ul><li>One<li><label>Name <input required value=Ann></label></ul><input type=checkbox checked aria-label=Agree>"
    async with visit(page) as (_, seen):
        assert seen.text == (
            '[1] list\n  [2] listitem "One"\n  [3] listitem\n    [4] textbox "Name" value="Ann" required\n[5] checkbox "Agree" checked'
        )
        assert seen.title == "Test"
        box = find(seen, "Agree").box
        assert box is not None and 5 < box.width < 30


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("<textarea>a:\n  - b \n</textarea>", 'textbox value="a:\\n  - b \\n"'),
        ("<input value='a  b '>", 'textbox value="a  b "'),
        ("<div contenteditable><p>one</p><p>two<br>three</p></div>", 'textbox value="one\\n\\ntwo\\nthree"'),
        ("<select><option selected>a  b</select>", 'combobox value="a b" collapsed'),
        ("<input type=password value='a  b '>", 'textbox value="•••••"'),
    ],
)
async def test_a_text_field_is_shown_with_its_white_space(visit: Visit, page: str, line: str) -> None:
    async with visit(page) as (_, seen):
        assert seen.text.splitlines()[0] == f"[1] {line}"


async def test_the_text_of_a_button_is_not_repeated(visit: Visit) -> None:
    async with visit("<button><b>Send</b> now</button>") as (_, seen):
        assert seen.text == '[1] button "Send now"'


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("<div onclick='0'>Tile</div>", 'generic "Tile"'),
        ("<span id=s>Tile</span><script>s.addEventListener('click', () => 0)</script>", 'generic "Tile"'),
        ("<div style='cursor:pointer'>Tile</div>", 'generic "Tile"'),
        ("<div onclick='0' title=Tile style='width:9px;height:9px'></div>", 'generic "Tile"'),
        ("<div onclick='0' style='width:9px;height:9px;background:red'></div>", 'generic "red"'),
        ("<div onclick='0' class='tile selected'>Tile</div>", 'generic "Tile" selected'),
        ("<svg><circle r=9 cx=20 cy=20 fill=blue onclick='0'/></svg>", 'graphics-symbol "blue circle"'),
        ("<svg><polygon points='0,0 9,0 9,9' fill='#f00'/></svg>", 'graphics-symbol "red triangle"'),
        ("<svg><text y=20 fill='#00f'>7</text></svg>", 'graphics-symbol "blue text 7"'),
        ("<svg><text y=20>7</text></svg>", 'StaticText "7"'),
        ("<div contenteditable>Note</div>", 'textbox value="Note"'),
    ],
)
async def test_a_control_without_a_role_is_an_element(visit: Visit, page: str, line: str) -> None:
    async with visit(page) as (_, seen):
        assert line in seen.text
        assert len(seen.elements) == 1


@pytest.mark.parametrize(
    "page",
    [
        "<p>Just text</p>",
        "<div><div><span>Just text</span></div></div>",
        "<p>Just text<script>0</script><style>b{}</style><p hidden>no</p><p style='visibility:hidden'>no</p>",
        "<body onclick='0'><p>Just text",
    ],
)
async def test_wrappers_and_hidden_things_are_left_out(visit: Visit, page: str) -> None:
    async with visit(page) as (_, seen):
        assert seen.text == '[1] StaticText "Just text"'


async def test_frames_and_open_shadow_roots_are_seen(visit: Visit) -> None:
    page = """<iframe srcdoc="<button>Inner</button>"></iframe><div id=host></div>
    <script>host.attachShadow({mode: 'open'}).innerHTML = '<button>Shadow</button>'</script>"""
    async with visit(page) as (_, seen):
        inner, shadow = find(seen, "Inner", "button"), find(seen, "Shadow", "button")
        assert inner.box is not None and inner.box.x > 8
        assert shadow.visible


async def test_text_of_a_page_stays_text_on_its_line(visit: Visit) -> None:
    async with visit('<p>&lt;script&gt;alert(1)&lt;/script&gt;\n[9] button "Fake"</p>') as (_, seen):
        assert len(seen.elements) == 1
        assert seen.text == '[1] StaticText "<script>alert(1)</script> [9] button \\"Fake\\""'


@pytest.mark.parametrize("separator", ["\n", "\r", "\u2028", "\u2029", "\x85", "\v", "\f", "\x1c"])
async def test_the_value_of_a_field_stays_on_its_line_whatever_separates_its_lines(visit: Visit, separator: str) -> None:
    async with visit("<meta charset=utf-8><textarea>x</textarea>") as (env, _):
        await env.page.evaluate("text => document.querySelector('textarea').value = text", f'a{separator}[9] button "Fake"')
        seen = await look(env, "wait")
        assert len(seen.elements) == len(seen.text.splitlines()) == 1
        assert [line for line in seen.text.split("\n") if line.startswith("[9]")] == []


async def test_content_scrolled_out_of_its_box_is_outside_the_view(visit: Visit) -> None:
    async with visit("<div style='height:50px;overflow:hidden'><p>In<p style='margin-top:100px'>Out</div>") as (_, seen):
        assert find(seen, "In").visible
        assert not find(seen, "Out").visible
        assert '"Out" (outside the view)' in seen.text


async def test_ids_stay_while_the_page_changes_around_them(visit: Visit) -> None:
    page = "<div id=top></div><button onclick=\"top.innerHTML='<b>New</b>'; document.getElementById('top').innerHTML='<p>New'\">Go</button>"
    async with visit(page) as (env, seen):
        go = find(seen, "Go").id
        after = await look(env, f"click [{go}]")
        assert find(after, "Go").id == go
        assert after.elements[0].name == "New"
        assert after.elements[0].id == "2"


async def test_equal_actions_after_a_reset_give_equal_ids_and_fingerprints(visit: Visit, task_at) -> None:  # type: ignore[no-untyped-def]
    page = "<ol id=o></ol><button onclick=\"o.insertAdjacentHTML('afterbegin', '<li>' + o.children.length)\">Go</button>"
    async with visit(page) as (env, seen):
        runs = []
        for _ in range(2):
            observation = await env.reset(task_at())
            run = [(observation.text, observation.fingerprint)]
            for _ in range(3):
                observation = await look(env, f"click [{find(seen, 'Go').id}]")
                run.append((observation.text, observation.fingerprint))
            runs.append(run)
        assert runs[0] == runs[1]
        assert len(set(runs[0])) == 4


async def test_a_click_that_does_nothing_does_not_change_the_fingerprint(visit: Visit) -> None:
    page = "<button onclick=\"this.setAttribute('data-tampered', 'x')\">Idle</button><input aria-label=Name>"
    async with visit(page) as (env, seen):
        assert (await look(env, f"click [{find(seen, 'Idle').id}]")).fingerprint == seen.fingerprint
        assert (await look(env, f"click [{find(seen, 'Name').id}]")).fingerprint != seen.fingerprint


HIDE = PageSetup(hidden=("#score", ".cover"))


async def test_hidden_content_is_neither_in_the_text_nor_reachable(visit: Visit) -> None:
    page = """<p id=score>Secret <b style="visibility:visible">1.00</b></p>
    <div class=cover style="position:fixed;inset:0" onclick="document.title='hit'">START</div>
    <button onclick="this.textContent='done'">Go</button>"""
    async with visit(page, setup=HIDE) as (env, seen):
        assert seen.text == '[1] button "Go"'
        after = await look(env, "click [1]")
        assert (after.text, after.title) == ('[1] button "done" focused', "Test")


async def test_changes_of_hidden_content_change_no_observation(visit: Visit) -> None:
    page = "<p id=score>0</p><p>Seen</p><script>setInterval(() => score.textContent++, 5)</script>"
    async with visit(page, setup=HIDE) as (env, seen):
        step = await do(env, 'press "a"')
        assert step.info == {}
        assert step.observation is not None and step.observation.fingerprint == seen.fingerprint


async def test_half_a_surrogate_pair_in_a_page_can_be_written_down(visit: Visit) -> None:
    page = "<button></button><input><script>document.querySelector('button').textContent = 'a\\ud83d'; document.title = '\\udc00'</script>"
    async with visit(page) as (_, seen):
        assert "a\ufffd" in seen.text
        msgspec.json.encode(seen)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<a href=/x title=revert><span>&#xf0e2;</span></a>", '[1] link "revert"'),
        ("<button title='Delete page'>&#xf1f8;</button>", '[1] button "Delete page"'),
        ("<style>i::before{content:'\\f013'}</style><a href=/x title=Settings><i></i></a>", '[1] link "Settings"'),
        ("<a href=/x aria-label=Print title=Paper>&#xf02f;</a>", '[1] link "Print"'),
        ("<button title='All of it'>&#xf1f8; Delete</button>", '[1] button "\uf1f8 Delete"'),
        ("<button>&#xf1f8;</button>", '[1] button "\uf1f8"'),
    ],
)
async def test_an_icon_that_says_nothing_gives_way_to_the_title(visit: Visit, page: str, text: str) -> None:
    async with visit(page) as (_, seen):
        assert seen.text == text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<nav><a href=#1>1</a><a href=#2 aria-current=page>2</a></nav>", '[1] navigation\n  [2] link "1"\n  [3] link "2" current'),
        ("<ol><li aria-current=false>Cart<li aria-current=step>Pay</ol>", '[1] list\n  [2] listitem "Cart"\n  [3] listitem "Pay" current'),
        ("<div>Cart</div><div aria-current=true>Pay</div>", '[1] StaticText "Cart"\n[2] generic "Pay" current'),
        ("<a href=#1><span aria-current=date>9</span></a>", '[1] link "9" current'),
        ("<table><tr><th aria-sort=descending>Price<th aria-sort=none>Name</table>", '"Price" descending\n'),
        ("<s>Old</s> <i>New</i> <del>Gone</del>", '[1] StaticText "Old" struck\n[2] StaticText "New"\n[3] StaticText "Gone" struck'),
        ("<ul><li style='text-decoration:line-through'><a href=#1>Milk</a></ul>", '[1] list\n  [2] listitem\n    [3] link "Milk" struck'),
        ("<ul><li style='text-decoration:underline line-through red'>Milk</ul>", '[1] list\n  [2] listitem "Milk" struck'),
        ("<a href=#1><s>$10</s> $8</a>", '[1] link "$10 $8"\n  [2] StaticText "$10" struck'),
        ("<ul><li><del>$10</del> $8</ul>", '[1] list\n  [2] listitem\n    [3] StaticText "$10" struck\n    [4] StaticText "$8"'),
        ("<s>Milk <button>Undo</button></s>", '[1] StaticText "Milk" struck\n[2] button "Undo"'),
        ("<label><input type=checkbox checked> <s>Milk</s></label>", '[1] checkbox "Milk" checked\n[2] StaticText "Milk" struck'),
        ("<input value=Milk style='text-decoration:line-through'>", '[1] textbox value="Milk" struck'),
    ],
)
async def test_current_sorted_and_struck_content_is_told(visit: Visit, page: str, text: str) -> None:
    async with visit(page) as (_, seen):
        assert text in seen.text


@pytest.mark.parametrize(
    "change",
    [
        "a.ariaCurrent = 'page'",
        "a.style.textDecoration = 'line-through'",
        "c.ariaSort = 'ascending'",
        "b.outerHTML = '<s>Milk</s>'",
        "b.parentNode.style.textDecorationLine = 'line-through'",
    ],
)
async def test_content_that_becomes_current_sorted_or_struck_is_in_another_state(visit: Visit, change: str) -> None:
    page = f'<button onclick="{change}">Go</button><p><a id=a href=#1>1</a></p><p><i id=b>Milk</i></p><table><tr><th id=c>Price</table>'
    async with visit(page) as (environment, seen):
        after = await look(environment, "click [1]")
        assert after.text != seen.text and after.fingerprint != seen.fingerprint


LATER = "content-visibility:auto;contain-intrinsic-size:auto 120px"
POST = """<{tag} style='{style}'><div style='{inner}'><h2>Post {i}</h2>Text {i} <input aria-label='Reply {i}'>
<a href=#{i} onclick='document.title = {i}'>Open {i}</a></div></{tag}>"""


@pytest.mark.parametrize(("tag", "inner"), [("article", ""), ("li", ""), ("div", "content-visibility:auto")])
async def test_content_that_is_not_rendered_yet_is_in_the_tree_and_can_be_clicked(visit: Visit, tag: str, inner: str) -> None:
    posts = "".join(POST.format(tag=tag, i=i, style=LATER, inner=inner) for i in range(40))
    parts = ("heading", "Post"), ("StaticText", "Text"), ("textbox", "Reply"), ("link", "Open")
    async with visit(posts) as (environment, seen):
        found = [(each.role, each.name) for each in seen.elements if each.role not in ("article", "listitem")]
        assert found == [(role, f"{name} {i}") for i in range(40) for role, name in parts]
        filled = await look(environment, f'fill [{find(seen, "Reply 37").id}] "Yes"')
        assert find(filled, "Reply 37").value == "Yes" and find(filled, "Open 20").id == find(seen, "Open 20").id
        assert (await look(environment, f"click [{find(filled, 'Open 20').id}]")).title == "20"


ROOTS = {
    "open": "<div id=h></div><script>h.attachShadow({{mode: 'open'}}).innerHTML = `{}`</script>",
    "closed": "<div id=h></div><script>h.attachShadow({{mode: 'closed'}}).innerHTML = `{}`</script>",
    "closed in a closed one": """<div id=h></div><script>const outer = h.attachShadow({{mode: 'closed'}}); outer.innerHTML = '<div></div>'
        outer.firstChild.attachShadow({{mode: 'closed'}}).innerHTML = `{}`</script>""",
    "declared": "<div><template shadowrootmode=open>{}</template></div>",
}


@pytest.mark.parametrize("root", ROOTS)
async def test_content_in_a_shadow_root_that_is_not_rendered_yet_is_in_the_tree_and_can_be_clicked(visit: Visit, root: str) -> None:
    posts = "".join(POST.format(tag="article", i=i, style=LATER, inner="") for i in range(40))
    async with visit(ROOTS[root].format(posts)) as (environment, seen):
        assert [each.name for each in seen.elements if each.role == "link"] == [f"Open {i}" for i in range(40)]
        assert (await look(environment, f"click [{find(seen, 'Open 30').id}]")).title == "30"


async def test_content_that_is_hidden_until_it_is_found_is_not_in_the_tree(visit: Visit) -> None:
    hidden = "<p hidden=until-found>Never</p><div style='content-visibility:hidden'>Never</div><div style='display:none'>Never</div>"
    page = f"<div style='height:3000px'></div><div style='{LATER}'><b aria-hidden=true></b>{hidden}<button>Send</button></div>{hidden}"
    async with visit(page) as (_, seen):
        assert "Send" in seen.text and "Never" not in seen.text


SUGGESTED = """<input list=towns aria-label=From oninput="document.title = value">
<input list=towns aria-label=To onchange="document.title = value">
<datalist id=towns><option value=Paris><option value=PRG label=Prague><option>Rome</datalist>"""


async def test_options_that_a_field_suggests_are_elements_of_it(visit: Visit) -> None:
    async with visit(SUGGESTED) as (environment, seen):
        assert [(each.name, each.depth) for each in seen.elements if each.role == "option"] == [
            ("Paris", 1),
            ("PRG (Prague)", 1),
            ("Rome", 1),
        ]
        first, second = find(seen, "From").id, find(seen, "To").id
        assert find(await look(environment, f"click [{find(seen, 'Rome').id}]"), "From").value == "Rome"
        assert (await look(environment, f'select [{first}] "prague"')).title == "PRG"
        assert find(await look(environment, f'select [{second}] "PRG (Prague)"'), "To").value == "PRG"
        with pytest.raises(ActionError, match="has no option 'Berlin': valid: 'Paris', 'PRG \\(Prague\\)', 'Rome'"):
            await look(environment, f'select [{second}] "Berlin"')


async def test_suggestions_that_a_script_adds_are_another_state(visit: Visit) -> None:
    page = """<input list=l aria-label=City oninput="l.innerHTML = `<option>${value}-on-Sea`"><datalist id=l></datalist>"""
    async with visit(page) as (environment, seen):
        after = await look(environment, f'fill [{find(seen, "City").id}] "Ash"')
        assert find(after, "Ash-on-Sea", "option").visible


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [("Cart", "Cart (empty)", False), ("Inbox", "(3) Inbox", True), ("[12+] Inbox", "Inbox", True), ("Now 12:00:01", "Now 12:00:02", True)],
)
async def test_a_title_tells_states_apart_but_not_by_new_messages_and_clocks(visit: Visit, before: str, after: str, same: bool) -> None:
    page = f"<script>document.title = '{before}'</script><button onclick=\"document.title = '{after}'\">Go</button>"
    async with visit(page) as (environment, seen):
        came = await look(environment, f"click [{find(seen, 'Go').id}]")
        assert (seen.title, came.title) == (before, after) and (came.fingerprint == seen.fingerprint) == same


ROWS = {
    "links": "<li><a href=/{0}>Row {0}</a><button>Open {0}</button>",
    "fields": "<label for=f{0}>Field {0}</label><input id=f{0} list=l{0}><datalist id=l{0}><option>A</datalist>",
    "around": "<label>In {0} <input></label><label>Or {0} <textarea></textarea></label>",
    "lists": "<select aria-label='L{0}'><option>One<option selected>Two {0}</select><input type=checkbox id=c{0}><label for=c{0}>C</label>",
    "tables": "<table><tr><th>Head {0}<td onclick='0'>Cell<td aria-labelledby=n{0}><i id=n{0}>Name</i></table>",
    "shapes": "<svg><circle r=9 cx=20 cy=20 fill=blue onclick='0'/><text y=20>{0}</text></svg><s>Gone {0}</s>",
}


@pytest.mark.parametrize("kind", ROWS)
async def test_a_page_twice_as_long_takes_twice_as_many_steps_to_read(visit: Visit, kind: str) -> None:
    taken = list[int]()
    page, more = ("".join(ROWS[kind].format(row) for row in range(first, first + 60)) for first in (0, 60))
    async with visit(page) as (environment, _):
        for added in ("", more):
            await environment.page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", added)
            taken.append(await steps_of_reading(environment))
    assert taken[1] < 2.2 * taken[0], taken


@pytest.mark.parametrize("part", ["<input>", "<input type=checkbox>", "<b>x</b>", "<s>x</s>"])
async def test_a_page_twice_as_deep_takes_twice_as_many_steps_to_read(visit: Visit, part: str) -> None:
    nest = """([part, depth]) => {
        let at = document.body;
        at.replaceChildren();
        for (; depth; depth--) {
            at.insertAdjacentHTML('beforeend', part);
            at = at.appendChild(document.createElement('div'));
        }
    }"""
    taken = list[int]()
    async with visit("") as (environment, _):
        for depth in (400, 800):
            await environment.page.evaluate(nest, [part, depth])
            taken.append(await steps_of_reading(environment))
    assert taken[1] < 2.2 * taken[0], taken


async def steps_of_reading(environment: BrowserEnvironment) -> int:
    """Return the number of Python's instructions that it takes to read a page."""
    tab, config, steps = environment.episode.tabs.present, environment.episode.tabs.config, 0
    answers = await asyncio.gather(*capture.capture_commands(tab, config))

    def count(frame: FrameType, *_: object) -> Callable[..., object]:
        nonlocal steps
        frame.f_trace_opcodes = True  # the loop of a generator expression is one line
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        seen = capture.build_capture(tab, environment.episode.observer.ids, config, answers)
        describe.elements_text(seen.elements)
        describe.fingerprint(seen.url, seen.elements)
    finally:
        sys.settrace(before)
    return steps
