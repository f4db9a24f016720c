"""The changing pages of bench/clicks.py: each changes on a signal between the observation and the action, and says what was acted on.

A page calls `note(TEXT)` when something is acted on, in its own words at that moment: a row that was written over notes its new name.
`change()` is the signal. What is declared here was declared before the pages were first run:

  meant      the note of the element that the agent saw
  refindable whether exactly one element of the changed page still is that element; otherwise the action has to be refused
  late       whether the change comes while the action is under way: an action that comes before it may still reach what was meant
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SCRIPT = """<!doctype html><meta charset=utf-8><title>Changing</title>
<style>button { height: 30px } li, tr, .row { height: 34px } .slow { transition: transform .4s, height .4s, opacity .4s }</style>
<script>var notes = [], note = text => { if (notes.at(-1) !== text) notes.push(text); };</script>"""
FILES = ("map.txt", "notes.md", "poem.txt", "zoo.png")
SLIDE = "d.style.transition = 'transform .4s linear'; d.style.transform = 'translate(60px, 40px)';"


class Asked(NamedTuple):
    """The action on a page."""

    action: str
    """It has `{}` for each id of `targets`."""
    targets: tuple[tuple[str, str, int], ...]
    """Role, name and place among its like, from 0, of each element that the action names."""


@dataclass(frozen=True)
class Changing:
    """One page."""

    kind: str
    html: str
    action: str
    targets: tuple[tuple[str, str, int], ...]
    meant: str
    refindable: bool
    late: bool = False
    seconds: float = 0.0
    """Seconds that the agent thinks after the signal; 0 for none."""


def rows(tag: str = "li", inner: str = "", names: tuple[str, ...] = FILES) -> str:
    """Return rows of files, each with a button; the note is made of the row's words when it is pressed."""
    cell = "<td><span class=n>{0}</span><td>4 KB<td>" if tag == "tr" else "<span class=n>{0}</span> 4 KB "
    press = "note('delete ' + this.closest('.row').querySelector('.n').textContent)"
    made = "".join(f'<{tag} class=row>{cell.format(each)}{inner}<button onclick="{press}">Delete</button></{tag}>' for each in names)
    return f"<table><tbody id=d>{made}</tbody></table>" if tag == "tr" else f"<{'ul' if tag == 'li' else 'div'} id=d>{made}</div>"


def script(body: str) -> str:
    """Return the definition of the signal."""
    return f"<script>function change() {{ {body} }}</script>"


def named(html: str, change: str) -> str:
    return html + script(change)


def labelled(names: tuple[str, ...], extra: str = "") -> str:
    """Return buttons that note their own label when they are pressed."""
    made = "".join(f"<button class=b onclick=\"note('press ' + this.textContent)\">{each}</button> " for each in names)
    return f"<div id=d>{made}</div>{extra}"


def press(name: str, nth: int = 0) -> Asked:
    """Return a click on a button. `nth`: its place among those of the name."""
    return Asked("click [{}]", (("button", name, nth),))


WRITE = "const r = [...d.querySelectorAll('.n')]; ({}).forEach((name, i) => { r[i].textContent = name; });"
"""Writes names into the rows that are there."""
OVER = WRITE.replace("{ r[i]", "{{ r[i]").replace("name; }", "name; }}")
REVERSE = OVER.format("r.map(each => each.textContent).reverse()")
SHIFT = OVER.format("['new.csv', 'map.txt', 'notes.md', 'poem.txt']")
GONE = OVER.format("['a.csv', 'b.csv', 'c.csv', 'd.csv']")
MOVED = "d.append(...[...d.children].reverse());"
ANEW = "d.innerHTML = d.innerHTML;"
LATER = "setTimeout(() => {{ {} }}, 25);"
INSERT = "d.insertAdjacentHTML('afterbegin', d.firstElementChild.outerHTML.replace('map.txt', 'new.csv'));"
FLIP = """const was = new Map([...d.children].map(each => [each, each.getBoundingClientRect().top]));
d.append(...[...d.children].reverse());
for (const each of d.children) each.animate([{transform: `translateY(${was.get(each) - each.getBoundingClientRect().top}px)`}, {}], 400);"""
ON_POINTER = "addEventListener('pointermove', () => {{ {} }}, {{once: true}});"
FIELD = "<div id=d><p><label for=f id=l>City</label> <input id=f oninput=\"note('fill ' + l.textContent)\"></p></div>"
QUANTITY = "<input aria-label=Quantity oninput=\"note('count ' + this.closest('.row').querySelector('.n').textContent)\"> "
TREE = (
    "<style>.row, #to { user-select: none }</style><ul id=d>"
    + "".join(f"<li class=row onmousedown='from = this.textContent'>{each}</li>" for each in FILES)
    + "</ul><p id=to onmouseup=\"note('move ' + from)\" tabindex=0>Trash</p><script>let from = ''</script>"
)
DRAG = Asked("drag [{}] to [{}]", (("listitem", "notes.md", 0), ("generic", "Trash", 0)))
DIALOG = "<div role=dialog aria-label=Confirm><p id=q>Delete poem.txt?</p><button onclick=\"note('ok ' + q.textContent)\">OK</button></div>"
FRAME = """<div id=h></div><script>
const row = n => `<li><span>${n}</span> <button onclick="top.note('delete ${n}')">Delete</button></li>`;
const inside = names => `<ul>${names.map(row).join('')}</ul>`;
const put = names => { h.innerHTML = '<iframe width=300 height=200></iframe>'; h.firstChild.srcdoc = inside(names); };
put(['map.txt', 'poem.txt', 'zoo.png']);</script>"""
ROWS, TABLE, DIVS = rows(), rows("tr"), rows("div")
POEM = (press("Delete", 2), "delete poem.txt")
COVER = "<div id=c style='position:fixed;left:0;right:0;top:400px;height:600px;background:#eee' onclick=\"note('cover')\">Offer</div>"
TICK = "<p><span id=t>10:00:00</span> <span id=b>3 new</span></p><script>let n = 0</script>"
TICKS = "setInterval(() => { t.textContent = `10:00:${++n + 10}`; b.textContent = `${n} new`; }, 50);"


def page(kind: str, html: str, asked: Asked, meant: str, *, refindable: bool, late: bool = False, seconds: float = 0.0) -> Changing:
    return Changing(kind, SCRIPT + html, *asked, meant, refindable, late, seconds)


CHANGING: list[Changing] = [
    # --- rename in place
    page(
        "rename",
        named(labelled(("Archive",)), "d.firstChild.textContent = 'Delete all';"),
        press("Archive"),
        "press Archive",
        refindable=False,
    ),
    page(
        "rename",
        named(labelled(("Save", "Delete")), "const [a, b] = d.children; a.textContent = 'Delete'; b.textContent = 'Save';"),
        press("Save"),
        "press Save",
        refindable=True,
    ),
    page(
        "rename",
        named(labelled(("Sound",)), "d.firstChild.setAttribute('role', 'switch'); d.firstChild.ariaChecked = 'false';"),
        press("Sound"),
        "never",
        refindable=False,
    ),
    page(
        "rename",
        named(
            '<div id=d><button aria-label=Mute onclick="note(this.ariaLabel)">&#9834;</button></div>', "d.firstChild.ariaLabel = 'Leave';"
        ),
        press("Mute"),
        "Mute",
        refindable=False,
    ),
    page(
        "rename",
        named(FIELD, "l.textContent = 'Card number';"),
        Asked('fill [{}] "Rome"', (("textbox", "City", 0),)),
        "fill City",
        refindable=False,
    ),
    page("rename", named(TICK + labelled(("Send",)), TICKS), press("Send"), "press Send", refindable=True),
    page(
        "rename",
        named(labelled(("Archive",)), SLIDE + LATER.format("d.firstChild.textContent = 'Delete all';")),
        press("Archive"),
        "press Archive",
        refindable=False,
        late=True,
    ),
    # --- insert above
    page("insert", named(ROWS, INSERT), *POEM, refindable=True),
    page("insert", named(TABLE, INSERT), *POEM, refindable=True),
    page("insert", named(DIVS, INSERT), *POEM, refindable=True),
    page("insert", named(f"<div id=bar class=slow style='height:0'></div>{ROWS}", "bar.style.height = '90px';"), *POEM, refindable=True),
    page("insert", named(ROWS, INSERT + ANEW), *POEM, refindable=True),
    # --- sort
    page("sort", named(ROWS, MOVED), *POEM, refindable=True),
    page("sort", named(TABLE, REVERSE), *POEM, refindable=True),
    page("sort", named(DIVS, MOVED + ANEW), *POEM, refindable=True),
    page("sort", named(TABLE, FLIP), *POEM, refindable=True),
    page("sort", named(TREE, "d.append(d.children[1], d.children[0]);"), DRAG, "move notes.md", refindable=True),
    page(
        "sort",
        named(
            TREE,
            "const c = [...d.children], t = c.map(each => each.textContent); c.forEach((each, i) => { each.textContent = t[3 - i]; });",
        ),
        DRAG,
        "move notes.md",
        refindable=True,
    ),
    page(
        "sort",
        named(rows("li", QUANTITY), REVERSE),
        Asked('fill [{}] "2"', (("textbox", "Quantity", 1),)),
        "count notes.md",
        refindable=True,
    ),
    page(
        "sort",
        named(ROWS, "d.style.transition = 'transform .3s'; d.style.transform = 'translateX(50px)';" + LATER.format(REVERSE)),
        *POEM,
        refindable=True,
        late=True,
    ),
    # --- recycle
    page("recycle", named(ROWS, GONE), *POEM, refindable=False),
    page("recycle", named(TABLE, SHIFT), *POEM, refindable=True),
    page(
        "recycle",
        named(rows("li", names=("poem.txt",)), "d.querySelector('.n').textContent = 'notes.md';"),
        press("Delete"),
        "delete poem.txt",
        refindable=False,
    ),
    page("recycle", named(DIALOG, "q.textContent = 'Delete notes.md?';"), press("OK"), "ok Delete poem.txt?", refindable=False),
    page("recycle", named(DIVS, GONE), *POEM, refindable=False),
    page(
        "recycle",
        named(rows("tr", QUANTITY), SHIFT),
        Asked('fill [{}] "2"', (("textbox", "Quantity", 2),)),
        "count poem.txt",
        refindable=True,
    ),
    page(
        "recycle",
        named(TREE, "d.children[1].textContent = 'poem.txt'; d.children[2].textContent = 'zoo.png';"),
        DRAG,
        "move notes.md",
        refindable=False,
    ),
    # --- replaced by an equal node
    page("replace", named(labelled(("Save", "Close")), ANEW), press("Save"), "press Save", refindable=True),
    page("replace", named(ROWS, ANEW), *POEM, refindable=True),
    page("replace", named(TABLE, "d.children[2].outerHTML = d.children[2].outerHTML;"), *POEM, refindable=True),
    page(
        "replace",
        named("<div id=d><template shadowrootmode=open></template></div>", "d.shadowRoot.innerHTML = d.shadowRoot.innerHTML;")
        + "<script>d.attachShadow({mode: 'open'}).innerHTML = "
        "`<button onclick=\"note('press Go')\">Go</button>`</script>",
        press("Go"),
        "press Go",
        refindable=True,
    ),
    page("replace", named(labelled(("Save",)), SLIDE + LATER.format(ANEW)), press("Save"), "press Save", refindable=True, late=True),
    page("replace", named(ROWS, "d.lastElementChild.remove();" + ANEW), *POEM, refindable=True),
    # --- moved under the pointer
    page(
        "pointer",
        named(labelled(("Save", "Delete")), ON_POINTER.format("d.append(d.firstElementChild);")),
        press("Save"),
        "press Save",
        refindable=True,
    ),
    page("pointer", named(ROWS, ON_POINTER.format(MOVED)), *POEM, refindable=True),
    page(
        "pointer",
        named(labelled(("Save",)) + COVER, "c.animate([{}, {transform: 'translateY(-400px)'}], {duration: 60, fill: 'forwards'});"),
        press("Save"),
        "press Save",
        refindable=False,
        late=True,
    ),
    # --- the frame is rendered again
    page("frame", named(FRAME, "put(['map.txt', 'poem.txt', 'zoo.png'])"), press("Delete", 1), "delete poem.txt", refindable=True),
    page("frame", named(FRAME, "put(['zoo.png', 'poem.txt', 'map.txt'])"), press("Delete", 1), "delete poem.txt", refindable=True),
    page(
        "frame",
        named(FRAME, "h.firstChild.srcdoc = inside(['a.csv', 'poem.txt', 'b.csv', 'c.csv'])"),
        press("Delete", 1),
        "delete poem.txt",
        refindable=True,
    ),
    page(
        "frame",
        named(FRAME, "h.firstChild.srcdoc = inside(['a.csv', 'b.csv', 'c.csv'])"),
        press("Delete", 1),
        "delete poem.txt",
        refindable=False,
    ),
]
"""Forty pages, at rest and in the middle of animations."""

SLOW: list[Changing] = [
    page("slow", named(TICK + labelled(("Send",)), TICKS), press("Send"), "press Send", refindable=True, seconds=10),
    page("slow", named(TABLE, f"setInterval(() => {{ {REVERSE} }}, 700);"), *POEM, refindable=True, seconds=10),
    page(
        "slow",
        named(
            "<div id=d><ul id=m><li>Hello</li></ul></div><form onsubmit='return false'><input aria-label=Message>"
            "<button onclick=\"note('send')\">Send</button></form><script>let n = 0</script>",
            "setInterval(() => { m.insertAdjacentHTML('beforeend', `<li>Message ${++n}</li>`); }, 300);",
        ),
        press("Send"),
        "send",
        refindable=True,
        seconds=10,
    ),
]
"""Pages that change all the time, while the agent thinks for ten real seconds: a clock, a list that sorts itself, a chat."""
