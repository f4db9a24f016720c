"""The state of an attempt as a fold over its journal.

A running attempt changes this state by the same `apply` that reads a journal back, so a resumed attempt is in the state where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from exact.config import Config
from exact.environments.base import PersonQuestion, SideEffect
from exact.errors import JournalError, PartError
from exact.runs.journal import events as ev
from exact.runs.journal.search_state import SearchState
from exact.runs.journal.spending import Spending
from exact.search.tree import Tree

EPISODE_ENDED = "the episode ended"
"""Reason of an attempt that the environment ended."""
AGENT_STOPPED = "the agent stopped"
"""Reason of an attempt that the agent ended."""
GRANTED = "the yes to the writes of the earlier run"
"""Who answered a question about a write that an earlier run had sent too."""
StepEvent = TypeVar("StepEvent", ev.Acted, ev.Committed)


@dataclass
class LiveRecord:
    """The course of an attempt in its live environment, from the reset to the score."""

    tree: Tree
    opened: ev.Opened | None = None
    instruction: str = ""
    isolated: bool | None = None
    """Whether a reset of the environment undoes every side effect; None before the reset, or if that was not recorded."""
    kept: bool = False
    """Whether the attempt began in a state that a session had led to, to which no reset leads."""
    decided: ev.Decided | None = None
    """Intent of a commit whose outcome is not journalled yet."""
    decisions: list[ev.Decided] = field(default_factory=list)
    """All intents, in order."""
    committed: list[ev.Committed] = field(default_factory=list)
    """All committed steps, in order, those that were refused included."""
    refused: dict[int, list[ev.Committed]] = field(default_factory=dict)
    """Committed actions that the live environment refused, by the id of the root at which they were."""
    path: list[int] = field(default_factory=list)
    """Ids of the roots so far, the first and the present one included."""
    guided: dict[int, ev.Guided] = field(default_factory=dict)
    """What the way of an earlier run wanted committed, by the number of the commit."""
    left: dict[int, ev.Guided] = field(default_factory=dict)
    """Places at which that way was left, by the id of the root."""
    judged: ev.Judged | None = None
    ended: ev.Ended | None = None
    scored: ev.Scored | None = None
    reflected: list[ev.Reflected] = field(default_factory=list)
    extracted: ev.Extracted | None = None
    finished: ev.Finished | None = None

    def apply(self, event: ev.AnyEvent) -> None:
        """Record an event, after the search has applied it."""
        match event:
            case ev.Opened():
                self.opened = event
            case ev.Reset():
                self.instruction, self.isolated, self.kept = event.instruction, event.isolated, event.kept
                self.path.append(self.tree.root.id)
            case ev.Commanded(command="instruct", refused=""):
                self.instruction = event.text
            case ev.Decided():
                self.decided = event
                self.decisions.append(event)
            case ev.Guided():
                self._lead(event)
            case ev.Committed():
                self._committed(event)
            case ev.Judged():
                self.judged = event
            case ev.Ended():
                self.ended = event
            case ev.Scored():
                self.scored = event
            case ev.Reflected() | ev.Extracted():
                self._learnt(event)
            case ev.Finished() | ev.Resumed():
                self.finished = event if isinstance(event, ev.Finished) else None

    def _lead(self, event: ev.Guided) -> None:
        if event.action is None:
            self.left[self.tree.root.id] = event
        else:
            self.guided[len(self.committed)] = event

    def _learnt(self, event: ev.Reflected | ev.Extracted) -> None:
        if isinstance(event, ev.Extracted):
            self.extracted = event
        else:
            self.reflected.append(event)

    def _committed(self, event: ev.Committed) -> None:
        self.decided = None
        self.committed.append(event)
        if event.refused:
            self.refused.setdefault(self.tree.root.id, []).append(event)
        else:
            self.path.append(self.tree.root.id)

    @property
    def started(self) -> bool:
        """The first root has been observed."""
        return bool(self.path)

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
    def would_write_again(self) -> bool:
        """Taking the committed steps again would send a write again."""
        return any(effect.is_repeated for step in self.committed for effect in step.effects)

    @property
    def is_resumable(self) -> bool:
        """False if the live environment cannot be rebuilt, because a committed step wrote to what no reset undoes."""
        return not self.would_write_again or self.isolated is not False


@dataclass
class People:
    """Commands, questions and answers of the people who take part in an attempt."""

    commanded: dict[str, ev.Commanded] = field(default_factory=dict)
    """Viewers' commands, by id."""
    replies: dict[str, ev.Commanded] = field(default_factory=dict)
    """Viewers' answers, by the id of the question."""
    questions: dict[str, ev.PersonAsked] = field(default_factory=dict)
    """Questions to a person without an answer yet, by id."""
    granted: list[PersonQuestion] = field(default_factory=list)
    """Writes that the yes to the writes of an earlier run let through."""
    touched: int = 0
    """Answers and interventions of people that change what the agent does."""
    paused: bool = False
    """Whether a viewer's pause is in force."""
    stopped: bool = False
    """Whether a viewer stopped the search: nothing more is searched in this attempt."""

    def apply(self, event: ev.AnyEvent) -> None:
        """Record a person's part in an event."""
        match event:
            case ev.PersonAsked():
                self.questions[event.id] = event
            case ev.PersonAnswered():
                asked = self.questions.pop(event.id, None)
                self.touched += event.touched
                if asked is not None and event.by == GRANTED and event.answer == "yes":
                    self.granted.append(asked.question)
            case ev.Commanded():
                self.commanded[event.id] = event
                if not event.refused:
                    self.touched += event.touches
                    self._carry_out(event)

    def _carry_out(self, event: ev.Commanded) -> None:
        match event.command:
            case "pause" | "resume":
                self.paused = event.command == "pause"
            case "take":
                self.paused = True
            case "stop":
                self.stopped, self.paused = True, False
            case "allow" | "refuse" | "answer":
                self.replies.setdefault(event.question, event)


class AttemptState:
    """The state of an attempt. It is changed by `apply`, and by the ask of a running attempt, alone."""

    def __init__(self, config: Config) -> None:
        tree = Tree(seed=config.seed)
        self.people = People()
        self.spending = Spending(config, tree)
        self.search = SearchState(config, tree, self.spending)
        self.live = LiveRecord(tree)
        self.broken: PartError | None = None
        """Error of the algorithm, at which the fold of a journal stopped. The search is the one before it. None if there was none."""

    @property
    def finished(self) -> ev.Finished | None:
        """The end of the attempt; None while it can go on."""
        return self.live.finished

    def apply(self, event: ev.AnyEvent) -> None:
        """Apply one event. Raises JournalError if it does not follow from the events before."""
        self._check_place(event)
        if isinstance(event, ev.Acted):
            event = self._attributed(event, event.node)
        elif isinstance(event, ev.Committed):
            event = self._attributed(event, self.search.tree.root.id)
        self.people.apply(event)
        self.search.apply(event)
        self.live.apply(event)
        self.spending.apply(event)

    def _check_place(self, event: ev.AnyEvent) -> None:
        """Raise JournalError if an event names a state or an action that does not exist. Readers look it up later."""
        nodes = self.search.tree.nodes
        place = getattr(event, "node", self.search.tree.root.id)
        if not isinstance(event, ev.Commanded) and not 0 <= place < len(nodes):  # a viewer may name any state, and is refused
            raise JournalError(f"at {event.t:.3f} s an event names state {place}, which is not there: the journal is not one attempt's")
        if isinstance(event, ev.Acted | ev.Committed) and not 0 <= event.edge < len(nodes[place].edges):
            raise JournalError(f"at {event.t:.3f} s a step takes action {event.edge} of state {place}, which has none such")

    def replay(self, event: ev.AnyEvent) -> None:
        """Apply an event of a recorded journal.

        An ask changes the tree, so the algorithm is asked again, and must answer as it did. Raises JournalError.
        """
        if isinstance(event, ev.Asked) and self.search.ask_again(event) != event.answer:
            raise JournalError(
                f"at {event.t:.3f} s the search asks for other work than it did: recorded by another version of exact, or by an algorithm "
                "that draws random numbers without the seed of its tree"
            )
        self.apply(event)

    def _attributed(self, event: StepEvent, node: int) -> StepEvent:
        """Return a step at a node without the side effects that an earlier one caused. They are added to the step that led to the node.

        No step led to the task's start: there they stay with the event, marked as late.
        """
        late = [effect for effect in event.effects if effect.late]
        if late and (earlier := self.search.effects.get(node)):
            if isinstance(event, ev.Committed) or isinstance(earlier, ev.Acted):  # else a repeated commit reports its own again
                self._add_late(node, late)
            return msgspec.structs.replace(event, effects=tuple(effect for effect in event.effects if not effect.late))
        return event

    def _add_late(self, node: int, late: Sequence[SideEffect]) -> None:
        """Add side effects to the step that led to a node, each once: every environment that repeats the step reports them."""
        earlier = self.search.effects[node]
        known = {(effect.kind, effect.method, effect.url) for effect in earlier.effects if effect.late}
        more = [effect for effect in late if (effect.kind, effect.method, effect.url) not in known]
        amended = msgspec.structs.replace(earlier, effects=(*earlier.effects, *more))
        self.search.effects[node] = amended
        if isinstance(amended, ev.Acted):
            self.search.acted[amended.node, amended.edge] = amended
        else:
            self.live.committed = [amended if step is earlier else step for step in self.live.committed]


def final_answer(state: AttemptState) -> str | None:
    """Return the text of the final `stop`; None where none was committed."""
    root = state.search.tree.root
    if root.edge is None or not root.terminated or root.edge.action.name != "stop":
        return None
    return " ".join(map(str, root.edge.action.args))


def fold(config: Config, journal: Iterable[ev.AnyEvent], *, failing: bool = False) -> AttemptState:
    """Return the state that a journal's events lead to. Any prefix of a journal folds.

    If the algorithm raises at an event, that ended the attempt: the search stays as it was before, and `broken` is the error.

    Args:
        config: Configuration of the run.
        journal: The events, in order.
        failing: Whether the attempt is just being ended. Otherwise the journal must say that a part ended it.

    Raises JournalError, and PartError if the algorithm raises in an attempt that went on.
    """
    state = AttemptState(config)
    for event in journal:
        try:
            if state.broken is None:
                state.replay(event)
        except PartError as error:
            state.broken = error
        if state.broken is not None and isinstance(event, ev.Finished):
            state.live.apply(event)
    if state.broken is not None and not failing and (state.finished is None or state.finished.missing != PartError.missing):
        raise state.broken
    return state
