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
_STATES = 500
"""States that are drawn. Further ones are counted."""


def summary(tree: Tree) -> str:
    """Return one line about a tree: its size, and the most visited action of its root."""
    size = f"{counted(len(tree.nodes), 'state')}, {counted(tree.iterations, 'iteration')}"
    best = max(tree.root.edges, key=lambda edge: (edge.visits, edge.q), default=None)
    return f"<Tree: {size}>" if best is None or not best.visits else f"<Tree: {size}, most visited: {label(best)}>"


def label(edge: Edge) -> str:
    """Return an action with its statistics: visits N, value Q, prior P."""
    action = inert(edge.action.key)
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
    """Return a tree as nested HTML lists, whose branches open and close. Nothing in it is loaded or run."""
    parts, last = [f"<pre>{escape(summary(tree))}</pre>"], -1
    for level, line in _rows(tree, depth):
        parts.append("</details>" * max(0, last - level + 1))
        parts.append(f'<details style="margin-left:1.2em"{" open" if level < 2 else ""}><summary><code>{escape(line)}</code></summary>')
        last = level
    return "".join(parts) + "</details>" * (last + 1)


def _rows(tree: Tree, depth: int | None) -> Iterator[tuple[int, str]]:
    """Yield the level and the text of each state, depth first. A state that several paths reach is drawn once in full."""
    first = tree.nodes[0]
    stack: list[tuple[int, str, Node | None]] = [(0, state_label(first), first)]
    known, drawn = set[int](), 0
    while stack:
        level, text, node = stack.pop()
        if drawn == _STATES:
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
        for edge in reversed(node.edges):
            if not edge.outcomes:
                stack.append((level + 1, label(edge), None))
            stack.extend((level + 1, f"{label(edge)}  ->  {state_label(child)}", child) for child in reversed(edge.outcomes))
