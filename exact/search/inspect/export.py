"""A tree as plain data: JSON, a networkx graph, GraphML, and the flat form in which it is copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    import networkx

    from exact.search.base import Fate
    from exact.search.tree import Edge, Node, Tree


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


class Kinds(NamedTuple):
    """Classes of the parts of a tree."""

    node: type[Node]
    edge: type[Edge]


def reduce_tree(tree: Tree, kinds: Kinds) -> tuple[Any, ...]:
    """Return what `copy` and `pickle` make a tree anew from: see `object.__reduce__`."""
    others = {name: value for name, value in vars(tree).items() if name != "nodes"}
    places = {id(part): place for place, part in _places(tree.nodes)}
    return _tree_of, (type(tree), kinds, _flat(tree.nodes), _named(others, places))


def reduce_node(node: Node, kinds: Kinds) -> tuple[Any, ...]:
    """Return what a node is made anew from: the tree around it."""
    return _part_of, (kinds, _flat(_around(node)), _At(node.id))


def reduce_edge(edge: Edge, kinds: Kinds) -> tuple[Any, ...]:
    """Return what an edge is made anew from: the tree around it, if it was followed."""
    if edge.child is None:
        return kinds.edge, tuple(getattr(edge, each.name) for each in fields(edge))
    parent = edge.child.parent
    assert parent is not None
    return _part_of, (kinds, _flat(_around(parent)), _At(parent.id, parent.edges.index(edge)))


class _At(NamedTuple):
    """Place of a node, or of one of its edges, in a flat tree."""

    node: int
    edge: int = -1


_Flat = dict[int, tuple[dict[str, Any], list[dict[str, Any]]]]
"""Fields of nodes and of their edges by the node's id, with ids in place of nodes. A copy of it needs no recursion as deep as the tree."""


def _places(nodes: Iterable[Node]) -> Iterator[tuple[_At, Node | Edge]]:
    for node in nodes:
        yield _At(node.id), node
        yield from ((_At(node.id, index), edge) for index, edge in enumerate(node.edges))


def _around(node: Node) -> list[Node]:
    """Return all nodes of the tree that a node belongs to."""
    stack = [node]
    found: dict[int, Node] = {}
    while stack:
        each = stack.pop()
        if each.id not in found:
            found[each.id] = each
            stack += [child for edge in each.edges for child in edge.outcomes]
            stack += [] if each.parent is None else [each.parent]
    return list(found.values())


def _flat(nodes: Iterable[Node]) -> _Flat:
    def of(part: Node | Edge, **changed: object) -> dict[str, Any]:
        return {each.name: getattr(part, each.name) for each in fields(part)} | changed

    return {
        node.id: (
            of(node, parent=None if node.parent is None else node.parent.id, edges=type(node.edges)()),
            [
                of(edge, child=None if edge.child is None else edge.child.id, fate=_alone(edge.fate))
                | {"others": [n.id for n in edge.others]}
                for edge in node.edges
            ],
        )
        for node in nodes
    }


def _alone(fate: Fate) -> Fate:
    return msgspec.structs.replace(fate, others=()) if fate.others else fate


def _whole(kinds: Kinds, flat: _Flat) -> dict[int, Node]:
    """Return the nodes of a flat tree, by id."""
    made = {id: kinds.node(**about) for id, (about, _) in flat.items()}
    for node, (_, edges) in zip(made.values(), flat.values(), strict=True):
        node.parent = None if node.parent is None else made[node.parent]  # type: ignore[index]
        found = list[Any]()
        for about in edges:
            others = tuple(made[id] for id in about["others"])
            fields = {name: value for name, value in about.items() if name != "others"}
            edge = kinds.edge(**fields | {"child": None if about["child"] is None else made[about["child"]]})
            if others:
                edge.others = others
            found.append(edge)
        node.edges = type(node.edges)(found)  # type: ignore[call-arg]
    return made


def _part_of(kinds: Kinds, flat: _Flat, at: _At) -> Node | Edge:
    return _found(at, _whole(kinds, flat))  # type: ignore[no-any-return]


def _tree_of(kind: type[Tree], kinds: Kinds, flat: _Flat, others: Mapping[str, Any]) -> Tree:
    found, nodes = kind.__new__(kind), _whole(kinds, flat)
    vars(found).update(nodes=list(nodes.values()), **{name: _found(value, nodes) for name, value in others.items()})
    return found


def _named(value: Any, places: Mapping[int, _At]) -> Any:
    """Return a value with the places of the nodes and edges in it."""
    return places[id(value)] if id(value) in places else _each(value, lambda part: _named(part, places))


def _found(value: Any, nodes: Mapping[int, Node]) -> Any:
    """Return a value with the nodes and edges whose places are in it."""
    if isinstance(value, _At):
        return nodes[value.node] if value.edge < 0 else nodes[value.node].edges[value.edge]
    return _each(value, lambda part: _found(part, nodes))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a container with its parts changed; anything else as it is."""
    match value:
        case msgspec.Struct():
            return type(value)(**{name: change(getattr(value, name)) for name in value.__struct_fields__})
        case tuple():
            return type(value)(*map(change, value)) if hasattr(value, "_fields") else tuple(map(change, value))
        case list():
            return [change(part) for part in value]
        case dict():
            return {key: change(part) for key, part in value.items()}
        case _:
            return value
