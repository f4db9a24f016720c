"""Draw the search of the tutorial's first page into docs/images/drawn: `python docs/_site/search_picture.py`.

The programs of the page are run as they stand, in a window small enough for its pages to be read as thumbnails. Tree, values, actions and
screenshots are those of the run's journal.
"""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from PIL import Image

from exact.config import load_recorded
from exact.report.model.reading import Reading
from exact.report.model.text import by_name
from exact.runs.journal.store import RunFolder
from exact.search.tree import Edge, Node

DOCS = Path(__file__).parents[1]
PAGE, DRAWN = DOCS / "tutorial" / "first_search.md", DOCS / "images" / "drawn"
WINDOW = (480, 244)
"""Size of the browser's window, which is that of a thumbnail too, but for the scale."""
INK, QUIET, ACCENT = "var(--ink,#15181d)", "var(--quiet,#59616d)", "var(--accent,#1f5fc4)"
LINE, FACE = "var(--md-default-fg-color--lighter,#a9b0b9)", "var(--face,#fff)"


@dataclass(kw_only=True)
class Card:
    """A state of the drawing, with the action that led to it."""

    action: str
    figures: str
    picture: str
    """Screenshot as a data URL. Empty: the attempt ended here."""
    committed: bool
    depth: int
    children: list[Card] = field(default_factory=list)

    def all(self) -> Iterator[Card]:
        yield self
        for each in self.children:
            yield from each.all()


def run(folder: Path) -> RunFolder:
    """Run the page's shop and its program, and return the run of the search."""
    files = dict(re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```', PAGE.read_text("utf-8"), re.S | re.M))
    for name, text in files.items():
        (folder / name).write_text(text.replace('{"sandbox"', f'{{"width": {WINDOW[0]}, "height": {WINDOW[1]}, "sandbox"'), "utf-8")
    environ = {**os.environ, "PYTHONPATH": str(DOCS.parent)}
    shop = subprocess.Popen([sys.executable, "shop.py", "8430"], cwd=folder)
    try:
        while shop.poll() is None:
            with suppress(OSError), urllib.request.urlopen("http://127.0.0.1:8430/"):
                break
            time.sleep(0.1)
        subprocess.run([sys.executable, "solve.py"], cwd=folder, env=environ, check=True)
    finally:
        shop.terminate()
        shop.wait()
    return RunFolder.open(folder / "mcts")


def cards(found: RunFolder) -> Card:
    """Return the states of the run's tree, the start first."""
    task = found.manifest.tasks[0]
    reading = Reading(found.task_folder(task) / "journal.jsonl", load_recorded(found.path), found.blobs)
    taken = {id(root.edges[decided.decision.edges[0]]) for decided, committed, root in reading.steps if committed is not None}

    def card(node: Node, edge: Edge | None, depth: int) -> Card:
        above = reading.seen(node.parent) if node.parent else None
        figures = f"V {node.value:.2f}" if node.value is not None else ""
        made = Card(
            action=by_name(edge.action, above) if edge else "start",
            figures=f"{figures}   Q {edge.q:.2f}" if edge else figures,
            picture="" if node.terminated else thumbnail(found.blobs.get(node.screenshot)),
            committed=edge is None or id(edge) in taken,
            depth=depth,
        )
        made.children = [card(each.child, each, depth + 1) for each in node.edges if each.child is not None]
        return made

    return card(reading.state.search.tree.nodes[0], None, 0)


def thumbnail(data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as image:
        small = image.convert("RGB").resize((WINDOW[0] * 3 // 4, WINDOW[1] * 3 // 4), Image.Resampling.LANCZOS)
    output = io.BytesIO()
    small.save(output, "WEBP", quality=82, method=6)
    return f"data:image/webp;base64,{base64.b64encode(output.getvalue()).decode()}"


def svg(width: float, height: float, parts: list[str], kind: str) -> str:
    title = "Search tree of the tutorial's lamp shop. Blue lamps looks best and is sold out; Sale, then Last pieces, has the price."
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img"'
    return f'{head} aria-label="{escape(title)}" font-family="Geist, system-ui, sans-serif">\n' + "\n".join(parts) + "\n</svg>\n"


def text(x: float, y: float, words: str, *, size: float, colour: str = INK, weight: int = 400) -> str:
    style = f"fill:{colour};font-size:{size:g}px;font-weight:{weight};font-variant-numeric:tabular-nums"
    return f'<text x="{x:g}" y="{y:g}" xml:space="preserve" style="{style}">{escape(words)}</text>'


def line(path: str, committed: bool) -> str:
    return f'<path d="{path}" style="fill:none;stroke:{ACCENT if committed else LINE};stroke-width:{2.5 if committed else 1.2}"/>'


def frame(card: Card, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """Yield the screenshot of a state, or the answer that ended the attempt, in a frame."""
    style = f"stroke:{ACCENT if card.committed else LINE};stroke-width:{2.5 if card.committed else 1}"
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    if card.picture:
        yield f'<image href="{card.picture}" {place} preserveAspectRatio="xMidYMin slice"/>'
    yield f'<rect {place} rx="6" style="fill:{"none" if card.picture else FACE};{style}"/>'


CARD, GAP, PITCH = (192.0, 97.6), 62.0, 146.0
END = 40.0
"""Height of the frame of an answer."""


def wide(start: Card) -> str:
    """Return the drawing from left to right, a column for each action."""
    rows, places = iter(range(100)), dict[int, float]()

    def place(card: Card) -> float:
        places[id(card)] = sum(map(place, card.children)) / len(card.children) if card.children else next(rows) * PITCH + 24
        return places[id(card)]

    place(start)
    parts, (width, height) = [], CARD
    for card in start.all():
        x, y = card.depth * (width + GAP) + 2, places[id(card)]
        for child in sorted(card.children, key=lambda each: each.committed):
            x1, y1, x2, y2 = x + width, y + height / 2, x + width + GAP, places[id(child)] + height / 2
            parts.append(line(f"M{x1:g} {y1:g}C{x1 + GAP * 0.6:g} {y1:g} {x2 - GAP * 0.6:g} {y2:g} {x2:g} {y2:g}", child.committed))
    for card in start.all():
        x, y = card.depth * (width + GAP) + 2, places[id(card)]
        top, tall = (y, height) if card.picture else (y + (height - END) / 2, END)
        parts += frame(card, x, top, width, tall)
        colour, weight = (ACCENT, 600) if card.committed else (INK, 500)
        parts.append(text(x, top - 8, card.action if card.picture else "end", size=13, colour=colour, weight=weight))
        if not card.picture:
            parts.append(text(x + 12, top + END / 2 + 5, card.action, size=13, colour=colour, weight=weight))
        parts.append(text(x, top + tall + 17, card.figures, size=12.5, colour=QUIET))
    deepest = max(card.depth for card in start.all())
    return svg((deepest + 1) * (width + GAP) - GAP + 4, next(rows) * PITCH - 6, parts, "wide")


def narrow(start: Card) -> str:
    """Return the drawing as an indented list, for a telephone."""
    thumb, pitch, indent = (104.0, 53.0), 68.0, 16.0
    parts, rows = [], {id(card): row * pitch + 6 for row, card in enumerate(start.all())}
    for card in start.all():
        x, y = card.depth * indent + 2, rows[id(card)]
        for child in sorted(card.children, key=lambda each: each.committed):
            parts.append(line(f"M{x + 8:g} {y + thumb[1]:g}V{rows[id(child)] + thumb[1] / 2:g}H{x + indent:g}", child.committed))
    for card in start.all():
        x, y = card.depth * indent + 2, rows[id(card)]
        parts += frame(card, x, y, *thumb)
        colour, weight = (ACCENT, 600) if card.committed else (INK, 500)
        if not card.picture:
            parts.append(text(x + 12, y + 31, "end", size=13, colour=QUIET))
        parts.append(text(x + thumb[0] + 10, y + 22, card.action, size=13.5, colour=colour, weight=weight))
        parts.append(text(x + thumb[0] + 10, y + 42, card.figures, size=13, colour=QUIET))
    return svg(344, len(rows) * pitch, parts, "narrow")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        start = cards(run(Path(scratch)) if len(sys.argv) < 2 else RunFolder.open(Path(sys.argv[1])))
    DRAWN.mkdir(exist_ok=True)
    (DRAWN / "search.svg").write_text(wide(start), "utf-8")
    (DRAWN / "search_narrow.svg").write_text(narrow(start), "utf-8")
