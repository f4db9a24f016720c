"""A tree as plain data."""

from __future__ import annotations

import msgspec

from exact.search.tree import Edge, Node, Tree


def to_json(tree: Tree) -> bytes:
    """Every node and edge with its statistics, as indented JSON."""
    data = {
        "root": tree.root.id,
        "iterations": tree.iterations,
        "nodes": [_node(node) for node in tree.nodes],
    }
    return msgspec.json.format(msgspec.json.encode(data)) + b"\n"


def _node(node: Node) -> dict[str, object]:
    return {
        "id": node.id,
        "parent": node.parent.id if node.parent else None,
        "via": node.via,
        "depth": node.depth,
        "fingerprint": node.fingerprint,
        "observation": node.observation,
        "screenshot": node.screenshot,
        "terminated": node.terminated,
        "held": node.held,
        "visits": node.visits,
        "evaluation": node.evaluation,
        "closed": node.closed,
        "edges": [_edge(edge) for edge in node.edges],
    }


def _edge(edge: Edge) -> dict[str, object]:
    return {
        "action": edge.action.key,
        "prior": edge.prior,
        "visits": edge.visits,
        "value": edge.value,
        "child": edge.child.id if edge.child else None,
        "closed": edge.closed,
        "rationale": edge.rationale,
    }
