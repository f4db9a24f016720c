"""A tree for Graphviz: DOT text, and through its `dot` command SVG, PDF or PNG."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Literal

from exact.child import Child
from exact.errors import InfrastructureError, UsageError
from exact.report.model.text import one_line
from exact.search.tree import Edge, Node, Tree

Format = Literal["svg", "pdf", "png"]
_LABEL = 40
"""Maximum length of an action in a drawing, in characters."""
_SECONDS = 120.0


def dot(tree: Tree, committed: frozenset[int] = frozenset(), *, path: bool = False) -> str:
    """Return a tree in the DOT language: states as boxes with V and N, edges with action, N, Q and P, the committed path in bold.

    committed: ids of the states on that path. path: draw only that path and the states one action away from it. Texts from pages are quoted
    strings without control characters.
    """
    states = [node for node in tree.walk(tree.nodes[0]) if not path or _is_near(node, committed)]
    return (
        "\n".join(
            [
                "digraph search {",
                '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];',
                *_lines(states, committed),
                "}",
            ]
        )
        + "\n"
    )


async def drawn(text: str, form: Format) -> bytes:
    """Return DOT text as a picture. Raises UsageError where Graphviz is missing and InfrastructureError where it fails."""
    command = shutil.which("dot")
    if command is None:
        raise UsageError("drawing needs Graphviz's program `dot`: install the package graphviz, or write its input: exact export dot RUN")
    pipe = asyncio.subprocess.PIPE
    process = await Child.start(command, f"-T{form}", stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(_SECONDS):
            picture, said = await process.communicate(text.encode())
    finally:
        await process.end()
    if process.returncode:
        raise InfrastructureError(f"Graphviz failed: {one_line(said.decode(errors='replace'))}")
    return picture


def _is_near(node: Node, committed: frozenset[int]) -> bool:
    return node.id in committed or (node.parent is not None and node.parent.id in committed)


def _lines(states: Sequence[Node], committed: frozenset[int]) -> Iterator[str]:
    shown = {node.id for node in states}
    for node in states:
        value = "" if node.value is None else f"\nV {node.value:.2f}"
        label = f"{node.id}{value}\nN {node.visits}"
        style = "bold" if node.id in committed else "dashed" if node.closed else "solid"
        ends = ", peripheries=2" if node.terminated else ""
        yield f"  n{node.id} [label={_quoted(label)}, style={style}{ends}];"
    for node in states:
        for edge in node.edges:
            if edge.child is not None and edge.child.parent is node and edge.child.id in shown:
                yield f"  n{node.id} -> n{edge.child.id} [label={_quoted(_edge(edge))}{_weight(node, edge, committed)}];"


def _edge(edge: Edge) -> str:
    value = "" if edge.value is None else f" Q {edge.value:.2f}"
    return f"{one_line(str(edge.action))[:_LABEL]}\nN {edge.visits}{value} P {edge.prior:.2f}"


def _weight(node: Node, edge: Edge, committed: frozenset[int]) -> str:
    on = edge.child is not None and edge.child.id in committed and node.id in committed
    return ", penwidth=3" if on else ""


def _quoted(text: str) -> str:
    """Return text as a quoted string of DOT, in which only a backslash before `n` is an escape (a line end)."""
    return json.dumps(text.replace("\\", "/"), ensure_ascii=False)
