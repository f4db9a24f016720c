"""When a search may end before its iterations are used up."""

from __future__ import annotations

from exact.search.tree import Node, Tree


def clear_choice(tree: Tree, prior: float) -> str:
    """Whether to commit without a search: why, or empty.

    At a root that was judged and proposed in, with nothing tried yet: the top prior reaches `prior`, its action is not presumed to
    write, and the value has not fallen since the root before.
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
    """An end below the root whose value reaches a threshold, and which no independent judgement has looked at yet."""
    good = (end for end in tree.ends if (end.value or 0.0) >= threshold and end.id not in tree.confirmed and not end.closed)
    return next((end for end in good if not end.pending and edges_to(tree, end) is not None), None)


def confirmed_end(tree: Tree, threshold: float) -> Node | None:
    """An end below the root that reaches a threshold and was confirmed at that height."""
    good = (tree.nodes[id] for id, value in tree.confirmed.items() if value >= threshold)
    return next((end for end in good if (end.value or 0.0) >= threshold and edges_to(tree, end)), None)


def edges_to(tree: Tree, node: Node) -> list[int] | None:
    """Indices of the edges from the root to a node; None where it does not lie below, or the way there is refused."""
    edges: list[int] = []
    while node is not tree.root:
        if node.parent is None or node.parent.edges[node.via].futile:
            return None
        edges.append(node.via)
        node = node.parent
    return edges[::-1]
