"""The state of an attempt as a fold over its journal.

A running attempt changes this state by the same `apply` that reads a journal back, so a resumed attempt is in the state where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from exact.action import Action
from exact.budget import Budget
from exact.config import Config, RecordedConfig, SearchConfig
from exact.environments.base import SideEffect
from exact.errors import JournalError
from exact.runs.journal import events as ev
from exact.runs.journal.budgets import AttemptBudgets, benchmark_scores_in, evaluations_in
from exact.runs.journal.digest import beyond
from exact.search.base import Algorithm, Diverged, Done, Result, Selection, Stepped, Wait
from exact.search.intervention import expand, prune, reserve_recorded
from exact.search.registry import algorithm
from exact.search.rules.afford import Replans
from exact.search.rules.outage import reopen_outages
from exact.search.tree import Edge, Node, SearchError, Tree, is_noop
from exact.search.work import Work

MOST_CHANGES = 3
"""Actions in a row that do not count, since each was refused on a page that had changed by itself. A page may never stop changing."""
WAIT = Action("wait", (), "wait")
"""What is journalled of a state that changed by itself: time passed. Another environment waits too to come there."""

StepEvent = TypeVar("StepEvent", ev.Acted, ev.Committed)


class AskMoment(NamedTuple):
    """The part of an agent's context that is taken from the search at an ask, so that a resumed attempt shows the agent the same."""

    root_depth: int
    """Depth of the root in steps from the task's start."""
    actions_left: int | None
    """Actions that may still be committed; None where they are not capped."""
    tried: tuple[int, ...]
    """Indices of the node's edges that must not be committed, or change nothing. A failure of the infrastructure is no such reason."""


EVALUATIONS = 3
"""Evaluations of one state by `value.kind: llm` if the configuration sets no number: see docs/results/search.md."""


class AttemptState:
    """The state of an attempt. Changed by `apply`, and by the ask of a running attempt, alone."""

    def __init__(self, config: Config) -> None:
        self.algorithm: Algorithm = algorithm(_settled(config))
        self._has_removed_rules = isinstance(config, RecordedConfig) and any(each.startswith("search.") for each in config.removed)
        self._budgets = AttemptBudgets(config)
        self._moments: dict[int, AskMoment] = {}
        self.opened: ev.Opened | None = None
        self.tree = Tree(seed=config.seed)
        self.instruction = ""
        self.acted: dict[tuple[int, int], ev.Acted] = {}
        """Simulated steps, by (node, edge)."""
        self.acted_at = set[int]()
        """Ids of the nodes at which simulated steps were taken."""
        self.arrivals: dict[int, ev.Arrived] = {}
        """The last arrival at each node."""
        self.effects: dict[int, ev.Acted | ev.Committed] = {}
        """Steps that led to a node, by node id: the committed step where there was one."""
        self.calls: dict[str, ev.Called] = {}
        """Model calls, by key."""
        self.recalled: dict[tuple[int, str], ev.Recalled] = {}
        """Recalled reflections, by (node, kind)."""
        self.marked: dict[str, tuple[str, ...]] = {}
        """What the detector model found in observations, by the names of their blobs; those that were shown or examined."""
        self.decided: ev.Decided | None = None
        """Intent of a commit whose outcome is not journalled yet."""
        self.done: str | None = None
        """Reason why the algorithm ended the search; None once anything has changed the search since."""
        self.plan: tuple[int, ...] = ()
        """Edges left of a plan whose last step led to the state that the search had seen."""
        self.decisions: list[ev.Decided] = []
        """All intents, in order."""
        self.committed: list[ev.Committed] = []
        """All committed steps, in order, those that were refused included."""
        self.refused: dict[int, list[ev.Committed]] = {}
        """Committed actions that the live environment refused, by the id of the root at which they were."""
        self.changes = 0
        """Actions in a row that were refused since the state had changed by itself."""
        self.path: list[int] = []
        """Ids of the roots so far, the first and the present one included."""
        self.diverged: dict[int, Diverged] = {}
        """Other states that were met on the way to a selection's node, by selection."""
        self.rolled: dict[tuple[int, int, int], list[ev.RolledStep]] = {}
        """Steps of rollouts, by (node, policy, draw)."""
        self.answered: dict[str, Result] = {}
        """Results, by the digest of what the agent was shown."""
        self.writing: set[str] = set()
        """Labels of actions that wrote, or would have if they had not been blocked."""
        self.gathering = True
        """Whether no result of this round of selections has come, so that it may grow. For runs in rounds: see attempt/executor.py."""
        self.commanded: dict[str, ev.Commanded] = {}
        """Viewers' commands, by id."""
        self.replies: dict[str, ev.Commanded] = {}
        """Viewers' answers, by the id of the question."""
        self.questions: dict[str, ev.PersonAsked] = {}
        """Questions to a person without an answer yet, by id."""
        self.touched = 0
        """Answers and interventions of people that change what the agent does."""
        self.paused = False
        """Whether a viewer's pause is in force."""
        self.stopped = False
        """Whether a viewer stopped the search: nothing more is searched in this attempt."""
        self.ordered: int | None = None
        """The root's edge that a viewer wants committed next; None where the search decides."""
        self.wanted: list[int] = []
        """Ids of nodes that viewers asked to be expanded next."""
        self.late = 0
        """Results that came after their selection was closed."""
        self.reused = 0
        """Results that answer an equal question asked before."""
        self.drifted = 0
        """Arrivals at another state than the node's."""
        self.restores = 0
        """Arrivals at a node by another route than `reuse` and `advance`."""
        self.informed = 0
        """Evaluations by an oracle that hold the benchmark's score."""
        self.failures = 0
        """Calls and environments that failed."""
        self.lasting_failures = set[str]()
        """Reasons of the failures that resuming cannot help."""
        self.rebuilt = 0
        """Steps that rebuilt the live environment after a crash."""
        self.judged: ev.Judged | None = None
        self.ended: ev.Ended | None = None
        self.scored: ev.Scored | None = None
        self.reflected: list[ev.Reflected] = []
        self.finished: ev.Finished | None = None
        self.isolated: bool | None = None
        """Whether a reset of the environment undoes every side effect; None before it was reset, or where that was not recorded."""
        self.elapsed = 0.0
        """Seconds since the journal was opened, at the last event that is no ask."""
        self.cost_known = True
        """False once the price of a call was unknown."""
        self.unaccounted = 0
        """Requests to models that were given up on. Their cost is in no sum."""

    @property
    def started(self) -> bool:
        """The first root has been observed."""
        return bool(self.path)

    @property
    def selections(self) -> dict[int, Selection]:
        """Selections that are asked and not yet told in full, by id."""
        return {id: work.selection for id, work in self.tree.open.items()}

    @property
    def carried_out(self) -> list[ev.Committed]:
        """Committed steps that the live environment did not refuse, in order."""
        return [step for step in self.committed if not step.refused]

    @property
    def actions(self) -> tuple[str, ...]:
        """Texts of the agent's actions that were carried out, in order."""
        return tuple(step.action for step in self.carried_out if not step.changed)

    @property
    def wrote(self) -> bool:
        """A committed step changed something outside."""
        return any(effect.is_write for step in self.committed for effect in step.effects)

    @property
    def is_resumable(self) -> bool:
        """False where the live environment cannot be rebuilt, because a committed step wrote to what no reset undoes."""
        return not self.wrote or self.isolated is not False

    @property
    def budget(self) -> Budget:
        """Budget of the task."""
        return self._budgets.task

    @property
    def search(self) -> Budget:
        """Budget of the present search, which ends with the next commit."""
        return self._budgets.search

    @property
    def search_began(self) -> float:
        """Start of the present search, in seconds since the journal was opened."""
        return self._budgets.search_began

    def scope(self, selection: int) -> Budget:
        """Return the budget of a selection's work; -1: the task's. Work of an earlier search counts in the task's."""
        return self._budgets.scope(selection)

    def moment(self, selection: int, node: Node) -> AskMoment:
        """Return what a context takes from the search: at the ask of a selection, or now where the selection is not open."""
        return self._moments.get(selection) or self._moment(node)

    def apply(self, event: ev.AnyEvent) -> None:
        """Apply one event. Raises JournalError where it does not follow from the events before."""
        self._check_place(event)
        if not isinstance(event, ev.Asked):  # so that an ask follows from the other events alone
            self.elapsed = event.t
        if not (self._applied_move(event) or self._applied_fact(event) or self._applied_question(event)):
            self._apply_mark(event)

    def _check_place(self, event: ev.AnyEvent) -> None:
        """Raise JournalError where an event names a state or an action that is not there. Readers look it up later."""
        place = getattr(event, "node", self.tree.root.id)
        if not isinstance(event, ev.Commanded) and not 0 <= place < len(self.tree.nodes):  # a viewer may name any state, and is refused
            raise JournalError(f"at {event.t:.3f} s an event names state {place}, which is not there: the journal is not one attempt's")
        if isinstance(event, ev.Acted | ev.Committed) and not 0 <= event.edge < len(self.tree.nodes[place].edges):
            raise JournalError(f"at {event.t:.3f} s a step takes action {event.edge} of state {place}, which has none such")

    def replay(self, event: ev.AnyEvent) -> None:
        """Apply an event of a recorded journal.

        An ask changes the tree, so the algorithm is asked again, and must answer as it did. If its rules were removed since, the recorded
        work is reserved as it is. Raises JournalError.
        """
        if isinstance(event, ev.Asked):
            self.replan()
            answer = self.requested() or (self._reserved(event) if self._has_removed_rules else self.algorithm.ask(self.tree))
            if answer != event.answer:
                raise JournalError(f"at {event.t:.3f} s the search asks for other work than it did: recorded by another version of exact")
        self.apply(event)

    def _reserved(self, event: ev.Asked) -> Selection | Wait | Done:
        """Reserve the work that a journal recorded, and return the recorded answer. Raises JournalError."""
        if isinstance(event.answer, Selection):
            try:
                reserve_recorded(self.tree, event.answer)
            except SearchError as error:
                raise JournalError(f"at {event.t:.3f} s the search asks for work that is not there: {error}") from error
        return event.answer

    def _take_alternatives(self, event: ev.Decided) -> None:
        """Take over the recorded Q and visits of the root's actions: the rules that made them are gone."""
        for each in event.decision.alternatives:
            if 0 <= each.edge < len(self.tree.root.edges) and each.value is not None:
                edge = self.tree.root.edges[each.edge]
                edge.q, edge.visits = each.value, each.visits

    def replan(self) -> None:
        """Let an algorithm that plans by its budget know, before an ask, how many iterations are left."""
        if isinstance(self.algorithm, Replans):
            self.algorithm.replan(self.tree, self._budgets.affordable_iterations(self.tree, self.elapsed))

    def requested(self) -> Selection | None:
        """Reserve work that a viewer asked for, which comes before the algorithm's own; None where none can begin."""
        for id in list(self.wanted):
            node = self.tree.nodes[id]
            if not node.pending:
                self.wanted.remove(id)
                if (selection := expand(self.algorithm, self.tree, node)) is not None:
                    return selection
        return None

    def _applied_move(self, event: ev.AnyEvent) -> bool:
        """Apply an event that changes the search; False where it is no such event."""
        match event:
            case ev.Reset():
                self._reset(event)
            case ev.Asked():
                self._asked(event)
                return True
            case ev.Told():
                self._told(self._selection(event.selection), event)
            case ev.Released():
                self.algorithm.release(self.tree, self._selection(event.selection))
                self._close(event.selection)
            case ev.Commanded():
                self._commanded(event)
            case ev.Decided():
                if self._has_removed_rules:
                    self._take_alternatives(event)
                self.decided = event
                self.decisions.append(event)
            case ev.Committed():
                self._committed(event)
            case _:
                return False
        self.done, self.gathering = None, not self.tree.open
        self._budgets.count_iterations(self.tree)
        return True

    def _applied_fact(self, event: ev.AnyEvent) -> bool:
        """Apply an event that cost something; False where it is no such event."""
        match event:
            case ev.Acted():
                self.acted[event.node, event.edge] = self._attributed(event, event.node)
                self.acted_at.add(event.node)
                self.scope(event.selection).spend("transitions")
            case ev.RolledStep():
                self.rolled.setdefault((event.node, event.policy, event.draw), []).append(event)
                self.scope(event.selection).spend("transitions")
            case ev.Arrived():
                self._arrived(event)
            case ev.Rebuilt():  # a crash is not the agent's fault, so its budget does not pay for the way back
                self.rebuilt += event.transitions
            case ev.Prepared():
                self.budget.spend("transitions", event.transitions)
            case ev.Called():
                self._called(event)
            case ev.Unaccounted():
                self._unaccounted(event)
            case ev.Recalled():
                self.recalled[event.node, event.kind] = event
            case ev.Marked():
                self.marked[event.observation] = event.model or ()
            case ev.Late():
                self.late += 1
                self._answered(event)
            case _:
                return False
        return True

    def _applied_question(self, event: ev.AnyEvent) -> bool:
        """Apply a question to a person, or its answer; False where it is no such event."""
        match event:
            case ev.PersonAsked():
                self.questions[event.id] = event
            case ev.PersonAnswered():
                self.questions.pop(event.id, None)
                self.touched += event.touched
            case _:
                return False
        return True

    def _apply_mark(self, event: ev.AnyEvent) -> None:
        """Apply an event that marks a stage of the attempt."""
        match event:
            case ev.Opened():
                self.opened = event
                self.tree.seed = event.seed
            case ev.Failed():
                self.failures += event.what != "budget"
                if not event.resumable:
                    self.lasting_failures.add(event.reason)
                self.scope(event.selection).spend("transitions", event.transitions)
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
                if event.repaired and isinstance(self.algorithm, Work):
                    reopen_outages(self.algorithm, self.tree)
                    self.done, self.gathering = None, not self.tree.open

    # --- moves

    def _reset(self, event: ev.Reset) -> None:
        root = self.tree.root
        root.fingerprint, root.observation, root.screenshot = event.fingerprint, event.observation, event.screenshot
        self.instruction, self.isolated = event.instruction, event.isolated
        self._budgets.search_began = event.t
        self.path.append(root.id)

    def _asked(self, event: ev.Asked) -> None:
        """Open the budget of the work that the algorithm has just reserved, and keep what its contexts take from the search."""
        answer = event.answer
        self.done = answer.reason if isinstance(answer, Done) else None
        self.gathering = self.gathering and isinstance(answer, Selection)
        if isinstance(answer, Selection):
            self._budgets.open(answer.id)
            node = self.tree.nodes[answer.node]
            moment, of_node = self._moment(node), answer.edge is None and not answer.rivals
            self._moments[answer.id] = moment if of_node else moment._replace(tried=())  # else agents are shown its children
        self._budgets.count_iterations(self.tree)

    def _told(self, selection: Selection, event: ev.Told) -> None:
        self.algorithm.tell(self.tree, selection, event.result)
        self.reused += event.reused
        self._answered(event)
        if isinstance(event.result, Stepped) and selection.edge is not None:
            node = self.tree.nodes[selection.node]
            child, act = node.edges[selection.edge].child, self.acted.get((selection.node, selection.edge))
            self.writing |= {act.wrote} - {""} if act else set()
            if child is not None and child.parent is node and act:
                self.effects[child.id] = act
        if selection.id not in self.tree.open:
            self._close(selection.id)

    def _answered(self, event: ev.Told | ev.Late) -> None:
        """Keep an agent's answer for equal questions, and count the evaluations in it."""
        if event.key:
            self.answered.setdefault(event.key, event.result)
        if isinstance(event, ev.Late) or not event.reused:
            self.scope(event.selection).spend("evaluations", evaluations_in(event.result))
            self.informed += benchmark_scores_in(event.result)

    def _commanded(self, event: ev.Commanded) -> None:
        self.commanded[event.id] = event
        if event.refused:
            return
        self.touched += event.touches
        match event.command:
            case "pause" | "resume":
                self.paused = event.command == "pause"
            case "stop":
                self.stopped, self.paused = True, False
            case "expand":
                self.wanted.append(event.node)
            case "instruct":
                self.instruction = event.text
            case "act" | "take":
                self._order(event)
            case "allow" | "refuse" | "answer":
                self.replies.setdefault(event.question, event)
            case "prune":
                prune(self.tree, self.tree.nodes[event.node])
                self.plan = ()

    def _order(self, event: ev.Commanded) -> None:
        """Note the action that a viewer wants committed next. It becomes one of the root's, if it is none yet."""
        assert event.action is not None
        root, edges = self.tree.root, self.tree.root.edges
        known = (index for index, edge in enumerate(edges) if edge.action.key == event.action.key)
        self.ordered, self.plan = next(known, len(edges)), ()
        if self.ordered == len(edges):
            root.edges = [*edges, Edge(event.action, 0.0, "a person wants it")]
        self.paused = self.paused or event.command == "take"

    def _selection(self, id: int) -> Selection:
        if id not in self.tree.open:
            raise JournalError(f"a result for selection {id}, which is not open: the journal is not one attempt's")
        return self.tree.open[id].selection

    def _close(self, selection: int) -> None:
        self._budgets.close(selection)
        self._moments.pop(selection, None)

    def _attributed(self, event: StepEvent, node: int) -> StepEvent:
        """Return a step at a node without the side effects that an earlier one caused. They are added to the step that led to the node.

        At the task's start there is none: then they stay with the event, marked as late.
        """
        late = [effect for effect in event.effects if effect.late]
        if late and node in self.effects:
            if isinstance(event, ev.Committed) or isinstance(self.effects[node], ev.Acted):  # else a repeated commit reports its own again
                self._add_late(node, late)
            return msgspec.structs.replace(event, effects=tuple(effect for effect in event.effects if not effect.late))
        return event

    def _add_late(self, node: int, late: Sequence[SideEffect]) -> None:
        """Add side effects to the step that led to a node, each once: every environment that repeats the step reports them."""
        earlier = self.effects[node]
        known = {(effect.kind, effect.method, effect.url) for effect in earlier.effects if effect.late}
        more = [effect for effect in late if (effect.kind, effect.method, effect.url) not in known]
        amended = msgspec.structs.replace(earlier, effects=(*earlier.effects, *more))
        self.effects[node] = amended
        if isinstance(amended, ev.Acted):
            self.acted[amended.node, amended.edge] = amended
        else:
            self.committed = [amended if step is earlier else step for step in self.committed]

    def _committed(self, event: ev.Committed) -> None:
        rest = self.decided.decision.edges[1:] if self.decided else ()
        self.decided, self.plan, self.ordered = None, (), None
        event = self._attributed(event, self.tree.root.id)
        self.committed.append(event)
        self.changes = 0 if not event.changed else self.changes + bool(event.refused)
        self.budget.spend("actions", int(not event.changed or (bool(event.refused) and self.changes > MOST_CHANGES)))
        self.budget.spend("transitions", int(not event.promoted and (bool(event.refused) or not event.changed)))
        self.writing |= {event.wrote} - {""}
        if event.refused:
            self.refused.setdefault(self.tree.root.id, []).append(event)
        if event.refused and event.changed:
            self.tree.root.edges = with_wait(self.tree.root.edges)
        elif event.refused:
            self.algorithm.refuse(self.tree, event.edge, event.refused)
        else:
            self._advance(event, rest)
        for closed in self._budgets.renew(self.tree, event.t):
            self._close(closed)

    def _advance(self, event: ev.Committed, rest: tuple[int, ...]) -> None:
        edge = self.tree.root.edges[event.edge]
        foreseen = edge.child
        observed = (n for n in edge.outcomes if not n.unseen)
        alike = next((n for n in observed if n.fingerprint == event.fingerprint and n.terminated == event.terminated), None)
        seen = Stepped(
            fingerprint=event.fingerprint,
            terminated=event.terminated,
            observation=event.observation,
            screenshot=event.screenshot,
            beyond=alike.beyond if alike else beyond(self.tree.root.beyond, event.effects, event.info),
        )
        is_subtree_kept = self.algorithm.advance(self.tree, event.edge, seen)
        if is_subtree_kept and self.tree.root is foreseen and not self.tree.root.leaf:
            self.plan = rest
        self.effects[self.tree.root.id] = event
        self.path.append(self.tree.root.id)

    # --- facts

    def _arrived(self, event: ev.Arrived) -> None:
        self.arrivals[event.node] = event
        self.drifted += event.match == "drifted"
        self.restores += event.route not in ("reuse", "advance")
        self.scope(event.selection).spend("transitions", event.transitions)
        if event.diverged is not None:
            self.diverged[event.selection] = event.diverged

    def _called(self, event: ev.Called) -> None:
        self.calls[event.key] = event
        scope, usage = self.scope(event.selection), event.usage
        scope.spend("calls")
        unknown = 0 if event.replayed == event.sampling.n else event.reserved_tokens
        scope.spend("tokens", usage.input_tokens + usage.output_tokens or unknown)
        self.cost_known = self.cost_known and usage.cost is not None
        scope.spend("money", event.reserved if usage.cost is None else usage.cost)

    def _unaccounted(self, event: ev.Unaccounted) -> None:
        scope, usage = self.scope(event.selection), event.usage
        self.unaccounted += len(event.lost)
        if usage.input_tokens or usage.output_tokens:
            scope.spend("tokens", usage.input_tokens + usage.output_tokens)
            scope.spend("money", usage.cost or 0.0)
            self.cost_known = self.cost_known and usage.cost is not None

    # --- the search at an ask

    def _moment(self, node: Node) -> AskMoment:
        left = self.budget.remaining("actions")
        tried = tuple(i for i, edge in enumerate(node.edges) if edge.futile or is_noop(edge))
        return AskMoment(self.tree.root.depth, None if left is None else int(left), tried)


def _settled(config: Config) -> SearchConfig:
    """Return the search configuration with its numbers of evaluations set: a second one is of use where it may differ from the first."""
    search = config.search
    if search.evaluations is None:
        search = msgspec.structs.replace(search, evaluations=EVALUATIONS if config.value.kind == "llm" else 1)
    if search.reevaluations is None:
        search = msgspec.structs.replace(search, reevaluations=search.iterations // 4 if config.value.kind == "cascade" else 0)
    return search


def fold(config: Config, journal: Iterable[ev.AnyEvent]) -> AttemptState:
    """Return the state that a journal's events lead to. Any prefix of a journal folds. Raises JournalError."""
    state = AttemptState(config)
    for event in journal:
        state.replay(event)
    return state


def with_wait(edges: Sequence[Edge]) -> list[Edge]:
    """Return the actions of a state with `wait` among them."""
    known = any(edge.action.key == WAIT.key for edge in edges)
    return [*edges, *([] if known else [Edge(WAIT, 0.0, "the page changed by itself")])]
