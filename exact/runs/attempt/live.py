"""The live environment of an attempt: the one in which actions are committed, and nothing else.

Committed actions, rebound to the elements of another environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from typing import Any, Literal

from exact.action import Action, ActionSpace
from exact.environments.base import Environment, EnvironmentFactory, SideEffect, StateChanged, Transition, evaluate_outcome, step_in
from exact.environments.restore.slot import Slot, SlotContent
from exact.environments.restore.snapshots import StoredSnapshot
from exact.errors import ActionError, EnvironmentFailure, UncertainCommit
from exact.observation import Element, Observation, same_state
from exact.runs.attempt.observations import observed_fields, waypoints, wrote
from exact.runs.attempt.person import AttemptPerson
from exact.runs.journal import events as ev
from exact.runs.journal.search_state import WAIT
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
from exact.search.base import Decision
from exact.search.tree import Node
from exact.task import Outcome, Score, Task

_DETERMINISTIC: dict[bool | None, Literal["yes", "no", "presumed"]] = {True: "yes", False: "no", None: "presumed"}

UNCERTAIN = (
    "look at the site: if it was not done, `exact resume --repeat-uncertain` with the folder of this run does it; "
    "if it was, start a new run"
)


BY_PERSON = Action("person", (), "person")
"""What a person did in the browser themselves. It cannot be repeated."""


class LiveEnvironment:
    """The live environment, opened when it is first needed.

    After a crash it is rebuilt by a reset and the committed actions, where that repeats no write.
    """

    def __init__(
        self,
        environments: EnvironmentFactory,
        task: Task,
        state: AttemptState,
        record: Callable[[ev.AnyEvent], None],
        blobs: Blobs,
        now: Callable[[], float],
        person: AttemptPerson,
    ) -> None:
        self._environments, self._task, self._state, self._record, self._blobs, self._now = environments, task, state, record, blobs, now
        self._person = person
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self.reset_seconds = 0.0
        """Seconds of the last reset; 0 before the first."""
        self._came: Transition | None = None
        """Transition to the state in which a session's environment was opened again, if it is another one than the root."""

    async def open(self) -> Environment:
        """Return the environment, at the present root. Raises EnvironmentFailure."""
        if self._environment is None:
            environment = await self._stack.enter_async_context(self._environments.open(simulation=False))
            self._attend(environment)
            if self._state.live.started:
                await self._rebuild(environment)
            else:
                await self._begin(environment)
            self._attend(environment)  # a reset may have replaced it
            self._environment = environment
        return self._environment

    def _attend(self, environment: Environment) -> None:
        """Let an environment that asks a person ask the one of this attempt."""
        if attend := getattr(environment, "attend", None):
            attend(self._person)

    @property
    def shows(self) -> bool:
        """Whether the environment can be observed again after a person acted in it."""
        return hasattr(self._environment, "look")

    @property
    def space(self) -> ActionSpace:
        """Action space of the environment. Only after it was opened."""
        assert self._environment is not None, "the live environment is opened before anything is searched"
        return self._environment.actions

    @property
    def isolated(self) -> bool:
        """The capability `isolated` of the environment: reset undoes every side effect. Only after it was opened."""
        assert self._environment is not None, "the live environment is opened before anything is searched"
        return self._environment.capabilities.isolated

    @property
    def repeatable(self) -> Mapping[str, bool]:
        """Whether verbs of tools may be carried out again after a crash. Only after it was opened."""
        found: Mapping[str, bool] = getattr(self._environment, "repeatable", {})
        return found

    async def snapshot(self) -> StoredSnapshot | None:
        """Take a snapshot of the environment; None where it cannot give one."""
        environment = await self.open()
        obstacle: str = getattr(environment, "obstacle", "")
        if environment.capabilities.fidelity == "replay" or self._state.search.tree.root.leaf or obstacle:
            return None
        try:
            return StoredSnapshot(tuple(waypoints(self._state.search.tree.root)), await environment.snapshot(), environment, 0)
        except EnvironmentFailure:
            return None  # refused: the environment itself still works

    async def close(self) -> None:
        """Close the environment."""
        self._environment = None
        await self._stack.aclose()

    async def commit(self, decided: ev.Decided) -> None:
        """Take a decided action and journal the outcome.

        Raises EnvironmentFailure, or UncertainCommit where the action may have been carried out and cannot be undone.
        """
        environment = await self.open()
        root, index, began = self._state.search.tree.root, decided.decision.edges[0], self._now()
        seen: dict[str, Any] = {}
        refused = ""
        try:
            if not (refused := await self._person.allows_action(root, index)):
                action = root.edges[index].action
                acting = step_in(environment, action, root.fingerprint) if action != BY_PERSON else environment.look()  # type: ignore[attr-defined]
                transition = await acting
                seen = {**observed_fields(transition, self._blobs), "wrote": wrote(self._blobs, root, index, transition.effects)}
                if (why := transition.info.get("declined", "")) and same_state(seen.get("fingerprint", ""), root.fingerprint):
                    seen, refused = {"effects": transition.effects}, why
        except StateChanged as changed:
            return self._follow(decided, changed, round(self._now() - began, 6))
        except ActionError as error:
            refused = str(error)
        except EnvironmentFailure as error:
            isolated = environment.capabilities.isolated
            await self.close()  # ends the lease, so nothing is asked of the environment after that
            if not isolated:
                raise UncertainCommit(f"the environment broke while {decided.action} was under way ({error}): {UNCERTAIN}") from error
            raise
        foreseen = [node for node in root.edges[index].outcomes if not node.unseen]
        agrees = None if refused or not foreseen else any(same_state(seen.get("fingerprint", ""), node.fingerprint) for node in foreseen)
        seconds = round(self._now() - began, 6)
        self._record(
            ev.Committed(step=decided.step, edge=index, action=decided.action, refused=refused, agrees=agrees, seconds=seconds, **seen)
        )

    async def look(self) -> bool:
        """Journal the state as it is now, if it has changed by itself since it was observed. Return whether it has.

        A decided action is refused then: it was chosen in another state. On a page that changes all the time the look is left out, so that
        something is done. Raises EnvironmentFailure.
        """
        environment, state = await self.open(), self._state
        root, decided = state.search.tree.root, state.live.decided
        if self._came is not None:
            came, self._came = self._came, None
            return self._note_change(came)
        if root.leaf or state.search.ordered is not None or (decided and (decided.action == BY_PERSON.key or state.spending.is_unsteady)):
            return False
        if (changes := getattr(environment, "changes", None)) is None:
            return False
        came = await changes({id for edge in root.edges for id in edge.action.elements})
        return came is not None and self._note_change(came)

    def _note_change(self, came: Transition) -> bool:
        """Journal a transition that nobody decided on, and refuse the decided action, if there is one. Return True."""
        if (decided := self._state.live.decided) is not None:
            why = f"{decided.action} was not carried out: the page changed by itself while it was chosen"
            self._record(ev.Committed(step=decided.step, edge=decided.decision.edges[0], action=decided.action, refused=why, changed=True))
        self._record_wait(came)
        return True

    def _follow(self, decided: ev.Decided, changed: StateChanged, seconds: float) -> None:
        """Journal that a decided action was refused since the state had changed by itself, then the state as it is now."""
        step, edge = decided.step, decided.decision.edges[0]
        self._record(ev.Committed(step=step, edge=edge, action=decided.action, refused=str(changed), changed=True, seconds=seconds))
        self._record_wait(changed.came)

    def _record_wait(self, came: Transition) -> None:
        """Journal the state as it is now as the outcome of a `wait`, with the actions of the root that can still be taken."""
        root, step = self._state.search.tree.root, len(self._state.live.committed)
        wait = next((index for index, each in enumerate(root.edges) if each.action.key == WAIT.key), len(root.edges))
        decision = Decision(edges=(wait,), reason="the page changed by itself", value=None)
        self._record(ev.Decided(step=step, action=WAIT.key, decision=decision))
        seen, still = observed_fields(came, self._blobs), set(came.info.get("still", "").split())
        tried_out = self._state.search.algorithm.simulates  # else an action is committed unseen, so it is chosen anew
        kept = tuple(
            i for i, each in enumerate(root.edges) if tried_out and each.action.elements and still.issuperset(each.action.elements)
        )
        self._record(ev.Committed(step=step, edge=wait, action=WAIT.key, agrees=False, changed=True, kept=kept, **seen))

    def promote(self, slot: Slot, decided: ev.Decided, child: Node) -> None:
        """Exchange the live environment with that of a slot at the committed child, and journal the commit."""
        assert self._environment is not None
        root, index = self._state.search.tree.root, decided.decision.edges[0]
        old = SlotContent(self._stack, self._environment, tuple(waypoints(root)))
        acted = self._state.search.acted.get((root.id, index)) if child is root.edges[index].child else None
        self._record(
            ev.Committed(
                step=decided.step,
                edge=index,
                action=decided.action,
                fingerprint=child.fingerprint,
                terminated=child.terminated,
                observation=child.observation,
                screenshot=child.screenshot,
                effects=acted.effects if acted else (),
                info=acted.info if acted else {},
                agrees=True,
                promoted=True,
            )
        )
        self._stack, self._environment, _ = slot.exchange(old)

    async def evaluate(self, outcome: Outcome) -> Score | None:
        """Return the benchmark's score; None where the environment has no evaluator."""
        environment = await self.open()
        return await evaluate_outcome(environment, self._task, outcome) if environment.capabilities.evaluates else None

    async def _begin(self, environment: Environment) -> None:
        observation = await self._reset(environment)
        blob, screenshot = self._blobs.put_observation(observation)
        instruction = self._task.instruction or observation.instruction
        self._record(
            ev.Reset(
                instruction=instruction, fingerprint=observation.fingerprint, observation=blob, screenshot=screenshot,
                isolated=environment.capabilities.isolated, kept=getattr(environment, "moved", False),
                deterministic=_DETERMINISTIC[environment.capabilities.deterministic],
            )
        )  # fmt: skip

    async def _reset(self, environment: Environment) -> Observation:
        began = self._now()
        observation = await environment.reset(self._task)
        self.reset_seconds = self._now() - began
        return observation

    async def _rebuild(self, environment: Environment) -> None:
        if hasattr(environment, "moved"):
            return await self._look_again(environment)
        if self._state.live.would_write_again and not environment.capabilities.isolated:
            raise EnvironmentFailure(
                "the live environment is gone, and its committed actions wrote outside: they are not sent twice; start a new run"
            ).final()
        observation: Observation | None = await self._reset(environment)
        steps, effects = self._state.live.carried_out, list[SideEffect]()
        with rebuilding(environment):
            for step, then in zip(steps, observations_before_steps(self._state, self._blobs), strict=True):
                if step.action.startswith("ask_user"):
                    continue  # it was answered, and changed nothing
                transition = await environment.step(rebind(environment.actions, step.action, then, observation))
                effects.extend(transition.effects)
                observation = transition.observation
        self._record(ev.Rebuilt(transitions=len(steps), effects=tuple(effects)))
        if not same_state(observation.fingerprint if observation else "", self._state.search.tree.root.fingerprint):
            raise EnvironmentFailure(f"{self._task.id}: the committed actions lead to another state than before: start a new run").final()

    async def _look_again(self, environment: Environment) -> None:
        """Go on in a session's environment, which may have been opened again in another state than the root."""
        observation, root = await environment.reset(self._task), self._state.search.tree.root
        self._record(ev.Rebuilt(transitions=0))
        then = self._blobs.get_observation(root.observation) if root.observation else None
        same = then is not None and same_state(observation.fingerprint, root.fingerprint)
        if not same or then is None or [each.id for each in then.elements] != [each.id for each in observation.elements]:
            self._came = Transition(observation=observation)


def rebuilding(environment: Environment) -> AbstractContextManager[None]:
    """Return a context in which an environment takes committed steps again: tools are not called, their results are remembered."""
    context: Callable[[], AbstractContextManager[None]] = getattr(environment, "rebuilding", nullcontext)
    return context()


def observations_before_steps(state: AttemptState, blobs: Blobs) -> Iterator[Observation]:
    """Yield the observation before each step that was carried out, as the search saw it. Raises JournalError."""
    nodes, node = [], state.search.tree.root.parent
    while node is not None:
        nodes.append(node)
        node = node.parent
    for node in reversed(nodes):
        yield blobs.get_observation(node.observation)


def rebind(actions: ActionSpace, text: str, then: Observation, now: Observation | None) -> Action:
    """Return an action taken in one state for another environment, which may number its elements differently. Raises ActionError.

    In an equal state an element is the one at the same position. In another state (a date was written, a notice appeared) it is the one
    with the same role and name, the same of several where there are as many; where there is none, it is the one with the same id.
    """
    action = actions.parse(text)
    if now is None:
        return action
    if same_state(now.fingerprint, then.fingerprint) and len(now.elements) == len(then.elements):
        return actions.renamed(action, {one.id: other.id for one, other in zip(then.elements, now.elements, strict=True)})
    return actions.renamed(action, _same_name(then.elements, now.elements))


def _same_name(then: Sequence[Element], now: Sequence[Element]) -> dict[str, str]:
    """Return the new ids of elements that have the same role and name, by their old ids."""
    before, after = _ids_by_name(then), _ids_by_name(now)
    found = dict[str, str]()
    for name, ids in before.items():
        if len(ids) == len(after.get(name, ())):
            found |= zip(ids, after[name], strict=True)
    return found


def _ids_by_name(elements: Sequence[Element]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for each in elements:
        found.setdefault((each.role, each.name), []).append(each.id)
    return found
