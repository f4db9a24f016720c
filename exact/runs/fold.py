"""The state of an attempt as a fold over its journal.

The driver changes this state by the same `apply` that reads a journal back, so a resumed attempt stands where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable

from exact.budget import Budget
from exact.config import Config
from exact.errors import JournalError
from exact.runs import events as ev
from exact.search.base import Algorithm, Selection, Stepped, Valued
from exact.search.registry import algorithm
from exact.search.tree import Tree


class State:
    """Where an attempt stands. Changed by `apply` alone."""

    def __init__(self, config: Config) -> None:
        self.algorithm: Algorithm = algorithm(config.search)
        limits = config.limits
        self.budget = Budget(
            {
                "money": limits.money,
                "calls": limits.calls,
                "actions": limits.actions,
                "transitions": limits.transitions,
                "evaluations": limits.evaluations,
            }
        )
        self.opened: ev.Opened | None = None
        self.tree = Tree(seed=config.seed)
        self.instruction = ""
        self.selections: dict[int, Selection] = {}
        """Asked and not yet told in full, by id."""
        self.acted: dict[tuple[int, int], ev.Acted] = {}
        """Speculative steps by (node, edge)."""
        self.arrivals: dict[int, ev.Arrived] = {}
        """The last arrival at each node."""
        self.effects: dict[int, ev.Acted | ev.Committed] = {}
        """What led to a node, by node id: the committed step where there was one."""
        self.calls: dict[str, ev.Called] = {}
        self.recalled: dict[tuple[int, str], ev.Recalled] = {}
        self.decided: ev.Decided | None = None
        """An intent whose end is not journalled."""
        self.decisions: list[ev.Decided] = []
        self.committed: list[ev.Committed] = []
        self.refused: dict[int, list[ev.Committed]] = {}
        """Committed actions that the real world refused, by the root they were refused at."""
        self.path: list[int] = []
        """Ids of the roots so far, the first and the present one included."""
        self.drifted = 0
        self.failures = 0
        self.judged: ev.Judged | None = None
        self.ended: ev.Ended | None = None
        self.scored: ev.Scored | None = None
        self.reflected: list[ev.Reflected] = []
        self.finished: ev.Finished | None = None
        self.elapsed = 0.0
        self.cost_known = True

    @property
    def started(self) -> bool:
        """Whether the first root has been observed."""
        return bool(self.path)

    @property
    def wrote(self) -> bool:
        """Whether a committed step changed the outside."""
        return any(effect.is_write for step in self.committed for effect in step.effects)

    def apply(self, event: ev.AnyEvent) -> None:
        """Take one event in. Raises JournalError if it does not follow from what came before."""
        self.elapsed = event.t
        if not (self._took_move(event) or self._took_fact(event)):
            self._take_mark(event)

    def _took_move(self, event: ev.AnyEvent) -> bool:
        """What changes the search."""
        match event:
            case ev.Reset():
                self._reset(event)
            case ev.Asked():
                self._asked(event)
            case ev.Told():
                self.tell(self._selection(event.selection), event)
            case ev.Released():
                self.algorithm.release(self.tree, self._selection(event.selection))
                del self.selections[event.selection]
            case ev.Decided():
                self.decided = event
                self.decisions.append(event)
            case ev.Committed():
                self._committed(event)
            case _:
                return False
        return True

    def _took_fact(self, event: ev.AnyEvent) -> bool:
        """What was paid for."""
        match event:
            case ev.Acted():
                self.acted[event.node, event.edge] = event
                self.budget.spend("transitions")
            case ev.Arrived():
                self.arrivals[event.node] = event
                self.drifted += event.verdict == "drifted"
                self.budget.spend("transitions", event.transitions)
            case ev.Rebuilt():
                self.budget.spend("transitions", event.transitions)
            case ev.Called():
                self._called(event)
            case ev.Recalled():
                self.recalled[event.node, event.kind] = event
            case _:
                return False
        return True

    def _take_mark(self, event: ev.AnyEvent) -> None:
        """Where the attempt stands."""
        match event:
            case ev.Opened():
                self.opened = event
                self.tree.seed = event.seed
            case ev.Failed():
                self.failures += 1
            case ev.Judged():
                self.judged = event
                self.budget.spend("evaluations", int(event.bought))
            case ev.Ended():
                self.ended = event
            case ev.Scored():
                self.scored = event
            case ev.Reflected():
                self.reflected.append(event)
            case ev.Finished():
                self.finished = event
            case ev.Resumed():
                self.finished = None

    def ask(self) -> ev.Asked:
        """Ask the algorithm; the event is to be journalled, not applied."""
        answer = self.algorithm.ask(self.tree)
        if isinstance(answer, Selection):
            self.selections[answer.id] = answer
        return ev.Asked(answer=answer)

    def tell(self, selection: Selection, event: ev.Told) -> None:
        """Hand a result in; the selection leaves the open ones when none of its needs is left."""
        self.algorithm.tell(self.tree, selection, event.result)
        if isinstance(event.result, Valued):
            self.budget.spend("evaluations")
        if isinstance(event.result, Stepped) and selection.edge is not None:
            child = self.tree.nodes[selection.node].edges[selection.edge].child
            if child is not None and (act := self.acted.get((selection.node, selection.edge))):
                self.effects[child.id] = act
            if child is not None and not child.closed:
                return
        del self.selections[selection.id]

    def _selection(self, id: int) -> Selection:
        if id not in self.selections:
            raise JournalError(f"a result for selection {id}, which is not open: the journal is not one attempt's")
        return self.selections[id]

    def _reset(self, event: ev.Reset) -> None:
        root = self.tree.root
        root.fingerprint, root.observation, root.screenshot = event.fingerprint, event.observation, event.screenshot
        self.instruction = event.instruction
        self.path.append(root.id)

    def _asked(self, event: ev.Asked) -> None:
        if self.ask() != ev.Asked(answer=event.answer):
            raise JournalError(f"at {event.t:.3f} s the search asks for something else than it did: written by another version of exact")

    def _called(self, event: ev.Called) -> None:
        self.calls[event.key] = event
        self.budget.spend("calls")
        self.budget.spend("tokens", event.usage.input_tokens + event.usage.output_tokens)
        self.cost_known = self.cost_known and event.usage.cost is not None
        self.budget.spend("money", event.reserved if event.usage.cost is None else event.usage.cost)

    def _committed(self, event: ev.Committed) -> None:
        self.decided = None
        self.committed.append(event)
        self.budget.spend("actions")
        self.budget.spend("transitions")
        if event.refused:
            self.refused.setdefault(self.tree.root.id, []).append(event)
            self.algorithm.refuse(self.tree, event.edge, event.refused)
            return
        seen = Stepped(
            fingerprint=event.fingerprint, terminated=event.terminated, observation=event.observation, screenshot=event.screenshot
        )
        self.algorithm.advance(self.tree, event.edge, seen)
        self.effects[self.tree.root.id] = event
        self.path.append(self.tree.root.id)


def fold(config: Config, journal: Iterable[ev.AnyEvent]) -> State:
    """The state that a journal's events lead to. Any prefix of a journal folds."""
    state = State(config)
    for event in journal:
        state.apply(event)
    return state
