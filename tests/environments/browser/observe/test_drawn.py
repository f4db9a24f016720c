"""What is drawn is in the tree, whatever attributes, labels or style sheets do to it."""

from __future__ import annotations

import pytest

from tests.conftest import Visit
from tests.environments.browser.pages import find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

STARS = "".join(f"<input type=radio name=stars id=r{i} value={i}><label for=r{i}></label>" for i in range(1, 4))
RADIOS = "<style>input{display:none} label::before{content:'o'}</style>"
SWITCH = "<label><input type=checkbox role=switch style='display:none'><span style='display:inline-block;width:30px;height:15px'></span>"


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("<div aria-hidden=true><p>Sum: 12 EUR</p></div>", ['StaticText "Sum: 12 EUR"']),
        (
            "<main aria-hidden=true><h2>Cart</h2><select><option>1<option selected>2</select><textarea>Hi</textarea></main>",
            ['heading "Cart"', 'combobox value="2"', 'textbox value="Hi"'],
        ),
        ("<div aria-hidden=true><label><input type=checkbox checked disabled>Gift</label></div>", ['checkbox "Gift" checked disabled']),
        ("<div inert><p>Closed</p><button>Pay</button></div>", ['StaticText "Closed"', 'button "Pay" disabled']),
        (
            "<style>p::before{content:'Step ' counter(none)} i::after{content:'9 left'}</style><p></p><i>Now</i>",
            ['"Step 0"', '"Now"', '"9 left"'],
        ),
        ("<button aria-label=Inbox>12</button>", ['button "Inbox"', 'StaticText "12"']),
        ("<div role=img aria-label='Rated of 50'>5</div>", ['image "Rated of 50"', 'StaticText "5"']),
        ("<section aria-label='Seats 20'><b>Row</b><b>20</b></section>", ['"Row"', 'StaticText "20"']),
    ],
)
async def test_what_is_drawn_is_listed(visit: Visit, page: str, lines: list[str]) -> None:
    async with visit(page) as (_, seen):
        assert [line for line in lines if line not in seen.text] == []


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<button>Save<i aria-hidden=true>*</i></button>", '[1] button "Save"'),
        (
            "<p>Price 12.99 EUR<b aria-hidden=true><i>12</i><i>99</i></b>",
            '[1] StaticText "Price 12.99 EUR"\n[2] StaticText "12"\n[3] StaticText "99"',
        ),
        ("<p><b>12.99</b><b aria-hidden=true><i>12</i><i>99</i></b>", '[1] StaticText "12.99"'),
        (
            "<div aria-hidden=true style='position:fixed;left:-300px;width:200px'><p>Menu</div><p>Page",
            '[1] StaticText "Page"',
        ),
        ("<div aria-hidden=true style='opacity:0'><p>Tip</div><p>Page", '[1] StaticText "Page"'),
        ("<style>p::after{content:'\\203A'} p::before{content:'Tip';opacity:0}</style><p>Page", '[1] StaticText "Page"'),
        (
            "<main aria-hidden=true><button>Pay</button></main><div role=dialog aria-modal=true aria-label=Ask>Sure?</div>",
            '[1] dialog "Ask" modal\n  [2] StaticText "Sure?"',
        ),
        ("<a href=/>Read <b>more</b></a>", '[1] link "Read more"'),
        ("<a href=/ aria-label='Read more about cats'>Read more</a>", '[1] link "Read more about cats"'),
    ],
)
async def test_what_is_not_drawn_or_only_repeats_is_left_out(visit: Visit, page: str, text: str) -> None:
    async with visit(page) as (_, seen):
        assert seen.text == text


@pytest.mark.parametrize(
    ("page", "name", "role"),
    [
        (f"{RADIOS}<input type=radio name=s id=a><label for=a>Small</label>", "Small", "radio"),
        (f"<style>input{{display:none}} label{{display:inline-block;width:20px;height:20px}}</style>{STARS}", "2", "radio"),
        ("<label><input type=checkbox style='visibility:hidden'><span><b>Gift</b></span></label>", "Gift", "checkbox"),
        ("<input type=radio id=w style='position:absolute;left:-9999px'><label for=w>Weekly</label>", "Weekly", "radio"),
        (SWITCH, "", "switch"),
        ("<label title=Night><input type=checkbox hidden><img alt='' width=20 height=20></label>", "Night", "checkbox"),
    ],
)
async def test_a_hidden_input_is_an_element_with_its_state_where_its_label_is(visit: Visit, page: str, name: str, role: str) -> None:
    async with visit(page) as (environment, seen):
        before = find(seen, name, role)
        assert before.visible and "checked" not in before.states
        after = await look(environment, f"click [{before.id}]")
        assert "checked" in find(after, name, role).states
        assert after.fingerprint != seen.fingerprint


async def test_a_label_of_a_hidden_input_is_not_said_twice(visit: Visit) -> None:
    async with visit("<style>input{display:none}</style><label><input type=radio><span>Small</span></label>") as (_, seen):
        assert seen.text == '[1] radio "Small"'


CLIPPED = "<div style='height:0;overflow:hidden{more}'>{inside}</div><p>Page"
LAYER = "<div style='position:{position};left:20px;top:50px'><button>OK</button></div>"


@pytest.mark.parametrize(
    ("page", "visible"),
    [
        (CLIPPED.format(more="", inside=LAYER.format(position="fixed")), True),
        (CLIPPED.format(more="", inside=LAYER.format(position="absolute")), True),
        (CLIPPED.format(more=";position:relative", inside=LAYER.format(position="absolute")), False),
        (CLIPPED.format(more=";transform:scale(1)", inside=LAYER.format(position="fixed")), False),
        (CLIPPED.format(more="", inside=LAYER.format(position="relative")), False),
        (
            CLIPPED.format(
                more=";transform:scale(1)", inside="<div id=d popover><button>OK</button></div><script>d.showPopover()</script>"
            ),
            True,
        ),
        (CLIPPED.format(more="", inside="<dialog id=d><button>OK</button></dialog><script>d.showModal()</script>"), True),
    ],
)
async def test_a_layer_is_in_view_where_what_clips_its_parent_does_not_clip_it(visit: Visit, page: str, visible: bool) -> None:
    async with visit(page) as (_, seen):
        assert find(seen, "OK", "button").visible is visible
