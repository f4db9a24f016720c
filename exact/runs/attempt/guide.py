"""The guide of an attempt: the way of an earlier run, followed as far as the pages allow, and the way back to it from other states.

No model is asked on the way. A state is on it if its fingerprint is the one from before a step, or if only other parts of the page differ
and the element of the step's action is found again. In any other state the search begins, with the way's action first among its proposals,
and ends as soon as a simulated step is seen to lead back: nothing of that is asked of a model either. A write of the way is never
committed again: the way goes on behind it, whatever came of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from exact.action import Action
from exact.context import Proposal
from exact.environments.base import SAFE_METHODS, PersonQuestion, SideEffect
from exact.errors import ActionError
from exact.observation import LABEL_NAME, Observation, same_state
from exact.reflection.record import action_label, quoted
from exact.runs.attempt.live import rebind
from exact.runs.journal import events as ev
from exact.runs.journal.store import ResultLine
from exact.runs.targets import did_the_same, find_again, is_same_page, marks
from exact.runs.way import TYPING, Way, WayStep, WriteKey, key_of, texts_of
from exact.search.tree import Edge, Node
from exact.views.prune import INTERACTIVE

if TYPE_CHECKING:
    from exact.runs.attempt.attempt_context import AttemptContext

_ANYWHERE = ("goto", "scroll", "wait", "go_back", "go_forward")
"""Verbs without an element that mean the same on a page that differs elsewhere."""
_FOCUSED = ("press", "type")
"""Verbs that act where the focus is."""
_FOLLOWED = ("same", "alike")  # nothing was searched
_AS_BEFORE = "the earlier run did this"
"""Rationale of proposals that are the way's."""
_RENAMED = 2  # most elements of new names that are proposed in place of one that is gone


class Guide:
    """What the way of an earlier run says in each state of an attempt."""

    def __init__(self, attempt: AttemptContext, way: Way) -> None:
        self._attempt, self._state, self.way = attempt, attempt.state, way
        self._tested = dict[tuple[int, int, int], bool]()
        """Whether a node leads back to the way, by root, node and position."""

    @property
    def position(self) -> int:
        """Index of the step of the way that is due."""
        return self._due(len(self._state.live.committed))

    def _due(self, commits: int) -> int:
        """Return the index of the step that is due after some commits.

        A write that was committed otherwise stands for one of the way, so that none is sent twice.
        """
        due = 0
        for step in self._state.live.committed[:commits]:
            if step.refused or step.changed:
                continue
            guided = self._guided(step)
            due = guided.step + 1 if guided is not None and guided.step >= 0 else self._behind_write(step, due)
        return due

    def _behind_write(self, step: ev.Committed, due: int) -> int:
        """Return the index of the step that is due after a step that was committed otherwise.

        It stands for the step of the way that sent one of its requests, or else, if it surely wrote, for the next one that surely did.
        """
        sent = [effect for effect in step.effects if effect.is_write]
        keys, rest = set(map(key_of, sent)), range(due, len(self.way.steps))
        same = (i + 1 for i in rest if keys & self.way.requests(i).keys())
        surely = (i + 1 for i in rest if _surely_wrote(self.way.steps[i].effects)) if _surely_wrote(sent) else iter(())
        return next(same, next(surely, due))

    def _guided(self, step: ev.Committed) -> ev.Guided | None:
        """Return what the way said of a committed step; None if the search, or a person, chose it."""
        guided = self._state.live.guided.get(step.step)
        return guided if guided is not None and guided.action is not None and guided.action.key == step.action else None

    @property
    def is_active(self) -> bool:
        """Whether the way can say what is committed next."""
        search, people, live = self._state.search, self._state.people, self._state.live
        if live.decided is not None or search.ordered is not None or search.plan:
            return False
        if live.instruction != self.way.replaced(self.way.instruction):
            return False  # a person has given another goal meanwhile
        return not (people.paused or people.stopped or search.tree.root.leaf) and self.position < len(self.way.steps)

    @property
    def ended_as_before(self) -> bool:
        """Whether the attempt ended by the way's last step in the very state in which the earlier run took it, for the same goal."""
        live = self._state.live
        last = self._guided(live.committed[-1]) if live.committed and not live.committed[-1].refused else None
        through = last is not None and last.match == "same" and last.step == len(self.way.steps) - 1
        return through and not self.way.texts and live.instruction == self.way.instruction

    def lead(self) -> None:
        """Order the way's next action if the present state is on the way. Otherwise note, once, that it is left."""
        if not self.is_active:
            return
        root = self._state.search.tree.root
        seen = self._seen_at(root)
        for index in self._possible():
            if self._is_at(self.way.steps[index], root.fingerprint, seen) and self._order(index, "same", self._action(index, seen), seen):
                return
        due = self.position
        if self._order(due, "alike", self._alike(due, seen), seen):
            return
        if root.id not in self._state.live.left:
            self._attempt.record(ev.Guided(match="left", step=due, reason=self._difference(due, seen)))

    def _possible(self) -> Iterator[int]:
        """Yield the steps that may be next: the one that is due, and those behind it up to the next write."""
        for index in range(self.position, len(self.way.steps)):
            yield index
            if self.way.steps[index].wrote:
                return

    def _order(self, index: int, match: ev.Guidance, action: Action | None, seen: Observation) -> bool:
        """Journal that a step of the way is committed next. Return False if it cannot be taken in this state."""
        if action is None or any(edge.action.key == action.key and edge.futile for edge in self._state.search.tree.root.edges):
            return False
        reason = "" if match == "same" else self._difference(index, seen)
        self._attempt.record(ev.Guided(match=match, step=index, action=action, reason=reason))
        return True

    def _is_at(self, step: WayStep, fingerprint: str, seen: Observation) -> bool:
        """Return whether a state is the one before a step: by its fingerprint or, with other texts, by all that is seen."""
        if same_state(step.fingerprint, fingerprint):
            return True
        if not self.way.texts:
            return False
        expected = self.way.expected(self._attempt.blobs.get_observation(step.observation))
        return expected.url == seen.url and marks(expected) == marks(seen)

    def _action(self, index: int, seen: Observation) -> Action | None:
        """Return a step's action in the state before it; None if it is none there."""
        if self.way.texts:
            return self._again(index, seen)
        space = self._attempt.live.space
        try:
            return rebind(space, self.way.steps[index].action, self._before(index), seen)
        except ActionError:
            return None

    def _again(self, index: int, seen: Observation) -> Action | None:
        """Return a step's action in another state, on the elements that are found again; None if one of them is not."""
        space, then = self._attempt.live.space, self._before(index)
        try:
            action = self._typed(index)
            names = {id: find_again(then, id, seen) for id in action.elements}
            return None if None in names.values() else space.renamed(action, {id: new for id, new in names.items() if new is not None})
        except ActionError:
            return None

    def _typed(self, index: int) -> Action:
        """Return a step's action with its text. Raises ActionError if the environment does not have it."""
        action = self._attempt.live.space.parse(self.way.steps[index].action)
        return self._attempt.live.space.action(action.name, *self.way.typed(action))

    def _alike(self, index: int, seen: Observation) -> Action | None:
        """Return a step's action on a page that differs from the one before it; None if the page, or what the action means, is another.

        An answer is never taken over: it was read from the page.
        """
        then = self._before(index)
        if not is_same_page(then, seen) or not self._has_texts(index, seen) or (action := self._again(index, seen)) is None:
            return None
        if action.name in _FOCUSED:
            focused = next((each.id for each in then.elements if "focused" in each.states), "")
            again = seen.element(find_again(then, focused, seen) or "")
            return action if again is not None and "focused" in again.states else None
        return action if action.elements or action.name in _ANYWHERE else None

    def _has_texts(self, index: int, seen: Observation) -> bool:
        """Return whether a state holds what a step of the way was sent with; True for one that wrote nothing."""
        return not self.way.steps[index].wrote or self._holds_typed(index, seen)

    def _holds_typed(self, index: int, seen: Observation) -> bool:
        """Return whether a state holds the texts that the way had typed before a step, and as many filled fields."""
        typed, before = {text for each in self.way.steps[:index] for text in texts_of(self.way.replaced(each.action))}, self._before(index)
        for each in before.elements:
            again = seen.element(find_again(before, each.id, seen) or "") if each.value in typed else None
            if again is not None and again.value != each.value:
                return False
        then, now = (Counter(each.value for each in some.elements if each.value) for some in (before, seen))
        return all(now[text] >= count for text, count in then.items() if text in typed) and now.total() >= then.total()

    def _before(self, index: int) -> Observation:
        return self.way.expected(self._attempt.blobs.get_observation(self.way.steps[index].observation))

    def _after(self, index: int) -> Observation | None:
        """Return what was seen after a step of the way; None if nothing was."""
        blobs, is_last = self._attempt.blobs, index + 1 == len(self.way.steps)
        return self._before(index + 1) if not is_last else self.way.expected(blobs.get_observation(self.way.end)) if self.way.end else None

    def notice(self) -> None:
        """Order the first action of a simulated way back, or the one on which the policy agrees, if there is either."""
        tree = self._state.search.tree
        if not (self._state.search.algorithm.simulates and tree.root.edges and self.is_active) or tree.root.id not in self._state.live.left:
            return
        for node in _below(tree.root):
            path = _path(tree.root, node)
            if path and not path[0].futile and self._leads_back(node, path):
                done = len(path) == 1 and self._does_the_step(node)
                return self._attempt.record(
                    ev.Guided(match="found", step=self.position if done else -1, action=path[0].action, reason=self._why())
                )
        if (agreed := self._agreed(tree.root)) is not None:
            self._attempt.record(ev.Guided(match="agreed", step=self.position, action=agreed.action, reason=self._why()))

    def first(self, node: Node, found: tuple[Proposal, ...]) -> tuple[Proposal, ...]:
        """Return proposals for a node with those of the way before them, if the way was left there."""
        if not found or node is not self._state.search.tree.root or not self._state.search.algorithm.simulates or not self.is_active:
            return found
        known = {each.action.key for each in found}
        most = max(each.prior for each in found)
        own = [Proposal(action=each, prior=most, rationale=_AS_BEFORE) for each in self._guesses(node) if each.key not in known]
        total = sum(each.prior for each in (*own, *found))
        return tuple(msgspec.structs.replace(each, prior=each.prior / total) for each in (*own, *found))

    def _guesses(self, node: Node) -> list[Action]:
        """Return the way's action in a state, or the same on elements whose names the earlier page did not have. No answer is guessed."""
        space, due = self._attempt.live.space, self.position
        seen, then = self._attempt.blobs.get_observation(node.observation), self._before(due)
        try:
            action = self._typed(due)
        except ActionError:
            return []
        if space.is_final(action):
            return []
        if (again := self._again(due, seen)) is not None:
            return [again]
        meant = then.element(action.elements[0]) if len(action.elements) == 1 else None
        if meant is None or meant.role not in INTERACTIVE:
            return []
        old = {(each.role, each.name) for each in then.elements}
        new = [each for each in seen.elements if each.role == meant.role and (each.role, each.name) not in old]
        return [space.renamed(action, {meant.id: each.id}) for each in new[:_RENAMED]]

    def _leads_back(self, node: Node, path: list[Edge]) -> bool:
        key = self._state.search.tree.root.id, node.id, self.position
        if key not in self._tested:
            self._tested[key] = self._is_on_way(node) or (len(path) == 1 and self._does_the_step(node))
        return self._tested[key]

    def _is_on_way(self, node: Node) -> bool:
        """Return whether the way can be followed from a state that was seen."""
        if node.leaf or not node.observation:
            return False
        seen = self._seen_at(node)
        if any(self._is_at(self.way.steps[index], node.fingerprint, seen) for index in self._possible()):
            return True
        return self._alike(self.position, seen) is not None

    def _seen_at(self, node: Node) -> Observation:
        return self._attempt.blobs.get_observation(node.observation)

    def _does_the_step(self, node: Node) -> bool:
        """Return whether the action that led from the root to a node did what the step that is due did.

        A write is known by the request that it sends, or would have sent; another step by what it brought. A text must be typed.
        """
        due, root = self.position, self._state.search.tree.root
        acted = self._state.search.acted.get((root.id, node.via)) if node.parent is root else None
        if acted is None or not self._types(due, root.edges[node.via].action):
            return False
        if self.way.requests(due):
            return self.way.sends(due, acted.effects) and self._has_texts(due, self._seen_at(root))
        after = self._after(due)
        if after is None or node.leaf or not node.observation or any(each.is_write or each.is_blocked for each in acted.effects):
            return False
        return did_the_same(self._before(due), after, self._seen_at(root), self._seen_at(node))

    def _types(self, index: int, action: Action) -> bool:
        """Return whether an action types the text of a step of the way, if the step types one."""
        try:
            meant = self._typed(index)
        except ActionError:
            return False
        texts = [each.args[len(each.elements) :] for each in (meant, action)]
        return meant.name not in TYPING or (action.name == meant.name and texts[0] == texts[1])

    def _agreed(self, root: Node) -> Edge | None:
        """Return the policy's first choice at the root if it is the way's action, or a guess of it that cannot be tried in a simulation."""
        own = [edge for edge in root.edges if edge.rationale != _AS_BEFORE and not edge.futile]
        best = max(own, key=lambda edge: edge.prior, default=None)
        if best is None or not root.expansions:
            return None
        if not self._has_texts(self.position, self._seen_at(root)):
            return None
        meant = self._again(self.position, self._seen_at(root))
        if meant is not None and meant.key == best.action.key:
            return best
        untried = best.child is not None and best.child.unreached
        return best if untried and best.action.key in {each.key for each in self._guesses(root)} else None

    def grants(self, question: PersonQuestion) -> str | None:
        """Return the reason if a write is refused since the way has sent it, empty if the yes to the way's writes is for it.

        None if a person is to be asked.
        """
        if question.kind != "write" or not self.way.allowed:
            return None
        key = key_of(question)
        most, sent = self.way.allowed[key], Counter(map(key_of, self._state.people.granted))[key]
        if sent < most:
            return "" if self._has_its_texts(key) else None
        if not most or question.method in SAFE_METHODS:
            return None  # a GET is only presumed to write, and may be needed again: before a notice, it brought another page
        return f"{key} was sent already, as often as in the earlier run"

    def _has_its_texts(self, key: WriteKey) -> bool:
        """Return whether the present state holds what the next such request of the way, maybe a late one, was sent with."""
        place, last = self.position, len(self.way.steps) - 1
        due = [index for index, each in self.way.writes if each == key and index >= place - 1]
        at = place if self.way.drafts.get(key, last + 1) <= place else max(due[0], place) if due else None
        return at is not None and self._holds_typed(min(at, last), self._seen_at(self._state.search.tree.root))

    def told(self, line: ResultLine) -> ResultLine:
        """Return a result with what was followed and what was healed."""
        said = [self._guided(step) for step in self._state.live.carried_out]
        followed = sum(each is not None and each.match in _FOLLOWED for each in said)
        return msgspec.structs.replace(line, followed=followed, healed=self._all_healed())

    def _all_healed(self) -> tuple[str, ...]:
        """Return a line for each place at which the search found another way: the step of the way, and what was done for it."""
        found, own, live = list[str](), list[str](), self._state.live
        began, why = 0, ""
        for id, step in zip(live.path, live.carried_out, strict=False):
            guided = self._guided(step)
            if step.changed:
                continue
            if guided is not None and guided.match in _FOLLOWED:
                found += self._healed(own, began, self._due(step.step), why)
                own = []
                continue
            if not own:
                began, why = self._due(step.step), live.left[id].reason if id in live.left else ""
            node = self._state.search.tree.nodes[id]
            own.append(action_label(step.action, self._attempt.blobs.get_observation(node.observation)))
        return (*found, *self._healed(own, began, self.position, why))

    def _healed(self, done: list[str], began: int, due: int, why: str) -> list[str]:
        """Return the line for one such place, of the actions that were done there; nothing if there were none."""
        if not done or began >= len(self.way.steps):
            return []
        place = "in place of" if due > began else "before"
        differs = f"; the page differs: {why}" if why else ""
        return [f"{place} step {began + 1}, {self.label(began)}: {', then '.join(done)}{differs}"]

    def _why(self) -> str:
        left = self._state.live.left.get(self._state.search.tree.root.id)
        return left.reason if left is not None else ""

    def _difference(self, index: int, seen: Observation) -> str:
        """Return the difference between a state and the one before a step of the way, in a few words."""
        then = self._before(index)
        if then.url != seen.url:
            return f"at {seen.url} in place of {then.url}"
        parts = (("without", marks(then) - marks(seen)), ("with", marks(seen) - marks(then)))
        told = [next((f"{word} {role} {quoted(name, LABEL_NAME)}" for role, name, _ in some if name.strip()), "") for word, some in parts]
        return " and ".join(filter(None, told)) or "the same elements in another order or state"

    def label(self, index: int) -> str:
        """Return the action of a step of the way, with the names of its elements."""
        return action_label(self.way.steps[index].action, self._before(index))


def _surely_wrote(effects: Sequence[SideEffect]) -> bool:
    """Return whether a write was sent that is not only presumed to be one."""
    return any(each.is_write and each.method not in SAFE_METHODS for each in effects)


def _below(root: Node) -> Iterator[Node]:
    """Yield the states below a root, the nearest first."""
    waiting, known = [root], {root.id}
    for node in waiting:
        for edge in node.edges:
            for child in edge.outcomes:
                if child.id not in known and child.parent is node:
                    known.add(child.id)
                    waiting.append(child)
                    yield child


def _path(root: Node, node: Node) -> list[Edge]:
    """Return the edges from a root to a node below it."""
    path = list[Edge]()
    while node is not root and node.parent is not None:
        path.append(node.parent.edges[node.via])
        node = node.parent
    return path[::-1]
