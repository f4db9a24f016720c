"""Interventions of a viewer in a running search: expand a state out of turn, or prune one.

Both change only the tree, so a fold over the journal reproduces them. They fit every algorithm that keeps its statistics by `Work`.

Reservations of a recorded search whose rules are gone.
"""

from __future__ import annotations

from exact.search.algorithms.lookahead import path_to
from exact.search.base import Algorithm, Selection
from exact.search.tree import Node, SearchError, Tree
from exact.search.work import Work, open_selection

PRUNED = "pruned: by a viewer"
"""Reason recorded in the closed node and edge."""


def obstacle(algorithm: Algorithm, tree: Tree, node: int, *, prune: bool) -> str:
    """Return the reason if a state cannot be expanded, or pruned, out of turn. Empty if it can."""
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
        return "this search algorithm cannot expand a chosen state"
    if here.leaf:
        return f"nothing can follow state {node}: the episode ended there, or a write was blocked"
    if here.closed:
        return f"state {node} is closed: {here.closed}"
    return "" if _something_left(here) else f"every action of state {node} was tried"


def expand(algorithm: Algorithm, tree: Tree, node: Node) -> Selection | None:
    """Reserve the next work in a state: its evaluation, its proposals, or its most likely untried action. None if nothing is left."""
    if obstacle(algorithm, tree, node.id, prune=False) or not isinstance(algorithm, Work):
        return None
    path = path_to(tree, node)
    if node.value is None and not node.expansions:
        return algorithm.select_state(tree, path, node, "value")
    if not node.expansions:
        return algorithm.select_state(tree, path, node, "proposals")
    index = max(_untried(node), key=lambda i: (node.edges[i].prior, -i), default=None)
    return None if index is None else algorithm.select_step(tree, [*path, (node, node.edges[index])], index)


def reserve_recorded(tree: Tree, selection: Selection) -> None:
    """Reserve the work that a journal names, along the path by which its state was first reached. Raises SearchError if it is not there."""
    if not 0 <= selection.node < len(tree.nodes):
        raise SearchError(f"there is no state {selection.node}")
    node = tree.nodes[selection.node]
    path = path_to(tree, node)
    if selection.edge is None:
        node.pending = True
        open_selection(tree, path, node, selection)
    elif 0 <= selection.edge < len(node.edges):
        open_selection(tree, [*path, (node, node.edges[selection.edge])], None, selection)
    else:
        raise SearchError(f"state {node.id} has no action {selection.edge}")


def prune(tree: Tree, node: Node) -> None:
    """Close a state and the action that leads to it: nothing below is searched, and the action is not committed."""
    edge = node.edge
    assert edge is not None, "the first state cannot be pruned"
    node.closed = edge.closed = PRUNED
    edge.futile, edge.settled = True, False
    tree.resting = None


def _something_left(node: Node) -> bool:
    """Return whether the state has work left or in flight."""
    return node.pending or not node.expansions or bool(_untried(node)) or any(edge.in_flight for edge in node.edges)


def _untried(node: Node) -> list[int]:
    """Return the indices of the open edges that were never followed."""
    return [i for i, edge in enumerate(node.edges) if edge.child is None and not edge.closed and not edge.in_flight]
