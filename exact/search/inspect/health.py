"""Search health: signs that a search cannot help, each with its figure. What is warned of is measured, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec

from exact.search.inspect.stats import stats
from exact.search.tree import Edge, Node, Tree

T = TypeVar("T")
Kind = Literal["priors", "saturated", "equal", "restores", "failures", "refused", "noops", "unused"]

FEW = 4
"""Below so many cases nothing is said."""


class Symptom(msgspec.Struct, frozen=True, kw_only=True):
    """One warning."""

    kind: Kind
    figure: float
    """What was measured; a share in [0, 1] unless the text says otherwise."""
    limit: float
    """From where it is warned of."""
    text: str
    """One sentence with the figure, and one with what to do."""


def health(tree: Tree, *, steps: int = 0, replayed: int = 0) -> tuple[Symptom, ...]:
    """The warnings about a whole tree. `steps`: new actions tried in the environment; `replayed`: actions done again to get back to a
    state."""
    states = list(tree.walk(tree.nodes[0]))
    edges = [edge for state in states for edge in state.edges]
    found = [
        _priors(states),
        _saturated(states),
        _equal(states),
        _restores(steps, replayed),
        _failures(tree),
        _refused(edges),
        _noops(edges),
        _unused(tree),
    ]
    return tuple(symptom for symptom in found if symptom is not None)


def _priors(states: Sequence[Node]) -> Symptom | None:
    """No spread: the policy holds all its proposals for equally likely."""
    wide = [state for state in states if len(state.edges) > 1]
    text = "in {:.0%} of states all priors are equal: the policy does not rank; draw more samples or lower its temperature"
    return _symptom("priors", _share(wide, lambda s: _spread([e.prior for e in s.edges]) < 0.01), 0.8, len(wide), text)


def _saturated(states: Sequence[Node]) -> Symptom | None:
    """Values at the ends of the scale cannot rank."""
    judged = [state for state in states if state.evaluations and not state.terminated]
    text = "{:.0%} of states that are not ends are valued at 0 or 1: such values rank nothing; use a judge of finer grain or more samples"
    return _symptom("saturated", _share(judged, lambda s: not 0.02 < (s.value or 0.0) < 0.98), 0.5, len(judged), text)


def _equal(states: Sequence[Node]) -> Symptom | None:
    """Candidates that a search could not tell apart."""
    wide = [state for state in states if sum(edge.visits > 0 for edge in state.edges) > 1]
    text = "in {:.0%} of states all tried actions have the same Q: the value function does not see what they change"
    return _symptom("equal", _share(wide, lambda s: _spread([e.q for e in s.edges if e.visits]) < 0.01), 0.8, len(wide), text)


def _restores(steps: int, replayed: int) -> Symptom | None:
    """Thrashing: more is done to get back than to get on."""
    text = "{:.1f} actions are replayed for each new one: search less deep, or in an environment that has snapshots"
    return _symptom("restores", replayed / steps if steps else 0.0, 3.0, steps, text)


def _failures(tree: Tree) -> Symptom | None:
    """Work that broke."""
    failed = sum(node.failures + sum(edge.failures for edge in node.edges) for node in tree.nodes)
    text = "{:.0%} of what was asked for failed: look at the failures in the journal before believing the result"
    return _symptom("failures", failed / tree.selections if tree.selections else 0.0, 0.2, tree.selections, text)


def _refused(edges: Sequence[Edge]) -> Symptom | None:
    """Actions that the environment does not take."""
    tried = [edge for edge in edges if edge.child is not None or edge.closed]
    text = "{:.0%} of the actions tried were refused by the environment: the policy does not see what can be done"
    return _symptom("refused", _share(tried, lambda e: e.closed.startswith("action")), 0.3, len(tried), text)


def _noops(edges: Sequence[Edge]) -> Symptom | None:
    """Actions after which everything looks as before."""
    tried = [edge for edge in edges if edge.child is not None]
    text = (
        "{:.0%} of the actions taken changed nothing that can be seen: the policy wastes steps, or the fingerprint misses what they change"
    )
    return _symptom("noops", _share(tried, lambda e: e.closed.startswith("no-op")), 0.5, len(tried), text)


def _unused(tree: Tree) -> Symptom | None:
    """Proposals that were paid for and never followed."""
    figures = stats(tree)
    text = "{:.0%} of the proposals were never followed: ask for fewer, or grant more iterations"
    return _symptom("unused", figures.unused or 0.0, 0.8, figures.proposals, text)


def _symptom(kind: Kind, figure: float, limit: float, cases: int, text: str) -> Symptom | None:
    if figure <= limit or cases < FEW:
        return None
    return Symptom(kind=kind, figure=figure, limit=limit, text=text.format(figure))


def _share(cases: Sequence[T], is_so: Callable[[T], bool]) -> float:
    return sum(map(is_so, cases)) / len(cases) if cases else 0.0


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)
