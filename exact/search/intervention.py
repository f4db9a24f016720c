"""A person's hand on a search: work on a state out of turn, or look no further below one.

Both change nothing but the tree, so a fold over the journal comes to the same tree again. They fit every algorithm that keeps its
statistics by `Work`; what an algorithm makes of the new edge is its own affair.
"""

from __future__ import annotations

from exact.search.algorithms.lookahead import path_to
from exact.search.base import Algorithm, Selection
from exact.search.tree import Node, SearchError, Tree
from exact.search.work import Work

PRUNED = "pruned: by a viewer"


def obstacle(algorithm: Algorithm, tree: Tree, node: int, *, prune: bool) -> str:
    """Why a state cannot be expanded, or pruned, out of turn; empty where it can."""
    if not 0 <= node < len(tree.nodes):
        return f"there is no state {node}"
    here = tree.nodes[node]
    try:
        path_to(tree, here)
    except SearchError:
        return f"state {node} does not lie below the present root, state {tree.root.id}"
    if here.closed.startswith("pruned"):
        return f"state {node} was pruned already"
    if prune:
        return "the present root cannot be pruned" if here is tree.root else ""
    if not isinstance(algorithm, Work):
        return "this search algorithm cannot be told what to expand"
    if here.leaf:
        return f"nothing can follow state {node}: the episode ended there, or a write was held back"
    if here.closed:
        return f"state {node} is closed: {here.closed}"
    return "" if _something_left(here) else f"every action of state {node} was tried"


def expand(algorithm: Algorithm, tree: Tree, node: Node) -> Selection | None:
    """Reserve the next work in a state: its judgement, its proposals, or its likeliest action that was not tried. None: there is none."""
    if obstacle(algorithm, tree, node.id, prune=False) or not isinstance(algorithm, Work):
        return None
    path = path_to(tree, node)
    if node.value is None and not node.expansions:
        return algorithm.select_state(tree, path, node, "value")
    if not node.expansions:
        return algorithm.select_state(tree, path, node, "proposals")
    index = max(_untried(node), key=lambda i: (node.edges[i].prior, -i), default=None)
    return None if index is None else algorithm.select_step(tree, [*path, (node, node.edges[index])], index)


def prune(tree: Tree, node: Node) -> None:
    """Close a state and the action that leads to it: nothing below is searched, and the action is not committed."""
    edge = node.edge
    assert edge is not None, "the first state cannot be pruned"
    node.closed = edge.closed = PRUNED
    edge.futile, edge.settled = True, False
    tree.resting = None


def _something_left(node: Node) -> bool:
    return node.pending or not node.expansions or bool(_untried(node)) or any(edge.in_flight for edge in node.edges)


def _untried(node: Node) -> list[int]:
    return [i for i, edge in enumerate(node.edges) if edge.child is None and not edge.closed and not edge.in_flight]
