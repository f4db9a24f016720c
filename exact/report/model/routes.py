"""How environments reached states in an attempt: routes with their outcomes and seconds, snapshots, unused preparations.

The committed steps of a report, and the faults on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from exact.report.model import data
from exact.report.model.nodes import traces
from exact.report.model.reading import Reading
from exact.report.model.text import in_words, one_line
from exact.runs.journal import events as ev
from exact.search.tree import Node
from exact.text import counted


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Arrivals by one route with the same outcome."""

    route: str
    """Route name, as in exact/environments/restore/routes.py."""
    match: str
    times: int
    transitions: int
    """Steps replayed."""
    seconds: float
    """Seconds that the search waited."""


class Travel(msgspec.Struct, frozen=True, kw_only=True):
    """Arrivals of one attempt."""

    moved: tuple[Moved, ...]
    """Arrivals by route, most frequent first."""
    environments: int = 0
    """Maximum number of open environments, the live one included."""
    snapshots: int = 0
    snapshot_seconds: float = 0.0
    snapshot_bytes: int = 0
    """Maximum bytes of retained snapshots at once; 0 if they were not counted."""
    severed: tuple[tuple[str, int], ...] = ()
    """Connections that returns to snapshots found cut off, with the number of snapshots: those counted as `page`."""
    prepared: int = 0
    """Number of states to which a spare environment was brought during a model call."""
    prepared_seconds: float = 0.0
    used: int = 0
    """Number of those that were then requested."""


def travel(reading: Reading) -> Travel:
    """Return the sums over a journal."""
    arrivals = [arrival for each in reading.arrivals.values() for arrival in each]
    groups = {(arrival.route, arrival.match) for arrival in arrivals}
    moved = []
    for route, match in groups:
        alike = [each for each in arrivals if (each.route, each.match) == (route, match)]
        seconds, steps = sum(each.seconds for each in alike), sum(each.transitions for each in alike)
        moved.append(Moved(route=route, match=match, times=len(alike), transitions=steps, seconds=round(seconds, 6)))
    return Travel(
        moved=tuple(sorted(moved, key=lambda each: (-each.times, each.route, each.match))),
        environments=max((each.environments for each in arrivals), default=0),
        snapshots=len(reading.kept),
        snapshot_seconds=round(sum(each.seconds for each in reading.kept), 6),
        snapshot_bytes=max((each.bytes for each in reading.kept), default=0),
        severed=tuple(Counter(each.severed for each in reading.kept if each.severed).most_common()),
        prepared=len(reading.prepared),
        prepared_seconds=round(sum(each.seconds for each in reading.prepared), 6),
        used=sum(each.prepared for each in arrivals),
    )


def lines(travel: Travel, label: str = "arrivals: ") -> Iterator[str]:
    """Yield the sums as text; nothing if no environment was moved. `label` begins the line of arrivals."""
    if travel.moved:
        yield label + ", ".join(
            f"{each.times} by {each.route}{'' if each.match == 'exact' else f', {each.match}'} ({each.seconds:.1f} s)"
            for each in travel.moved
        )
    if travel.snapshots:
        size = f", {travel.snapshot_bytes / 1e6:.0f} MB at most" if travel.snapshot_bytes else ""
        opened = counted(travel.environments, "environment")
        yield f"{counted(travel.snapshots, 'snapshot')} in {travel.snapshot_seconds:.1f} s{size}; {opened} open at most"
    for what, times in travel.severed:
        yield f"{times} of them of the page only: restoring would cut off {what}"
    if travel.prepared:
        wasted = max(0, travel.prepared - travel.used)
        yield f"{counted(travel.prepared, 'state')} prepared in {travel.prepared_seconds:.1f} s: {travel.used} used, {wasted} wasted"


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
    """Return the moves that drifted, failed, or led to another state than foreseen: node, reason, count."""
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
