"""How environments reached states in an attempt: routes with their outcomes and seconds, snapshots, unused preparations.

The committed steps of a report, and the faults on the way.

The first questions of a reader: the writes outside, and the step at which the attempt went wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from exact.environments.base import SAFE_METHODS, SideEffect
from exact.observation import Observation
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.text import LABEL, by_name, in_words, one_line
from exact.runs.journal import events as ev
from exact.search.base import Decision
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
        prepared=sum(each.ahead < 0 for each in reading.prepared),
        prepared_seconds=round(sum(each.seconds for each in reading.prepared), 6),
        used=sum(each.prepared for each in arrivals) + sum(each.ahead for each in reading.state.search.acted.values()),
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


BRIEF = 200
"""Maximum length of a reason in the list of steps, in characters."""


def steps(reading: Reading) -> tuple[data.CommittedStep, ...]:
    """Return every decision with its outcome, its time and its money."""
    ends = [(committed or decided).t for decided, committed, _ in reading.steps]
    times = [end - before for before, end in zip([0.0, *ends], ends, strict=False)]
    money = [paid - before for before, paid in zip([0.0, *reading.paid], reading.paid, strict=False)]
    return tuple(
        _step(reading, *step, seconds=seconds, money=paid) for step, seconds, paid in zip(reading.steps, times, money, strict=True)
    )


def _step(
    reading: Reading, decided: ev.Decided, committed: ev.Committed | None, root: Node, *, seconds: float, money: float
) -> data.CommittedStep:
    seen, child, decision = reading.seen(root), reading.child(committed, root), decided.decision
    index = decision.edges[0]
    chosen, behind = root.edges[index], child or root.edges[index].child
    return data.CommittedStep(
        number=decided.step + 1,
        node=root.id,
        child=child.id if child else None,
        words=in_words(chosen.action, seen),
        name=by_name(chosen.action, seen),
        key=str(reading.merged(behind).id) if behind else f"{root.id}.{index}",
        rationale=one_line(chosen.rationale, BRIEF),
        why=_why(decision, root, seen),
        seconds=seconds,
        money=money,
        value=decision.value,
        came=child.value if child else None,
        outcome=_outcome(committed),
        trouble=committed is None or bool(committed.refused) or withheld(committed) or committed.agrees is False,
        alternatives=tuple(
            data.ComparedAction(
                words=by_name(root.edges[a.edge].action, seen),
                visits=a.visits,
                value=a.value,
                chosen=a.edge == index,
                child=shown.id if (shown := _shown(reading, root, a.edge)) else None,
            )
            for a in sorted(decision.alternatives, key=lambda a: (a.edge != decision.edges[0], -a.visits, -a.prior))
        ),
    )


def _shown(reading: Reading, root: Node, edge: int) -> Node | None:
    """Return the state of the tree to which an action led."""
    child = root.edges[edge].child
    return reading.merged(child) if child else None


def _why(decision: Decision, root: Node, seen: Observation | None) -> str:
    """Return why an action was chosen: how it was rated against the best of the others."""
    others = [each for each in decision.alternatives if each.edge != decision.edges[0]]
    rated = [each for each in others if each.visits and each.value is not None]
    if decision.alternatives and not others:
        return "The only action proposed."
    if decision.value is None or not others:
        return one_line(f"Chosen: {decision.reason}.")
    if not rated:
        return one_line(f"Rated {decision.value:.2f}; no other action has a rating ({decision.reason}).")
    rival = max(rated, key=lambda each: each.value or 0.0)
    name = by_name(root.edges[rival.edge].action, seen, BRIEF)
    return one_line(f"Rated {decision.value:.2f} against {rival.value:.2f} for {name} ({decision.reason}).")


def _blocked_by(committed: ev.Committed) -> list[SideEffect]:
    """Return the writes of a committed step that were blocked, those included that its page sent beside the action."""
    return [effect for effect in committed.effects if effect.kind == "blocked" and effect.method not in SAFE_METHODS]


def withheld(committed: ev.Committed) -> bool:
    """Return whether a committed action was not fully carried out because its write was blocked."""
    return bool(_blocked_by(committed)) and not {"declined", "refused"}.isdisjoint(committed.info)


def not_let_out(committed: ev.Committed) -> str:
    """Return the request of a committed action that safety blocked, and its reason, as a sentence; empty if there is none."""
    if not withheld(committed):
        return ""
    effect = _blocked_by(committed)[-1]
    return one_line(f"Safety did not let {_request(effect)} out: {effect.detail or 'it is not allowed'}.")


def _outcome(committed: ev.Committed | None) -> str:
    if committed is None:
        return "uncertain: it was decided, but the journal does not say that it was done"
    if committed.refused:
        return f"refused by the real environment: {one_line(committed.refused)}"
    if withheld(committed):
        return f"its write was not sent: {one_line(_blocked_by(committed)[-1].detail) or 'it is not allowed'}"
    ended = ", and the episode ended" if committed.terminated else ""
    if committed.promoted:
        return f"done: the environment that the search had brought there became the real one{ended}"
    if committed.agrees is None:
        return f"done; the search had not seen where it leads{ended}"
    return f"done, as the search had seen it{ended}" if committed.agrees else f"done, but it led to another state than foreseen{ended}"


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


DROP = 0.1
"""Drop below the expected value from which a step counts as one at which the attempt may have gone wrong."""
_STANDS = "It stands."
_CONTAINED = {"sandbox": "It stayed in the sandbox.", "recording": "It was answered from recorded traffic."}
"""Fate of a write that did not reach a server outside, by the place that answered it."""


class Writes(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of an attempt, by destination."""

    committed: tuple[data.Write, ...]
    simulated: tuple[data.Write, ...]
    contained: tuple[data.Write, ...]
    blocked: tuple[data.Write, ...]
    refused: tuple[data.Write, ...]
    """Writes of committed actions that were blocked."""
    outside: int
    """Number of writes that are known to have been sent to a server outside."""
    unknown: bool
    """Flag: the destination of a write is unknown. Older journals do not record it."""


_Sent = tuple[SideEffect, data.Write]


def writes(reading: Reading) -> Writes:
    """Return all writes that were sent or blocked."""
    committed, simulated = list(_committed(reading)), list(_simulated(reading))
    every = [*committed, *simulated]
    return Writes(
        committed=tuple(write for effect, write in committed if effect.reach not in _CONTAINED),
        simulated=tuple(write for effect, write in simulated if effect.reach not in _CONTAINED),
        contained=tuple(
            msgspec.structs.replace(write, fate=_CONTAINED[effect.reach], undone=True)
            for effect, write in every
            if effect.reach in _CONTAINED
        ),
        blocked=tuple(_blocked(reading)),
        refused=tuple(_refused(reading)),
        outside=sum(effect.reach == "outside" for effect, _ in every),
        unknown=any(not effect.reach for effect, _ in every),
    )


def _committed(reading: Reading) -> Iterator[_Sent]:
    """Yield the writes of committed actions in order, then those that were repeated after a crash."""
    if reading.reset is not None:
        yield from _writes(reading.reset.effects, "the task's start", 0, _STANDS, undone=False)
    for decided, committed, root in reading.steps:
        if committed is not None:
            child = reading.child(committed, root)
            words = in_words(root.edges[decided.decision.edges[0]].action, reading.seen(root))
            fate = "The search had sent it in an environment that then became the real one: it stands." if committed.promoted else _STANDS
            yield from _writes(committed.effects, words, child.id if child else root.id, fate, undone=False)
    for rebuilt in reading.rebuilt:
        again = "It was sent again when the environment was built anew after a crash; the reset before it had undone the first."
        yield from _writes(rebuilt.effects, "a committed action", reading.state.search.tree.root.id, again, undone=False)


def _simulated(reading: Reading) -> Iterator[_Sent]:
    """Yield the writes of the search in order of states: of an action's first execution, and of replays."""
    free = str(reading.config.browser.speculation) == "free"
    fate = (
        "It was NOT undone: the search was allowed to write (browser.speculation is free)."
        if free
        else "It was undone with its environment."
    )
    promoted = {(root.id, committed.edge) for _, committed, root in reading.steps if committed is not None and committed.promoted}
    for (id, edge), acted in reading.state.search.acted.items():
        node = reading.state.search.tree.nodes[id]
        if (id, edge) not in promoted:
            yield from _writes(acted.effects, _words(reading, node, edge), reading.foreseen.get((id, edge), id), fate, undone=not free)
    for id, arrivals in reading.arrivals.items():
        for arrival in arrivals:
            yield from _writes(arrival.effects, f"the way to state {id}, gone again", id, fate, undone=not free)


def _blocked(reading: Reading) -> Iterator[data.Write]:
    """Yield the writes of the search that were blocked."""
    for (id, edge), acted in reading.state.search.acted.items():
        node = reading.state.search.tree.nodes[id]
        for effect in acted.effects:
            if effect.is_blocked:
                yield _write(effect, _words(reading, node, edge), reading.foreseen.get((id, edge), id), "It was not sent.", undone=True)


def _refused(reading: Reading) -> Iterator[data.Write]:
    """Yield the writes of committed actions that were blocked, with the reason of each."""
    for _, committed, root in reading.steps:
        for effect in _blocked_by(committed) if committed else ():
            node = reading.child(committed, root) or root
            fate = one_line(f"It was not sent: {effect.detail or 'it is not allowed'}.")
            yield _write(effect, _words(reading, root, committed.edge if committed else 0), node.id, fate, undone=True)


def wrong(reading: Reading, steps: tuple[data.CommittedStep, ...], ending: data.Ending) -> data.WrongStep | None:
    """Return the step at which the attempt went wrong; None if there is none.

    It is the first step that the live environment refused or answered differently, else the one with the largest drop.
    """
    if ending in ("solved", "unfinished"):
        return None
    for step in steps:
        if step.trouble:
            return data.WrongStep(step=step.number, why=f"{step.outcome[:1].upper()}{step.outcome[1:]}.")
    fell = [step for step in steps if step.value is not None and step.came is not None and step.value - step.came >= DROP]
    if not fell or ending not in ("unsolved", "judged"):
        return None
    step = max(fell, key=lambda each: (each.value or 0.0) - (each.came or 0.0))
    why = f"The search rated it {step.value:.2f}, and the state that it led to {step.came:.2f}: no other step fell further."
    return data.WrongStep(step=step.number, why=why)


def _writes(effects: tuple[SideEffect, ...], words: str, node: int, fate: str, *, undone: bool) -> Iterator[_Sent]:
    return ((effect, _write(effect, words, node, fate, undone=undone)) for effect in effects if effect.is_write)


def _write(effect: SideEffect, words: str, node: int, fate: str, *, undone: bool) -> data.Write:
    fields = tuple(one_line(name, LABEL) for name in effect.fields)
    return data.Write(request=_request(effect), words=words, node=node, fate=fate, undone=undone, fields=fields)


def _request(effect: SideEffect) -> str:
    status = f" ({effect.status})" if effect.status else ""
    detail = "" if effect.kind == "blocked" else effect.detail
    return one_line(f"{effect.method} {effect.url} {detail}".strip()) + status


def _words(reading: Reading, node: Node, edge: int) -> str:
    return in_words(node.edges[edge].action, reading.seen(node)) if edge < len(node.edges) else "an action"
