"""State of the search of an attempt: the tree, the simulated steps, and the answers of the agent."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from exact.action import Action
from exact.config import Config, RecordedConfig, SearchConfig
from exact.environments.base import SideEffect
from exact.errors import JournalError, PartError
from exact.parts import Misfit, calling, misfit, name_of, without_result
from exact.runs.journal import events as ev
from exact.runs.journal.spending import Spending
from exact.search.base import Algorithm, Decision, Diverged, Done, Result, Selection, Stepped, Wait
from exact.search.intervention import expand, prune, reserve_recorded
from exact.search.registry import algorithm
from exact.search.rules.afford import Replans
from exact.search.rules.backup import mean
from exact.search.rules.exhaust import expect_chance
from exact.search.rules.outage import reopen_outages
from exact.search.tree import MOVED, Edge, Node, SearchError, Tree, is_noop
from exact.search.work import Work, is_outcome, keep_edges

WAIT = Action("wait", (), "wait")
"""Action that is journalled for a state that changed by itself: time passed. Another environment waits too to reach that state."""
ORDERED = "a person wants it"
GUIDED: Mapping[str, str] = {
    "same": "the earlier run went on so",
    "alike": "the earlier run went on so, on a page that differs elsewhere",
    "found": "it does what the earlier run did, or leads back to its way",
    "agreed": "the policy and the earlier run agree",
}
"""Reasons why an action is committed next, by what the way of an earlier run says."""
EVALUATIONS = 3
"""Evaluations of one state by `value.kind: llm` if the configuration sets no number: see docs/results/search.md."""


MOST_DRIFTS = 2
"""Arrivals in a row at another state after which a state counts as lost."""


class AskMoment(NamedTuple):
    """The part of an agent's context that is taken from the search at an ask, so that a resumed attempt shows the agent the same."""

    root_depth: int
    """Depth of the root in steps from the task's start."""
    actions_left: int | None
    """Actions that may still be committed; None if they are not capped."""
    tried: tuple[int, ...]
    """Indices of the node's edges that must not be committed, or change nothing. A failure of the infrastructure is no such reason."""


class SearchState:
    """The search of an attempt. It is changed by `apply`, and by the ask of a running attempt, alone."""

    def __init__(self, config: Config, tree: Tree, spending: Spending) -> None:
        self.algorithm: Algorithm = algorithm(_settled(config))
        self._has_removed_rules = isinstance(config, RecordedConfig) and any(each.startswith("search.") for each in config.removed)
        self.tree, self._spending = tree, spending
        self.acted: dict[tuple[int, int], ev.Acted] = {}
        """Simulated steps, by (node, edge)."""
        self.taken_again: dict[int, ev.Acted] = {}
        """Steps that were taken once more, in a stochastic environment, by the selection."""
        self.acted_at = set[int]()
        """Ids of the nodes at which simulated steps were taken."""
        self.effects: dict[int, ev.Acted | ev.Committed] = {}
        """Steps that led to a node, by node id: the committed step if there is one."""
        self.diverged: dict[int, Diverged] = {}
        """Other states that were met on the way to a selection's node, by selection."""
        self.drifts = Counter[int]()
        """Arrivals in a row at another state than a node's, since the last commit, by node id."""
        self.rolled: dict[tuple[int, int, int], list[ev.RolledStep]] = {}
        """Steps of rollouts, by (node, policy, draw)."""
        self.recalled: dict[tuple[int, str], ev.Recalled] = {}
        """Recalled reflections, by (node, kind)."""
        self.marked: dict[str, tuple[str, ...]] = {}
        """Findings of the detector model in observations that were shown or examined, by the names of their blobs."""
        self.answered: dict[str, Result] = {}
        """Results, by the digest of what the agent was shown."""
        self.writing: set[str] = set()
        """Labels of actions that wrote, or would have if they had not been blocked."""
        self.done: str | None = None
        """Reason why the algorithm ended the search; None once anything has changed the search since."""
        self.gathering = True
        """Whether no result of this round of selections has come, so that it may grow. For runs in rounds: see attempt/executor.py."""
        self.plan: tuple[int, ...] = ()
        """Edges left of a plan whose last step led to the state that the search had seen."""
        self.ordered: int | None = None
        """The root's edge that a viewer, or the way of an earlier run, wants committed next; None if the search decides."""
        self.ordered_by = ""
        """Reason why that edge is committed next."""
        self._intended: tuple[int, ...] = ()
        """Edges of the decision that is being committed."""
        self._wanted: list[int] = []
        """Ids of nodes that viewers asked to be expanded next."""
        self._moments: dict[int, AskMoment] = {}

    @property
    def mean_actions(self) -> float:
        """Mean number of times that the search acted in a node, over the nodes acted in so far, with one node of 2 as a prior."""
        return (len(self.acted) + 2) / (len(self.acted_at) + 1)

    def expected_returns(self, node: Node, edge: int) -> float:
        """Return how many times the search is expected to come back to a node once it has taken an edge there.

        The mean over the nodes acted in so far (a prior of 1), but no more than the number of other actions left.
        """
        left = sum(not (each.closed or index == edge or (node.id, index) in self.acted) for index, each in enumerate(node.edges))
        return min(left, self.mean_actions - 1)

    def moment(self, selection: int, node: Node) -> AskMoment:
        """Return what a context takes from the search: at the ask of a selection, or now if the selection is not open."""
        return self._moments.get(selection) or self._moment(node)

    def ask(self) -> Selection | Wait | Done:
        """Reserve work: what a viewer asked for, else what the algorithm asks for. Without any, return why there is none."""
        if isinstance(self.algorithm, Replans):
            self.algorithm.replan(self.tree, self._spending.affordable_iterations())
        return self._requested() or self._work()

    def _work(self) -> Selection | Wait | Done:
        """Return what the algorithm asks for. Raises PartError for work that is not in the tree."""
        with calling("algorithm.ask", self.algorithm):
            answer = self.algorithm.ask(self.tree)
            if isinstance(answer, Selection):
                if answer.id not in self.tree.open or not 0 <= answer.node < len(self.tree.nodes):
                    raise Misfit(f"returned Selection {answer.id} of state {answer.node}: expected one that it has opened in the tree")
            elif not isinstance(answer, Wait | Done):
                raise misfit(answer, "a Selection, Wait or Done")
            return answer

    def _call(self, method: str, *given: object) -> None:
        """Call a method of the algorithm that returns nothing. Raises PartError."""
        with calling(f"algorithm.{method}", self.algorithm):
            without_result(getattr(self.algorithm, method)(self.tree, *given))

    def decide(self) -> Decision:
        """Return the decision of the algorithm. Raises SearchError if no action is left, PartError for an action that is not there."""
        with calling("algorithm.decide", self.algorithm):
            decision = self.algorithm.decide(self.tree)
            if not isinstance(decision, Decision):
                raise misfit(decision, "a Decision")
            if not decision.edges or not 0 <= decision.edges[0] < len(self.tree.root.edges):
                raise Misfit(f"returned a Decision for {decision.edges}: expected indices of edges, the first one at the root")
            return decision

    def forecast(self, k: int) -> list[Node]:
        """Return up to k nodes in which the algorithm expects the next steps."""
        with calling("algorithm.forecast", self.algorithm):
            if isinstance(likely := self.algorithm.forecast(self.tree, k), list):
                return likely
            raise misfit(likely, "a list of nodes")

    def ask_again(self, event: ev.Asked) -> Selection | Wait | Done:
        """Return what the search asks for where a journal recorded an ask.

        If its rules were removed since, the recorded work is reserved as it is. Raises JournalError.
        """
        if not self._has_removed_rules:
            return self.ask()
        if (wanted := self._requested()) is not None:
            return wanted
        if isinstance(event.answer, Selection):
            try:
                reserve_recorded(self.tree, event.answer)
            except SearchError as error:
                raise JournalError(f"at {event.t:.3f} s the search asks for work that is not there: {error}") from error
        return event.answer

    def _take_alternatives(self, decision: Decision) -> None:
        """Take over the recorded Q and visits of the root's actions: the rules that made them are gone."""
        for each in decision.alternatives:
            if 0 <= each.edge < len(self.tree.root.edges) and each.value is not None:
                edge = self.tree.root.edges[each.edge]
                edge.q, edge.visits = each.value, each.visits

    def apply(self, event: ev.AnyEvent) -> None:
        """Apply an event to the search. Raises JournalError."""
        match event:
            case ev.Asked():
                self._asked(event.answer)
            case ev.Acted():
                work = self.tree.open.get(event.selection)
                if work is not None and work.selection.again:
                    self.taken_again[event.selection] = event
                else:
                    self.acted[event.node, event.edge] = event
                self.acted_at.add(event.node)
            case ev.RolledStep():
                self.rolled.setdefault((event.node, event.policy, event.draw), []).append(event)
            case ev.Arrived():
                self._arrived(event)
            case ev.Recalled():
                self.recalled[event.node, event.kind] = event
            case ev.Marked():
                self.marked[event.observation] = event.model or ()
            case ev.Late():
                self._answered(event)
            case ev.Opened():
                self.tree.seed = event.seed
            case ev.Guided(action=Action() as action):
                self._order(action, GUIDED[event.match])
            case _:
                self._apply_move(event)

    def is_lost(self, node: Node) -> bool:
        """Return whether a state cannot be had again: until the next commit, no environment is sent there any more."""
        return self.drifts[node.id] >= MOST_DRIFTS

    def _arrived(self, event: ev.Arrived) -> None:
        if event.stochastic:
            self._expect_chance()
        if event.diverged is not None:
            self.diverged[event.selection] = event.diverged
        if event.match == "drifted":
            self.drifts[event.node] += 1
        else:
            self.drifts.pop(event.node, None)

    def _apply_move(self, event: ev.AnyEvent) -> None:
        """Apply an event that lets the algorithm answer the next ask otherwise; others have no effect."""
        match event:
            case ev.Reset():
                root = self.tree.root
                if event.deterministic == "no":
                    self._expect_chance()
                self.tree.presumed = event.deterministic == "presumed"
                root.fingerprint, root.observation, root.screenshot = event.fingerprint, event.observation, event.screenshot
            case ev.Told():
                self._told(event)
            case ev.Released():
                self._call("release", self._open(event.selection))
                self._moments.pop(event.selection, None)
            case ev.Commanded():
                self._commanded(event)
            case ev.Decided():
                if self._has_removed_rules:
                    self._take_alternatives(event.decision)
                if event.action == WAIT.key and event.decision.edges == (len(self.tree.root.edges),):
                    self.tree.root.edges = with_wait(self.tree.root.edges)
                self._intended = event.decision.edges
            case ev.Committed():
                self._committed(event)
            case ev.Resumed() if event.repaired and isinstance(self.algorithm, Work):
                reopen_outages(self.algorithm, self.tree)
            case _:
                return
        self.done, self.gathering = None, not self.tree.open

    def _requested(self) -> Selection | None:
        """Reserve work that a viewer asked for, which comes before the algorithm's own; None if none can begin."""
        for id in list(self._wanted):
            node = self.tree.nodes[id]
            if not node.pending:
                self._wanted.remove(id)
                if (selection := expand(self.algorithm, self.tree, node)) is not None:
                    return selection
        return None

    def _asked(self, answer: Selection | Wait | Done) -> None:
        """Keep what the contexts of the work that was just reserved take from the search."""
        self.done = answer.reason if isinstance(answer, Done) else None
        self.gathering = self.gathering and isinstance(answer, Selection)
        if isinstance(answer, Selection):
            moment, of_node = self._moment(self.tree.nodes[answer.node]), answer.edge is None and not answer.rivals
            self._moments[answer.id] = moment if of_node else moment._replace(tried=())  # else agents are shown its children

    def _moment(self, node: Node) -> AskMoment:
        tried = tuple(i for i, edge in enumerate(node.edges) if edge.futile or is_noop(edge))
        return AskMoment(self.tree.root.depth, self._spending.actions_left, tried)

    def _expect_chance(self) -> None:
        expect_chance(self.tree, self.algorithm.backup if isinstance(self.algorithm, Work) else mean)

    def taken(self, selection: Selection) -> ev.Acted | None:
        """Return the step of a selection, if it was taken."""
        if selection.again:
            return self.taken_again.get(selection.id)
        return None if selection.edge is None else self.acted.get((selection.node, selection.edge))

    def _told(self, event: ev.Told) -> None:
        selection = self._open(event.selection)
        left = len(self.tree.open[selection.id].left)
        self._call("tell", selection, event.result)
        if (work := self.tree.open.get(selection.id)) is not None and len(work.left) >= left:
            raise PartError(
                f"algorithm.tell: {name_of(self.algorithm)} left selection {selection.id} as it was: it has to take in the result"
            )
        self._answered(event)
        if isinstance(event.result, Stepped) and selection.edge is not None:
            node = self.tree.nodes[selection.node]
            act, seen = self.taken(selection), event.result
            self.writing |= {act.wrote} - {""} if act else set()
            edge = node.edges[selection.edge]
            child = next((each for each in edge.outcomes if is_outcome(each, seen)), None) if selection.again else edge.child
            if child is not None and child.parent is node and act:
                self.effects[child.id] = act
        if selection.id not in self.tree.open:
            self._moments.pop(selection.id, None)

    def _answered(self, event: ev.Told | ev.Late) -> None:
        """Keep an agent's answer for equal questions."""
        if event.key:
            self.answered.setdefault(event.key, event.result)

    def _commanded(self, event: ev.Commanded) -> None:
        match event.command:
            case _ if event.refused:
                return
            case "expand":
                self._wanted.append(event.node)
            case "act" | "take":
                assert event.action is not None
                self._order(event.action, ORDERED)
            case "prune":
                prune(self.tree, self.tree.nodes[event.node])
                self.plan = ()

    def _order(self, action: Action, by: str) -> None:
        """Note the action that is to be committed next, and the reason. It becomes one of the root's if it is not one yet."""
        root, edges = self.tree.root, self.tree.root.edges
        known = (index for index, edge in enumerate(edges) if edge.action.key == action.key)
        self.ordered, self.ordered_by, self.plan = next(known, len(edges)), by, ()
        if self.ordered == len(edges):
            root.edges = [*edges, Edge(action, 0.0, by)]

    def _open(self, id: int) -> Selection:
        if id not in self.tree.open:
            raise JournalError(f"a result for selection {id}, which is not open: the journal is not one attempt's")
        return self.tree.open[id].selection

    def _committed(self, event: ev.Committed) -> None:
        rest, self._intended, self.plan, self.ordered = self._intended[1:], (), (), None
        self.writing |= {event.wrote} - {""}
        if event.refused and event.changed:
            self.tree.root.edges = with_wait(self.tree.root.edges)
        elif event.refused:
            self._call("refuse", event.edge, event.refused)
        else:
            self._advance(event, rest)
        self._moments = {id: moment for id, moment in self._moments.items() if id in self.tree.open}

    def _advance(self, event: ev.Committed, rest: tuple[int, ...]) -> None:
        before, edge = self.tree.root, self.tree.root.edges[event.edge]
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
        self.drifts.clear()
        with calling("algorithm.advance", self.algorithm):
            is_subtree_kept = self.algorithm.advance(self.tree, event.edge, seen)
            if not isinstance(is_subtree_kept, bool):
                raise misfit(is_subtree_kept, "whether the subtree was kept, True or False")
        if self.tree.presumed and alike is None and foreseen is not None and not foreseen.unseen:
            self._expect_chance()  # a simulated and a committed step led apart
        if is_subtree_kept and self.tree.root is foreseen and not self.tree.root.leaf:
            self.plan = rest
        if event.kept and not (self.tree.root.leaf or self.tree.root.edges):
            keep_edges(self.tree.root, [before.edges[index] for index in event.kept])
        self.effects[self.tree.root.id] = event


def beyond(before: str, effects: Sequence[SideEffect], info: Mapping[str, str]) -> str:
    """Return what tells states apart that look equal: sorted digests of the writes on the path, each address once, and of what moved."""
    writes = {f"{e.method} {e.url.partition('?')[0]}" for e in effects if e.is_write}
    digests = {hashlib.blake2b(each.encode(), digest_size=4).hexdigest() for each in writes}
    if moved := info.get("moved"):
        digests.add(MOVED + hashlib.blake2b(moved.encode(), digest_size=4).hexdigest())
    return " ".join(sorted({*before.split(), *digests}))


def with_wait(edges: Sequence[Edge]) -> list[Edge]:
    """Return the actions of a state with `wait` among them."""
    known = any(edge.action.key == WAIT.key for edge in edges)
    return [*edges, *([] if known else [Edge(WAIT, 0.0, "the page changed by itself")])]


def _settled(config: Config) -> SearchConfig:
    """Return the search configuration with its numbers of evaluations set: a second one is of use if it may differ from the first."""
    search = config.search
    if search.evaluations is None:
        search = msgspec.structs.replace(search, evaluations=EVALUATIONS if config.value.kind == "llm" else 1)
    if search.reevaluations is None:
        search = msgspec.structs.replace(search, reevaluations=search.iterations // 4 if config.value.kind == "cascade" else 0)
    return search
