"""Early stopping: when a search may end before its iterations are used up."""

from __future__ import annotations

from exact.search.tree import Node, Tree


def clear_choice(tree: Tree, prior: float) -> str:
    """Return the reason to commit without a search; empty if a search is needed.

    It applies to a root that was evaluated and expanded, with nothing tried yet, if the top prior reaches `prior`, its action is not
    presumed to write, and the value has not fallen since the root before.
    """
    root = tree.root
    if not root.expansions or not root.edges or root.visited or root.value is None:
        return ""
    top = max(root.edges, key=lambda edge: edge.prior)
    before = root.parent.value if root.parent else None
    if top.prior < prior or top.writes or top.closed or (before is not None and root.value < before):
        return ""
    return f"clear without a search: prior {top.prior:.2f}"


def unconfirmed_end(tree: Tree, threshold: float) -> Node | None:
    """Return an end below the root whose value reaches a threshold and that has no independent evaluation yet."""
    good = (end for end in tree.ends if (end.value or 0.0) >= threshold and end.id not in tree.confirmed and not end.closed)
    return next((end for end in good if not end.pending and edges_to(tree, end) is not None), None)


def confirmed_end(tree: Tree, threshold: float) -> Node | None:
    """Return an end below the root that reaches a threshold and was confirmed by an independent evaluation."""
    good = (tree.nodes[id] for id, value in tree.confirmed.items() if value >= threshold)
    return next((end for end in good if (end.value or 0.0) >= threshold and edges_to(tree, end)), None)


def edges_to(tree: Tree, node: Node) -> list[int] | None:
    """Return the edge indices from the root to a node; None if it does not lie below, or an edge on the path is futile."""
    edges: list[int] = []
    while node is not tree.root:
        if node.parent is None or node.parent.edges[node.via].futile:
            return None
        edges.append(node.via)
        node = node.parent
    return edges[::-1]
