"""How environments reached states in an attempt: routes with their outcomes and seconds, snapshots, unused preparations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from exact.counted import counted
from exact.report.model.reading import Reading


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
    """Maximum bytes of retained snapshots at once; 0 where they were not counted."""
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
    """Yield the sums as text; nothing where no environment was moved. `label` begins the line of arrivals."""
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
