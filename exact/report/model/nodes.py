"""The nodes of a report's tree, with their model calls: prompts as sent, answers as received."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from exact.context import Evaluation, Reflection
from exact.environments.base import SideEffect
from exact.errors import JournalError
from exact.models.base import ChatAnswer
from exact.observation import Observation
from exact.reflection.record import marks
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.text import LABEL, LINE, Texts, in_words, one_line
from exact.runs.journal import events as ev
from exact.search.tree import Edge, Node
from exact.text import counted, inert

_KINDS: dict[str, data.Status] = {
    "no-op": "no-op", "drifted": "drifted", "action": "refused", "environment": "failed", "model": "failed", "exhausted": "exhausted",
    "pruned": "pruned", "budget": "failed", "answer": "failed", "unseen": "exhausted",
}  # fmt: skip
"""Status by the first word of a reason for closing."""


_REACHED = {
    "outside": "sent outside", "sandbox": "sent in the sandbox", "recording": "answered from recorded traffic", "": "sent",
}  # fmt: skip
"""Fate of a write, by the place that answered it."""


def nodes(reading: Reading, texts: Texts) -> tuple[data.TreeState, ...]:
    """Return all nodes in order of their ids. A node that another one represents is merged into that one."""
    return tuple(state(reading, node, texts) for node in reading.state.search.tree.nodes if reading.merged(node) is node)


def state(reading: Reading, node: Node, texts: Texts) -> data.TreeState:
    """Return all known data of one node."""
    seen, now = reading.seen(node), reading.state
    status, reason = _status(node, stochastic=reading.state.search.tree.stochastic)
    came = now.search.effects.get(node.id)
    ids = _ids(reading, node)
    born, iteration = reading.born[ids[0]]
    return data.TreeState(
        id=node.id,
        parent=node.parent.id if node.parent else None,
        via=node.via,
        depth=node.depth,
        born=born,
        iteration=iteration,
        status=status,
        reason=reason,
        committed=node.id in now.live.path,
        stood=reading.stood.get(node.id, 0),
        current=node is now.search.tree.root,
        pending=node.pending or (bool(node.in_flight) and node.evaluation is None),
        visits=node.visits,
        value=node.value,
        mean=_mean(node),
        evaluation=state_evaluation(node.evaluation, texts),
        title=one_line(seen.title, LABEL) if seen else "",
        url=one_line(seen.url) if seen else "",
        observation=texts.add(seen.text) if seen else None,
        picture=node.screenshot,
        choices=tuple(_choice(edge, seen, texts, reading.growth.edges.get((node.id, index), ())) for index, edge in enumerate(node.edges)),
        routes=_routes(reading, node, ids),
        traces=_traces(reading, node, ids[0]),
        note=one_line("; ".join(f"{name}: {text}" for name, text in came.info.items())) if came else "",
        marks=marks(seen) if seen else (),
        shown=tuple(
            _shown(now.search.recalled[id, kind]) for id in ids for kind in ("policy", "value") if (id, kind) in now.search.recalled
        ),
        calls=tuple(call for id in ids for call in calls(reading, id, texts)),
        failures=tuple(one_line(f"{failed.what}: {failed.reason}") for id in ids for failed in reading.failures.get(id, ())),
        seconds=came.seconds if came else None,
        spent=_spent([called for id in ids for called in reading.calls.get(id, ())]),
        commands=tuple(_said(each) for id in ids for each in reading.commands.get(id, ())),
    )


def _spent(calls: Sequence[ev.Called]) -> str:
    """Return the cost of some calls as text; empty for no calls."""
    if not calls:
        return ""
    read, written = sum(c.usage.input_tokens for c in calls), sum(c.usage.output_tokens for c in calls)
    money = sum(c.usage.cost or 0.0 for c in calls)
    price = f"${money:.4f}" if all(c.usage.cost is not None for c in calls) else f"at least ${money:.4f}"
    return f"{counted(len(calls), 'call')}, {read:,} tokens in, {written:,} out, {price}, {sum(c.seconds for c in calls):.1f} s"


def _said(sent: ev.Commanded) -> str:
    who = f" by {sent.by}" if sent.by else ""
    return one_line(f"{sent.command}{who} at {sent.t:.1f} s" + (f", refused: {sent.refused}" if sent.refused else ""))


def _ids(reading: Reading, node: Node) -> tuple[int, ...]:
    """Return the ids that a node represents, in order, its own last."""
    foreseen = reading.foreseen.get((node.parent.id, node.via), node.id) if node.parent else node.id
    return (foreseen, node.id) if foreseen != node.id and reading.merged(reading.state.search.tree.nodes[foreseen]) is node else (node.id,)


def _mean(node: Node) -> float | None:
    """Return the mean of all values backed up at a node and below."""
    own = (node.value or 0.0) * node.backups
    return (own + sum(edge.total for edge in node.edges)) / node.visits if node.visits else node.value


def _status(node: Node, *, stochastic: bool) -> tuple[data.Status, str]:
    """Return the status of a state, and the reason why the search does nothing more in it."""
    edge = node.edge
    if edge is not None and edge.child is not node and stochastic:
        times = sum(each.arrivals for each in edge.outcomes)
        return "outcome", f"another outcome of the action, which came {node.arrivals} of {times} times"
    if edge is not None and edge.child is not node:
        return "unlike", "the committed step led to another state than the search had seen"
    if node.blocked:
        return "blocked", "a write was blocked, so the state behind it is unknown"
    if node.unreached:
        return "unreached", "not tried: no environment came to the state before it, so the state behind it is unknown"
    if node.terminated:
        return "terminal", "the episode ended: nothing after it is seen"
    status, reason = closing(node.closed)
    return status, reason + _SETTLED if edge is not None and edge.settled and status == "exhausted" else reason


_SETTLED = "; it left the mean, and Q is its best continuation"
"""What exhaustion does to an action's value."""


def closing(reason: str) -> tuple[data.Status, str]:
    """Return the status that a reason for closing means, and the rest of the reason."""
    kind, _, rest = reason.partition(": ")
    return _KINDS.get(kind, "failed") if reason else "open", one_line(rest or reason)


def state_evaluation(evaluation: Evaluation | None, texts: Texts) -> data.StateEvaluation | None:
    """Return an evaluation in the report's form, its rationale among the long texts."""
    if evaluation is None:
        return None
    return data.StateEvaluation(
        value=evaluation.value,
        disagreement=evaluation.disagreement,
        samples=evaluation.samples,
        rationale=texts.add(evaluation.rationale),
        order_effect=evaluation.order_effect,
        within=evaluation.within,
        between=evaluation.between,
        arguments=tuple(data.DebateArgument(side=said.side, round=said.round, text=texts.add(said.text)) for said in evaluation.arguments),
        judges=tuple(one_line(judge) for judge in evaluation.judges),
    )


def _choice(edge: Edge, seen: Observation | None, texts: Texts, grew: Sequence[int]) -> data.ProposedAction:
    status, reason = closing(edge.closed)
    if edge.settled:
        reason += _SETTLED
    named = [seen.element(id) for id in edge.action.elements] if seen else []
    return data.ProposedAction(
        action=inert(edge.action.key, 4 * LINE),
        words=in_words(edge.action, seen),
        prior=edge.prior,
        visits=edge.visits,
        value=edge.value,
        rationale=texts.add(edge.rationale),
        child=edge.child.id if edge.child else None,
        status=status,
        reason=reason,
        futile=edge.futile,
        grew=tuple(grew),
        boxes=tuple(element.box for element in named if element is not None and element.box is not None),
    )


def _routes(reading: Reading, node: Node, ids: tuple[int, ...]) -> tuple[data.ArrivalRoute, ...]:
    """Return how an environment first reached this state, and how environments returned to it."""
    came = reading.reached.get((node.parent.id, node.via)) if node.parent and reading.foreseen[node.parent.id, node.via] == ids[0] else None
    back = [arrival for id in ids for arrival in reading.arrivals.get(id, ())]
    return tuple(_route(arrival) for arrival in ([came, *back] if came else back))


def _route(arrival: ev.Arrived) -> data.ArrivalRoute:
    return data.ArrivalRoute(
        node=arrival.node,
        route=arrival.route,
        match=arrival.match,
        transitions=arrival.transitions,
        resets=arrival.resets,
        reason=one_line(arrival.reason),
        seconds=arrival.seconds,
    )


def _traces(reading: Reading, node: Node, foreseen: int) -> tuple[data.Trace, ...]:
    """Return the side effects on the way to a node: by the search, at the commit, and by replays."""
    state, found = reading.state, list[data.Trace]()
    way = (node.parent.id, node.via) if node.parent else (-1, -1)
    acted, came = state.search.acted.get(way), state.search.effects.get(node.id)
    if acted is not None and reading.foreseen.get(way) == foreseen:
        found += traces(acted.effects, "simulated", node.id)
    if isinstance(came, ev.Committed):
        found += traces(came.effects, "committed", node.id)
    if reading.reset is not None and node.parent is None:
        found += traces(reading.reset.effects, "committed", node.id)
    for arrival in reading.arrivals.get(node.id, ()):
        found += traces(arrival.effects, "replayed", node.id)
    return tuple(found)


def traces(effects: Iterable[SideEffect], phase: str, node: int) -> list[data.Trace]:
    """Return side effects in the report's form."""
    return [
        data.Trace(
            kind=effect.kind,
            method=one_line(effect.method, 20),
            url=one_line(effect.url),
            status=effect.status,
            detail=one_line("; ".join(filter(None, (effect.detail, f"fields: {', '.join(effect.fields)}" if effect.fields else "")))),
            write=effect.is_write,
            what=_REACHED[effect.reach] if effect.is_write else effect.kind,
            phase="committed" if phase == "committed" else "simulated" if phase == "simulated" else "replayed",
            node=node,
        )
        for effect in effects
    ]


def _shown(recalled: ev.Recalled) -> data.RetrievedReflections:
    return data.RetrievedReflections(
        kind=recalled.kind,
        memory=one_line(recalled.memory, LABEL),
        reflections=tuple(reflection_record(each) for each in recalled.reflections),
    )


def remembered(reading: Reading, ending: str) -> tuple[data.RecalledReflection, ...]:
    """Return each reflection that was shown, once, with all states in which it was shown."""
    found = dict[str, Reflection]()
    where = dict[str, list[int]]()
    for recalled in reading.state.search.recalled.values():
        node = reading.merged(reading.state.search.tree.nodes[recalled.node])
        for reflection in recalled.reflections:
            found.setdefault(reflection.id, reflection)
            where.setdefault(reflection.id, []).append(node.id)
    return tuple(
        data.RecalledReflection(reflection=reflection_record(each), nodes=tuple(dict.fromkeys(where[id])), ending=ending)
        for id, each in found.items()
    )


def reflection_record(reflection: Reflection) -> data.ReflectionRecord:
    """Return a reflection with its provenance in one line."""
    r = reflection
    by = f"by {r.model}{f' ({r.prompt})' if r.prompt else ''}" if r.model else "by the embedded reflector"
    outcome = "" if r.outcome is None else f"outcome {r.outcome:.2f}{r.outcome_source and f' ({r.outcome_source})'}"
    parts = [
        r.task and f"from {r.task}",
        r.site and f"on {r.site}",
        r.run and f"run {r.run}",
        r.node >= 0 and f"node {r.node}",
        by,
        outcome,
    ]
    return data.ReflectionRecord(
        kind=r.kind,
        text=inert(r.text, 4 * LINE),
        action=one_line(r.action_label or r.action, LABEL),
        expected=one_line(r.expected),
        real=one_line(r.real),
        surprise=r.surprise,
        source=one_line(", ".join(part for part in parts if part)),
        tainted=r.tainted,
    )


def calls(reading: Reading, node: int, texts: Texts) -> tuple[data.ModelCall, ...]:
    """Return the calls at a node in order. A missing blob is a warning, and its content is left out."""
    return tuple(_call(reading, called, texts) for called in reading.calls.get(node, ()))


def _call(reading: Reading, called: ev.Called, texts: Texts) -> data.ModelCall:
    answers, raw = _answers(reading, called, texts)
    s, u = called.sampling, called.usage
    cached = ", ".join(f"{tokens:,} {what}" for tokens, what in ((u.cached_tokens, "cached"), (u.cache_write_tokens, "written")) if tokens)
    reasoning = f" ({u.reasoning_tokens:,} of reasoning)" if u.reasoning_tokens else ""
    money = "price unknown" if u.cost is None else f"${u.cost:.4f}"
    return data.ModelCall(
        role=one_line(called.role, LABEL),
        model=one_line(called.model, LABEL),
        prompt=one_line(called.prompt, LABEL),
        attempt=called.attempt,
        sampling=f"n {s.n}, temperature {s.temperature:g}, top_p {s.top_p:g}, at most {s.max_tokens} tokens",
        usage=f"{u.input_tokens:,} tokens in{cached and f' ({cached})'}, {u.output_tokens:,} out{reasoning}, {money}",
        seconds=called.seconds,
        request=_request(reading, called, texts),
        answers=answers,
        raw=raw,
    )


def _blob(reading: Reading, name: str, kind: Any) -> Any:
    """Return a blob's JSON as `kind`; None, with a warning, if it is missing or damaged."""
    try:
        return reading.blobs.read(name, kind)
    except JournalError as error:
        reading.warnings.append(f"A model call cannot be shown: {error}")
        return None


class _MessagePart(msgspec.Struct):
    text: str = ""
    image: str = ""


class _Message(msgspec.Struct):
    role: str
    parts: tuple[_MessagePart, ...]


def _request(reading: Reading, called: ev.Called, texts: Texts) -> tuple[data.PromptTurn, ...]:
    messages: tuple[_Message, ...] = _blob(reading, called.request, tuple[_Message, ...]) or ()
    return tuple(data.PromptTurn(role=one_line(m.role, LABEL), text=texts.add(_written(m))) for m in messages)


def _written(message: _Message) -> str:
    return "\n".join(part.text or f"[picture {part.image[:12]}]" for part in message.parts)


def _answers(reading: Reading, called: ev.Called, texts: Texts) -> tuple[tuple[data.PromptTurn, ...], int | None]:
    answer: ChatAnswer | None = _blob(reading, called.answer, ChatAnswer)
    if answer is None:
        return (), None
    return tuple(
        data.PromptTurn(role=one_line(choice.finish, LABEL), text=texts.add(choice.shown)) for choice in answer.choices
    ), texts.add(answer.raw)
