"""A tree as plain data."""

from __future__ import annotations

import io

import msgspec
import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.toy.known import chain, form
from exact.search.base import Stepped
from exact.search.inspect.export import to_graphml, to_json, to_networkx
from exact.search.mcts import MCTS
from tests.search.harness import Harness, failed


def searched() -> Harness:
    run = Harness(form(3), MCTS(iterations=30, k=4))
    run.search()
    return run


def test_json_holds_every_node_and_every_proposal() -> None:
    tree = searched().tree
    data = msgspec.json.decode(to_json(tree))
    assert [node["id"] for node in data["nodes"]] == [node.id for node in tree.nodes]
    assert [len(node["edges"]) for node in data["nodes"]] == [len(node.edges) for node in tree.nodes]


def test_the_graph_has_the_states_and_what_leads_to_them() -> None:
    tree = searched().tree
    graph = to_networkx(tree)
    assert networkx.is_arborescence(graph) and len(graph) == len(tree.nodes)
    for node in tree.nodes:
        assert graph.nodes[node.id]["visits"] == node.visits and graph.nodes[node.id].get("value") == node.value
        if (edge := node.edge) is not None and node.parent is not None:
            assert graph.edges[node.parent.id, node.id]["action"] == edge.action.key


def test_unvisited_edges_have_no_value() -> None:
    run = Harness(chain(2), MCTS(iterations=4, k=2))
    run.fault = lambda s, need: failed("model") if need == "value" and (s.edge == 0 or s.node == 1) else None
    run.search()
    graph = to_networkx(run.tree)
    assert "value" not in graph.nodes[1] and "q" not in graph.edges[0, 1] and graph.nodes[0]["value"] == 0.0


def test_a_subtree_that_was_dropped_is_left_out() -> None:
    run = searched()
    run.algorithm.advance(run.tree, 0, Stepped(fingerprint="elsewhere"))
    graph = to_networkx(run.tree)
    assert 0 < len(graph) < len(run.tree.nodes)
    assert [node for node, root in graph.nodes(data="root") if root] == [run.tree.root.id]


def test_graphml_reads_back_as_the_graph() -> None:
    tree = searched().tree
    graph = networkx.read_graphml(io.BytesIO(to_graphml(tree)), node_type=int)
    wanted = to_networkx(tree)
    assert set(graph) == set(wanted) and all(graph.nodes[node] == wanted.nodes[node] for node in wanted)
    assert {(a, b): d for a, b, d in graph.edges(data=True)} == {(a, b): d for a, b, d in wanted.edges(data=True)}


@given(text=st.text())
@pytest.mark.parametrize("field", ["fingerprint", "closed"])
def test_no_text_of_a_page_makes_graphml_that_does_not_read(field: str, text: str) -> None:
    tree = Harness(chain(2), MCTS(iterations=4, k=2)).tree
    setattr(tree.root, field, text)
    graph = networkx.read_graphml(io.BytesIO(to_graphml(tree)), node_type=int)
    assert len(graph.nodes[0][field]) == len(text)


def test_nodes_hold_figures_fingerprints_and_blob_ids_only() -> None:
    graph = to_networkx(searched().tree)
    assert {type(value) for _, facts in graph.nodes(data=True) for value in facts.values()} <= {bool, int, float, str}
