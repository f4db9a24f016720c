"""A tree as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from exact.text import counted, inert

if TYPE_CHECKING:
    from exact.search.tree import Edge, Node, Tree

_LABEL = 60
"""Characters of an action that are shown."""
STATES = 500
"""States that are drawn. Further ones are counted."""


def summary(tree: Tree) -> str:
    """Return one line about a tree: its size, and the most visited action of its root."""
    size = f"{counted(len(tree.nodes), 'state')}, {counted(tree.iterations, 'iteration')}"
    best = max(enumerate(tree.root.edges), key=lambda each: (each[1].visits, each[1].q), default=None)
    if best is None or not best[1].visits:
        return f"<Tree: {size}>"
    return f"<Tree: {size}, most visited: {label(best[1], tree.names.get((tree.root.id, best[0]), ''))}>"


def label(edge: Edge, name: str = "") -> str:
    """Return an action with its statistics: visits N, value Q, prior P. `name`: the action in words."""
    action = inert(name or edge.action.key)
    short = action if len(action) <= _LABEL else f"{action[: _LABEL - 3]}..."
    value = "-" if edge.value is None else f"{edge.value:.2f}"
    return f"{short}  N {edge.visits}  Q {value}  P {edge.prior:.2f}"


def state_label(node: Node) -> str:
    """Return a state's id, value V and visits N, and whether the episode ended there."""
    value = "-" if node.value is None else f"{node.value:.2f}"
    return f"state {node.id}  V {value}  N {node.visits}{'  end' if node.terminated else ''}{'  unseen' if node.unseen else ''}"


def draw(tree: Tree, depth: int | None = None) -> str:
    """Return a tree as text, one action a line, below the first root.

    Args:
        tree: The tree.
        depth: Actions below the first root that are drawn; None for all.
    """
    return "\n".join("  " * level + line for level, line in _rows(tree, depth))


def to_html(tree: Tree, depth: int | None = None) -> str:
    """Return a tree as nested HTML, whose branches open and close; a leaf has nothing to open. Nothing in it is loaded or run."""
    parts, rows = [f"<pre>{escape(summary(tree))}</pre>"], list(_rows(tree, depth))
    for (level, line), (following, _) in zip(rows, [*rows[1:], (0, "")], strict=True):
        text = f"<code>{escape(line)}</code>"
        if following > level:
            parts.append(f'<details style="margin-left:1.2em"{" open" if level < 2 else ""}><summary>{text}</summary>')
        else:
            parts.append(f'<div style="margin-left:2.4em">{text}</div>' + "</details>" * (level - following))
    return "".join(parts)


def _rows(tree: Tree, depth: int | None) -> Iterator[tuple[int, str]]:
    """Yield the level and the text of each state, depth first. A state that several paths reach is drawn once in full."""
    first = tree.nodes[0]
    stack: list[tuple[int, str, Node | None]] = [(0, state_label(first), first)]
    known, drawn = set[int](), 0
    while stack:
        level, text, node = stack.pop()
        if drawn == STATES:
            yield 0, f"... not drawn: {counted(len(stack) + 1, 'further action')} and what is below"
            return
        drawn += 1
        if node is not None and node.id in known:
            yield level, f"{text}  (drawn above)"
            continue
        yield level, text
        if node is None or (depth is not None and level >= depth):
            continue
        known.add(node.id)
        for index, edge in reversed(list(enumerate(node.edges))):
            said = label(edge, tree.names.get((node.id, index), ""))
            if not edge.outcomes:
                stack.append((level + 1, said, None))
            stack.extend((level + 1, f"{said}  ->  {state_label(child)}", child) for child in reversed(edge.outcomes))
