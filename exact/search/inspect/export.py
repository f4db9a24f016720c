"""A tree as plain data: JSON, a networkx graph, GraphML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from exact.search.tree import Edge, Node, Tree

if TYPE_CHECKING:
    import networkx


def to_json(tree: Tree) -> bytes:
    """Return every node and edge with its statistics, as indented JSON."""
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
        "blocked": node.blocked,
        **({"unreached": True} if node.unreached else {}),
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


def to_networkx(tree: Tree) -> networkx.DiGraph[int]:
    """Return the states from the first root down as a graph, keyed by node id, with scalar attributes.

    Nodes: `root`, `depth`, `fingerprint`, `observation`, `screenshot` (blob ids), `terminated`, `blocked`, `visits`, `evaluations`,
    `proposals`, `closed`, and `value` (V) if there is one. Edges: `index`, `action`, `prior`, `visits`, `closed`, `rationale`, and `q` if
    it was visited. Actions that were never followed lead nowhere, so they are counted in `proposals` only. A merged state has several edges
    to it.
    """
    import networkx

    graph: networkx.DiGraph[int] = networkx.DiGraph()
    states = list(tree.walk(tree.nodes[0]))
    for node in states:
        graph.add_node(node.id, **_state(tree, node))
    for node in states:
        for index, edge in enumerate(node.edges):
            for child in edge.outcomes:
                graph.add_edge(node.id, child.id, **_step(index, edge))
    return graph


def to_graphml(tree: Tree) -> bytes:
    """Return the same graph as GraphML, for Gephi, yEd or networkx. Characters that XML cannot hold become U+FFFD."""
    import networkx

    graph = to_networkx(tree)
    for *_, attributes in [*graph.nodes(data=True), *graph.edges(data=True)]:
        for name, value in attributes.items():
            if isinstance(value, str):
                attributes[name] = _UNFIT.sub("\ufffd", value)
    return ("\n".join(networkx.generate_graphml(graph)) + "\n").encode()


_UNFIT = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids, and the carriage return, which readers turn into a line feed."""


def _state(tree: Tree, node: Node) -> dict[str, object]:
    facts: dict[str, object] = {
        "root": node is tree.root,
        "depth": node.depth,
        "fingerprint": node.fingerprint,
        "observation": node.observation,
        "screenshot": node.screenshot,
        "terminated": node.terminated,
        "blocked": node.blocked,
        **({"unreached": True} if node.unreached else {}),
        "visits": node.visits,
        "evaluations": node.evaluations,
        "proposals": len(node.edges),
        "closed": node.closed,
    }
    return facts if node.value is None else facts | {"value": node.value}


def _step(index: int, edge: Edge) -> dict[str, object]:
    facts: dict[str, object] = {
        "index": index,
        "action": edge.action.key,
        "prior": edge.prior,
        "visits": edge.visits,
        "closed": edge.closed,
        "rationale": edge.rationale,
    }
    return facts if edge.value is None else facts | {"q": edge.value}
