"""Search health: measured signs that a search cannot help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec

from exact.search.inspect.stats import stats
from exact.search.tree import Edge, Node, Tree, is_noop, is_refused

T = TypeVar("T")
Kind = Literal["priors", "saturated", "equal", "restores", "failures", "refused", "noops", "unused", "unsettled", "unjudged", "chance"]

FEW = 4
"""Minimum number of cases for a warning."""


class Symptom(msgspec.Struct, frozen=True, kw_only=True):
    """One warning."""

    kind: Kind
    figure: float
    """Measured figure; a share in [0, 1] unless the text says otherwise."""
    limit: float
    """Limit above which there is a warning."""
    text: str
    """One sentence with the figure, and one with the remedy."""


def health(tree: Tree, *, steps: int = 0, replayed: int = 0, unsettled: Sequence[bool] = ()) -> tuple[Symptom, ...]:
    """Return the warnings about a whole tree.

    steps: number of new actions tried in the environment. replayed: number of actions repeated to return to a state. unsettled: for each
    step, searched or committed, whether its page was still changing when it was observed.
    """
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
        _unsettled(unsettled),
        _unjudged(states),
        _chance(tree),
    ]
    return tuple(symptom for symptom in found if symptom is not None)


def _priors(states: Sequence[Node]) -> Symptom | None:
    """Warn of priors without spread."""
    wide = [state for state in states if len(state.edges) > 1]
    text = "in {:.0%} of states all priors are equal: the policy does not rank; draw more samples or lower its temperature"
    return _symptom("priors", _share(wide, lambda s: _spread([e.prior for e in s.edges]) < 0.01), 0.8, len(wide), text)


def _saturated(states: Sequence[Node]) -> Symptom | None:
    """Warn of values at the ends of the scale, which cannot rank."""
    evaluated = [state for state in states if state.evaluations and not state.terminated]
    text = "{:.0%} of states that are not ends are valued at 0 or 1: they rank nothing; use a finer-grained value function or more samples"
    return _symptom("saturated", _share(evaluated, lambda s: not 0.02 < (s.value or 0.0) < 0.98), 0.5, len(evaluated), text)


def _equal(states: Sequence[Node]) -> Symptom | None:
    """Warn of candidates that the search could not separate."""
    wide = [state for state in states if sum(edge.visits > 0 for edge in state.edges) > 1]
    text = "in {:.0%} of states all tried actions have the same Q: the value function does not see what they change"
    return _symptom("equal", _share(wide, lambda s: _spread([e.q for e in s.edges if e.visits]) < 0.01), 0.8, len(wide), text)


def _restores(steps: int, replayed: int) -> Symptom | None:
    """Warn of more replayed than new actions."""
    text = "{:.1f} actions are replayed for each new one: search less deep, or in an environment that has snapshots"
    return _symptom("restores", replayed / steps if steps else 0.0, 3.0, steps, text)


def _failures(tree: Tree) -> Symptom | None:
    """Warn of work that failed."""
    failed = sum(node.failures + sum(edge.failures for edge in node.edges) for node in tree.nodes)
    text = "{:.0%} of what was asked for failed: look at the failures in the journal before believing the result"
    return _symptom("failures", failed / tree.selections if tree.selections else 0.0, 0.2, tree.selections, text)


def _refused(edges: Sequence[Edge]) -> Symptom | None:
    """Warn of actions that the environment refuses."""
    tried = [edge for edge in edges if edge.child is not None or edge.closed]
    text = "{:.0%} of the actions tried were refused by the environment: the policy does not see what can be done"
    return _symptom("refused", _share(tried, is_refused), 0.3, len(tried), text)


def _noops(edges: Sequence[Edge]) -> Symptom | None:
    """Warn of actions that change nothing visible."""
    tried = [edge for edge in edges if edge.child is not None]
    text = (
        "{:.0%} of the actions taken changed nothing that can be seen: the policy wastes steps, or the fingerprint misses what they change"
    )
    return _symptom("noops", _share(tried, is_noop), 0.5, len(tried), text)


def _unused(tree: Tree) -> Symptom | None:
    """Warn of proposals that were never followed."""
    figures = stats(tree)
    text = "{:.0%} of the proposals were never followed: ask for fewer, or grant more iterations"
    return _symptom("unused", figures.unused or 0.0, 0.8, figures.proposals, text)


def _unsettled(steps: Sequence[bool]) -> Symptom | None:
    """Warn of pages that were observed while they changed."""
    text = (
        "{:.0%} of the steps were observed while the page was still changing: raise browser.settle_seconds, or give browser.masks for what "
        "changes by itself"
    )
    return _symptom("unsettled", _share(steps, bool), 0.2, len(steps), text)


def _unjudged(states: Sequence[Node]) -> Symptom | None:
    """Warn of evaluations that could not be read."""
    evaluated = [state for state in states if state.evaluation is not None]
    text = "{:.0%} of the states are unjudged: the judge's answers cannot be read, so the policy alone decides there; try another judge"
    return _symptom("unjudged", _share(evaluated, lambda s: s.evaluation is not None and s.evaluation.unjudged), 0.1, len(evaluated), text)


CHANCE = (
    "equal actions led to different states, so steps were repeated from then on: declare `deterministic=False` in the environment's "
    "Capabilities, or leave what always changes, such as a clock, out of the observation's fingerprint"
)
"""Sentence about an environment that turned out to be stochastic."""


def _chance(tree: Tree) -> Symptom | None:
    """Warn of an environment that is stochastic and does not say so."""
    return Symptom(kind="chance", figure=1.0, limit=0.0, text=CHANCE) if tree.presumed and tree.stochastic else None


def _symptom(kind: Kind, figure: float, limit: float, cases: int, text: str) -> Symptom | None:
    """Return a warning if the figure exceeds the limit and there are enough cases."""
    if figure <= limit or cases < FEW:
        return None
    return Symptom(kind=kind, figure=figure, limit=limit, text=text.format(figure))


def _share(cases: Sequence[T], is_so: Callable[[T], bool]) -> float:
    return sum(map(is_so, cases)) / len(cases) if cases else 0.0


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)
