"""The committed steps of a report, and what went wrong on the way."""

from __future__ import annotations

from collections import Counter

from exact.report.model import data
from exact.report.model.nodes import traces
from exact.report.model.reading import Reading
from exact.report.model.text import in_words, one_line
from exact.runs.journal import events as ev
from exact.search.tree import Node


def steps(reading: Reading) -> tuple[data.CommittedStep, ...]:
    """Return every decision with its outcome."""
    return tuple(_step(reading, decided, committed, root) for decided, committed, root in reading.steps)


def _step(reading: Reading, decided: ev.Decided, committed: ev.Committed | None, root: Node) -> data.CommittedStep:
    seen, child, decision = reading.seen(root), reading.child(committed, root), decided.decision
    chosen = root.edges[decision.edges[0]]
    return data.CommittedStep(
        number=decided.step + 1,
        node=root.id,
        child=child.id if child else None,
        words=in_words(chosen.action, seen),
        reason=one_line(decision.reason),
        stopped=one_line(decided.stopped),
        value=decision.value,
        came=child.value if child else None,
        outcome=_outcome(committed),
        trouble=committed is None or bool(committed.refused) or committed.agrees is False,
        alternatives=tuple(
            data.ComparedAction(
                words=in_words(root.edges[a.edge].action, seen),
                prior=a.prior,
                visits=a.visits,
                value=a.value,
                chosen=a.edge == decision.edges[0],
            )
            for a in sorted(decision.alternatives, key=lambda a: (a.edge != decision.edges[0], -a.visits, -a.prior))
        ),
    )


def _outcome(committed: ev.Committed | None) -> str:
    if committed is None:
        return "uncertain: it was decided, but the journal does not say that it was done"
    if committed.refused:
        return f"refused by the real environment: {one_line(committed.refused)}"
    ended = ", and the episode ended" if committed.terminated else ""
    if committed.promoted:
        return f"done: the environment that the search had brought there became the real one{ended}"
    if committed.agrees is None:
        return f"done; the search had not seen where it leads{ended}"
    return f"done, as the search had seen it{ended}" if committed.agrees else f"done, but it led to another state than foreseen{ended}"


def outside(reading: Reading, nodes: tuple[data.TreeState, ...]) -> tuple[data.Trace, ...]:
    """Return all writes that were sent and all that was blocked, in order of nodes; then those of replays after a crash."""
    found = [trace for node in nodes for trace in node.traces]
    for rebuilt in reading.rebuilt:
        found += traces(rebuilt.effects, "replayed", reading.state.tree.root.id)
    return tuple(trace for trace in found if trace.write or trace.kind == "blocked")


def trouble(reading: Reading) -> tuple[tuple[int, str, int], ...]:
    """Return what drifted, failed, or led to another state than foreseen: node, reason, count."""
    found = [
        (node, f"{arrival.match}: {arrival.reason or 'another state was there'}")
        for node, each in reading.arrivals.items()
        for arrival in each
        if arrival.match not in ("exact", "equivalent")
    ]
    found += [(node, f"{failed.what}: {failed.reason}") for node, each in reading.failures.items() for failed in each]
    found += [
        (root.id, f"{committed.action}: {_outcome(committed)}")
        for _, committed, root in reading.steps
        if committed is not None and (committed.refused or committed.agrees is False)
    ]
    counted = Counter((node, one_line(reason)) for node, reason in found)
    return tuple((node, reason, times) for (node, reason), times in sorted(counted.items()))
