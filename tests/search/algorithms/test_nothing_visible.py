"""An action that changes nothing visible: it is stepped once, is not judged again, may be proposed again, and is committed."""

from __future__ import annotations

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import ToyEdge, ToyState
from exact.search.base import Failure, Need, Selection
from exact.search.registry import BUILTIN, algorithm
from exact.search.rules.outage import unreadable
from tests.search.harness import Harness, graph

PICK = ToyEdge(to="a", prior=9.0)
ONLY = graph({"a": ToyState(edges={"pick": PICK}, looks=0.5)})


def made(name: str, **settings: object) -> SearchConfig:
    return SearchConfig(algorithm=name, iterations=8, k=3, **settings)  # type: ignore[arg-type]


def steps(run: Harness) -> int:
    return sum("step" in selection.needs for selection in run.asked)


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_every_algorithm_commits_it_where_the_policy_names_nothing_else(name: str) -> None:
    judged = list[Need]()

    def note(selection: Selection, need: Need) -> None:
        judged.extend([need] * (need not in ("step", "proposals", "sample")))

    run = Harness(ONLY, algorithm(made(name)), note)
    for _ in range(3):
        before = steps(run)
        run.search()
        assert run.commit() == "pick"
        assert steps(run) - before <= 1
    assert len(judged) <= 1, "only the first state is judged"


@pytest.mark.parametrize("name", sorted(set(BUILTIN) - {"react"}))
def test_it_is_committed_though_the_policy_cannot_name_another(name: str) -> None:
    """The policy's further answers cannot be read, which closes the root; the action that it named is still there."""

    def fault(selection: Selection, need: Need) -> Failure | None:
        asks = need in ("proposals", "sample") and run.tree.nodes[selection.node].edges
        return Failure(kind="answer", reason="no action in it") if asks else None

    run = Harness(ONLY, algorithm(made(name)), fault)
    run.search()
    assert unreadable(run.tree) == ""
    assert run.commit() == "pick"
