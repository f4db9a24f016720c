"""Draw the pictures of the concepts into docs/images: `python docs/_site/pictures.py`."""

from __future__ import annotations

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"
INK, DIM, BLUE, ORANGE, GREEN, PAPER = "#1f2937", "#9ca3af", "#2563eb", "#d97706", "#15803d", "#ffffff"
FONT = "font-family='system-ui, sans-serif'"


def svg(width: int, height: int, parts: list[str], title: str) -> str:
    """Return a drawing on white paper, which is readable on dark pages too."""
    arrow = (
        "<defs><marker id='a' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        f"<path d='M0 0L8 4L0 8z' fill='{INK}'/></marker></defs>"
    )
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' role='img'><title>{escape(title)}</title>"
    )
    return f"{head}{arrow}<rect width='{width}' height='{height}' rx='8' fill='{PAPER}'/>{''.join(parts)}</svg>\n"


def text(x: float, y: float, words: str, *, size: int = 13, colour: str = INK, anchor: str = "middle", bold: bool = False) -> str:
    weight = " font-weight='600'" if bold else ""
    return f"<text x='{x}' y='{y}' {FONT} font-size='{size}' fill='{colour}' text-anchor='{anchor}'{weight}>{escape(words)}</text>"


def box(x: float, y: float, width: float, lines: list[str], *, colour: str = INK, height: float = 0) -> str:
    height = height or 16 + 17 * len(lines)
    words = "".join(text(x + width / 2, y + 21 + 17 * i, line, bold=not i) for i, line in enumerate(lines))
    return f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='6' fill='{PAPER}' stroke='{colour}' stroke-width='1.5'/>{words}"


def arrow(x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, dashed: bool = False) -> str:
    dash = " stroke-dasharray='4 4'" if dashed else ""
    return f"<path d='M{x1} {y1}L{x2} {y2}' stroke='{colour}' stroke-width='1.5' fill='none' marker-end='url(#a)'{dash}/>"


NODES = {"s": (100, 40), "a": (50, 95), "b": (150, 95), "c": (20, 150), "d": (80, 150), "e": (120, 150), "f": (180, 150)}
EDGES = (("s", "a"), ("s", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("b", "f"))


def tree(
    x: float, y: float, title: str, caption: list[str], *, path: str, blue: str = "", dashed: str = "", values: dict[str, str] | None = None
) -> str:
    """Draw a small tree: `path` has thick edges, nodes of `blue` are filled, those of `dashed` do not exist yet."""
    parts, found = [text(x + 100, y + 14, title, size=14, bold=True)], values or {}
    for upper, lower in EDGES:
        (x1, y1), (x2, y2) = NODES[upper], NODES[lower]
        thick = upper in path and lower in path
        dash = " stroke-dasharray='3 4'" if lower in dashed else ""
        parts.append(
            f"<path d='M{x + x1} {y + y1}L{x + x2} {y + y2}' stroke='{BLUE if thick else DIM}' stroke-width='{3 if thick else 1.2}'{dash}/>"
        )
    for name, (cx, cy) in NODES.items():
        fill, ring = (BLUE, BLUE) if name in blue else (PAPER, DIM if name in dashed else INK)
        dash = " stroke-dasharray='3 3'" if name in dashed else ""
        parts.append(f"<circle cx='{x + cx}' cy='{y + cy}' r='13' fill='{fill}' stroke='{ring}' stroke-width='1.5'{dash}/>")
        if name in found:
            parts.append(text(x + cx, y + cy + 4, found[name], size=10, colour=PAPER if name in blue else INK))
    parts += [text(x + 100, y + 188 + 16 * i, line, size=12) for i, line in enumerate(caption)]
    return "".join(parts)


def rmcts() -> str:
    parts = [
        tree(10, 14, "1 Select", ["Follow the best", "Q + c P √N / (1 + N)"], path="sbe", blue="e"),
        tree(230, 14, "2 Return and step", ["Bring an environment there,", "verify it, take the step"], path="sbe", blue="e"),
        tree(450, 14, "3 Evaluate", ["The value function", "judges the state"], path="", blue="e", values={"e": ".8"}),
        tree(10, 254, "4 Expand", ["On the second visit the", "policy proposes actions"], path="", blue="a", dashed="cd", values={}),
        tree(
            230,
            254,
            "5 Back up",
            ["Every edge of the path", "takes the value in"],
            path="sbe",
            blue="sbe",
            values={"s": ".6", "b": ".7", "e": ".8"},
        ),
        tree(
            450, 254, "6 Commit, reflect", ["Execute the choice for real;", "note what surprised"], path="sb", blue="b", values={"b": "Q"}
        ),
    ]
    return svg(670, 480, parts, "The six phases of R-MCTS")


def restoring() -> str:
    routes = [
        ("It is already there", "an environment in this state", "0 s"),
        ("Fork", "a copy of a running one", "cheap, full"),
        ("Restore a snapshot", "then replay the rest", "full or client"),
        ("Reset and replay", "all steps from the start", "as long as the path"),
    ]
    parts = [box(20, 130, 130, ["Search wants", "state s"]), text(345, 26, "routes, from cheap to expensive", size=12, colour=DIM)]
    for i, (name, what, cost) in enumerate(routes):
        y = 40 + 66 * i
        parts += [box(220, y, 250, [name, f"{what}: {cost}"], height=52), arrow(150, 156, 218, y + 26), arrow(470, y + 26, 528, 156)]
    parts += [box(530, 120, 130, ["Compare", "exact, equivalent", "or drifted"], colour=BLUE), arrow(595, 187, 595, 250)]
    parts += [box(520, 252, 150, ["Drifted?", "never searched"], colour=ORANGE)]
    return svg(690, 330, parts, "Routes back to a state")


def debate() -> str:
    parts = [
        box(20, 105, 120, ["State s", "and how it", "was reached"]),
        box(210, 30, 150, ["Supporter", "argues for success"], colour=GREEN),
    ]
    parts += [box(210, 210, 150, ["Opposer", "argues for failure"], colour=ORANGE), arrow(140, 120, 208, 60), arrow(140, 150, 208, 228)]
    parts += [box(430, 55, 110, ["Judge", "reads + then −"]), box(430, 190, 110, ["Judge", "reads − then +"])]
    for y1 in (56, 236):
        parts += [arrow(360, y1, 428, 80), arrow(360, y1, 428, 215)]
    parts += [
        box(600, 115, 110, ["Value", "mean of grades", "in [0, 1]"], colour=BLUE),
        arrow(540, 80, 600, 130),
        arrow(540, 215, 600, 165),
    ]
    parts.append(
        text(365, 290, "the spread within a judge asks for more samples; the spread between judges may increase exploration", size=12)
    )
    return svg(730, 310, parts, "A debate with judges in both orders")


def contrast() -> str:
    parts = [box(20, 30, 150, ["Expected", "Q(s, a) of the search"]), box(20, 120, 150, ["Observed", "V(s') after the step"])]
    parts += [
        box(240, 75, 140, ["Surprise", "difference above", "the threshold"], colour=ORANGE),
        arrow(170, 56, 238, 90),
        arrow(170, 146, 238, 120),
    ]
    parts += [box(450, 75, 150, ["Reflection", "when ..., expect ...", "so do ... instead"], colour=BLUE), arrow(380, 108, 448, 108)]
    parts += [box(450, 210, 150, ["Memory", "with source, task", "and outcome"]), arrow(525, 143, 525, 208)]
    parts += [
        box(210, 210, 170, ["A similar situation", "retrieves it for policy", "and value function"], colour=GREEN),
        arrow(450, 244, 382, 244),
    ]
    parts += [
        arrow(210, 244, 95, 244),
        text(150, 262, "next search", size=12),
        f"<path d='M95 244L95 176' stroke='{INK}' stroke-width='1.5' marker-end='url(#a)'/>",
    ]
    return svg(620, 290, parts, "From a surprise to a reflection")


if __name__ == "__main__":
    for name, drawn in (("rmcts", rmcts()), ("restoring", restoring()), ("debate", debate()), ("contrast", contrast())):
        (IMAGES / f"{name}.svg").write_text(drawn, "utf-8")
