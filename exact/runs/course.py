"""The course of a session, and its live environment, which stays open over the attempts at its goals.

After a crash the environment is brought to the place where the session stood, as far as a way leads there that sends nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeVar

import msgspec

from exact.action import Action
from exact.config import Config
from exact.context import EarlierGoal
from exact.environments.base import (
    Capabilities,
    Environment,
    EnvironmentFactory,
    Fork,
    ForkableFactory,
    Person,
    PersonQuestion,
    SideEffect,
    Snapshot,
    Transition,
)
from exact.errors import ActionError, BudgetExceeded, UsageError
from exact.observation import Observation, same_state
from exact.origins import is_web
from exact.reflection.record import action_label
from exact.runs.attempt.live import observations_before_steps, rebind, rebuilding
from exact.runs.attempt.person import Ask
from exact.runs.journal.file import read_journal
from exact.runs.journal.session import AnySessionEvent, GoalGiven, SessionEvent, SessionState
from exact.runs.journal.spending import SHARED, limits
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import ResultLine, RunFolder, scrubbed
from exact.runs.runner import line_of
from exact.runs.secrets import known_secrets
from exact.task import Task

E = TypeVar("E", bound=SessionEvent)
_SAME_PAGE = "its page was opened again"
_UNSENT = "texts that were typed and not sent, and what only scripts knew, cannot be had again"
_BY_HAND = "what you did by hand and did not send cannot be had again"


class SessionPlace(NamedTuple):
    """The place where a session stands, by its journals: what leads there, and what was seen there last."""

    steps: Sequence[tuple[str, Observation]] = ()
    """Actions that were carried out since the start, each with the observation before it."""
    seen: Observation | None = None
    """Last observation. None: no goal has begun."""
    effects: Sequence[SideEffect] = ()
    """Side effects of the actions."""
    handed_over: bool = False
    """Whether the user has acted in the page, which cannot be repeated."""


class SessionPerson:
    """Whoever is asked between the goals, when the user acts in the page or the page acts by itself."""

    def __init__(self, ask: Ask | None) -> None:
        self._ask = ask

    async def allows(self, question: PersonQuestion) -> str:
        """Return the reason if a request is not allowed; empty if it is."""
        return "" if self._ask is not None and await self._ask(question) is True else "nobody agreed to it"

    async def answer(self, question: PersonQuestion) -> str | None:
        """Return no answer: no agent asks between the goals."""
        return None


class KeptEnvironments:
    """A factory whose live environment stays open when an attempt has ended, so that the next one begins in its state.

    A live environment that broke is opened again, and brought to the session's place as far as a way leads there that sends nothing twice.
    """

    def __init__(
        self,
        inner: EnvironmentFactory,
        start: Task,
        place: Callable[[], SessionPlace],
        person: Person,
        opened_again: Callable[[str, str], None],
    ) -> None:
        """Keep the live environment of a factory.

        start: the task of the first state. place: returns the session's place. person: is asked between the attempts. opened_again: is
        called with the address at which an environment was opened again, and with what was lost.
        """
        self._inner, self._start, self._place, self._person, self._opened_again = inner, start, place, person, opened_again
        self._stack = AsyncExitStack()
        self._live: KeptEnvironment | None = None

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """Open a fresh environment for a simulation, or yield the live one."""
        if simulation:
            async with self._inner.open(simulation=True) as environment:
                yield environment
            return
        live = await self.live()
        try:
            yield live
        finally:
            live.attend(self._person)

    async def live(self) -> KeptEnvironment:
        """Return the live environment at the session's place. Raises EnvironmentFailure, and UsageError if it cannot be kept open."""
        if self._live is None or self._live.broken:
            await self.close()
            inner = await self._stack.enter_async_context(self._inner.open(simulation=False))
            if not hasattr(inner, "go_on"):
                raise UsageError(f"{type(inner).__name__} cannot go on after a goal: give it the coroutine go_on, see exact.Environment")
            live, place = KeptEnvironment(inner), self._place()
            live.attend(self._person)
            await live.begin(self._start)
            if place.seen is not None:
                self._opened_again(*await live.return_to(place))
            elif place.handed_over:
                self._opened_again(self._start.start, _BY_HAND)
            self._live = live
        return self._live

    async def close(self) -> None:
        """Close the live environment."""
        self._live = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the factory, such as `bytes`."""
        return getattr(self._inner, name)


class KeptForks(KeptEnvironments):
    """The same of a factory that forks."""

    _inner: ForkableFactory

    def fork(self, snapshot: Snapshot, *, simulation: bool) -> AbstractAsyncContextManager[Fork]:
        """Open a fork of a snapshot."""
        return self._inner.fork(snapshot, simulation=simulation)

    def has(self, snapshot: Snapshot) -> bool:
        return self._inner.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._inner.drop(snapshot)


class KeptEnvironment:
    """A live environment whose `reset` leaves the state as it is, and observes it."""

    def __init__(self, inner: Environment) -> None:
        self.inner = inner
        self.moved = False
        """Whether anything was done since the environment was at the session's start."""
        self.broken = False

    @property
    def capabilities(self) -> Capabilities:
        """Properties of the environment. No goal of a session has an evaluator."""
        return msgspec.structs.replace(self.inner.capabilities, evaluates=False)

    async def begin(self, start: Task) -> None:
        """Bring the environment to the session's start."""
        await self.inner.reset(start)

    async def reset(self, task: Task) -> Observation:
        """Observe the present state, in which an attempt begins."""
        return await self.observe()

    async def observe(self) -> Observation:
        """Observe the present state."""
        with self._call():
            observation: Observation = await self.inner.go_on()  # type: ignore[attr-defined]
        return observation

    async def step(self, action: Action) -> Transition:
        """Carry out one action."""
        self.moved = True
        with self._call():
            return await self.inner.step(action)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to the state of a snapshot."""
        self.moved = True
        with self._call():
            return await self.inner.restore(snapshot)

    async def close(self) -> None:
        """Leave the environment open: it belongs to the session."""

    def attend(self, person: Person) -> None:
        """Let an environment that asks a person ask this one."""
        if attend := getattr(self.inner, "attend", None):
            attend(person)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Note that the environment is unusable if a call of it fails, or is cancelled."""
        try:
            yield
        except ActionError:
            raise
        except BaseException:
            self.broken = True
            raise

    async def return_to(self, place: SessionPlace) -> tuple[str, str]:
        """Go from the session's start to a place. Return the address there, and what could not be had again; empty if nothing is known."""
        assert place.seen is not None
        self.moved, observation = True, await self.observe()
        if not place.handed_over and (self.inner.capabilities.isolated or not any(each.is_repeated for each in place.effects)):
            observation = await self._repeat(place.steps, observation)
        if same_state(observation.fingerprint, place.seen.fingerprint):
            return observation.url, ""
        opened = await self._goto(place, observation)
        if same_state(opened.fingerprint, place.seen.fingerprint):
            return opened.url, "" if not place.handed_over else _BY_HAND
        where = f"it was opened again at {opened.url}, in place of {place.seen.url}" if opened.url != place.seen.url else _SAME_PAGE
        return opened.url, f"the earlier browser is gone, and {where}: {_BY_HAND if place.handed_over else _UNSENT}"

    async def _repeat(self, steps: Sequence[tuple[str, Observation]], observation: Observation) -> Observation:
        """Take steps again as long as each state is the one that it was taken in. Return the last observation."""
        with rebuilding(self.inner):
            for text, then in steps:
                if text.partition(" ")[0] not in self.inner.actions.verbs or text.startswith("ask_user"):
                    continue  # a tool, or a question: neither changes the environment
                if not same_state(observation.fingerprint, then.fingerprint):
                    break
                try:
                    transition = await self.step(rebind(self.inner.actions, text, then, observation))
                except ActionError:
                    break
                observation = await self.observe() if transition.observation is None else transition.observation
        return observation

    async def _goto(self, place: SessionPlace, observation: Observation) -> Observation:
        """Open the page at which a session stood, unless its address was written to. Return what is seen."""
        assert place.seen is not None
        url, written = place.seen.url, {each.url.partition("#")[0] for each in place.effects if each.is_write}
        if "goto" not in self.inner.actions.verbs or not is_web(url) or url.partition("#")[0] in written:
            return observation
        try:
            came = await self.step(self.inner.actions.action("goto", url))
        except ActionError:
            return await self.observe()
        return came.observation or observation

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the environment, such as `changes` or `capabilities`."""
        return getattr(self.inner, name)


class Course:
    """The course of a session by its journals: those of earlier processes, and of this one."""

    def __init__(self, folder: RunFolder, config: Config) -> None:
        self._folder, self._config, self.state = folder, config, SessionState()
        self._events = list(folder.session())
        """Events of earlier processes."""
        for event in self._events:
            self.state.apply(event)
        self._at = self._given = 0
        """Events of earlier processes that this one has come past; goals that it has given."""

    @property
    def behind(self) -> bool:
        """Whether the journal has goals that this process has not given yet."""
        return self._given < len(self.state.goals)

    def note(self, event: AnySessionEvent) -> None:
        """Journal an event, then apply it. Raises JournalError."""
        self._folder.note(event)
        self.state.apply(event)

    def past(self, kind: type[E]) -> E | None:
        """Come past an event of a kind that an earlier process journalled before the next goal. Return it; None if there is none."""
        for index, event in enumerate(self._events[self._at :], self._at + 1):
            if isinstance(event, GoalGiven):
                return None
            if isinstance(event, kind):
                self._at = index
                return event
        return None

    def number(self, given: GoalGiven) -> int:
        """Return the number of a goal, from 0, which is journalled unless it is there.

        Raises UsageError if the journal has another goal there, BudgetExceeded if a cap for all goals is used up.
        """
        tasks, goals = self._folder.manifest.tasks, self.state.goals
        told = Task(id="", instruction=given.instruction)
        self._folder.protect(known_secrets((*tasks, told), self._config))
        given, last = scrubbed(given, self._folder.scrubber), len(goals) - 1
        if self.behind:
            return self._give_again(given)
        line = self.result(last) if goals else None
        if goals and goals[last] == given and (line is None or line.status == "failed"):
            return last
        if goals and line is None:  # it was cancelled, and is not gone on with
            self._folder.add_result(line_of(tasks[last], self._config, self.attempt(last) or AttemptState(self._config)))
        spent = self.spent(len(goals))
        for kind, cap in limits(self._config.limits).items():
            if cap is not None and spent.get(kind, 0.0) > 0 and spent[kind] >= cap:
                raise BudgetExceeded("session", kind, cap)
        self.note(given)
        self._given, self._at = len(self.state.goals), len(self._events)
        return self._given - 1

    def _give_again(self, given: GoalGiven) -> int:
        number = self._given
        if (known := self.state.goals[number]) != given:
            raise UsageError(
                f"goal {number + 1} of the session in {self._folder.path} is {known.instruction!r} with its answer, and not "
                f"{given.instruction!r}: give its goals in their order"
            )
        self._at = 1 + [at for at, event in enumerate(self._events) if isinstance(event, GoalGiven)][number]
        self._given = number + 1
        return number

    def result(self, number: int) -> ResultLine | None:
        """Return the last result of a goal; None if it has not ended."""
        id = self._folder.manifest.tasks[number].id
        return next((line for line in reversed(list(self._folder.results())) if line.task == id), None)

    def attempt(self, number: int) -> AttemptState | None:
        """Return the state that the journal of a goal leads to; None if it has not begun."""
        path = self._folder.task_folder(self._folder.manifest.tasks[number]) / "journal.jsonl"
        state = fold(self._config, read_journal(path), failing=True) if path.exists() else None
        return state if state is not None and state.live.started else None

    def spent(self, before: int) -> dict[str, float]:
        """Return what the goals before a number took of what is capped for all."""
        found = [state.spending.task.spent for number in range(before) if (state := self.attempt(number)) is not None]
        return {kind: sum(each.get(kind, 0.0) for each in found) for kind in SHARED}

    def earlier(self, before: int) -> tuple[EarlierGoal, ...]:
        """Return the goals before a number, as the next one is told of them."""
        found = list[EarlierGoal]()
        for number, goal in enumerate(self.state.goals[:before]):
            state, line = self.attempt(number), self.result(number)
            actions = tuple(self._labels(state)) if state else ()
            end, answer = (line.reason, line.answer or "") if line else ("it was cancelled", "")
            undone = number not in self.state.present.goals
            found.append(EarlierGoal(instruction=goal.instruction, end=end, answer=answer, actions=actions, undone=undone))
        return tuple(found)

    def _labels(self, state: AttemptState) -> Iterator[str]:
        seen = observations_before_steps(state, self._folder.blobs)
        return (action_label(step.action, then) for step, then in zip(state.live.carried_out, seen, strict=True) if not step.changed)

    def place(self) -> SessionPlace:
        """Return the place where the session stands."""
        steps, seen, blobs = list[tuple[str, Observation]](), None, self._folder.blobs
        states = [state for number in self.state.present.goals if (state := self.attempt(number)) is not None]
        for state in states:
            steps += zip((step.action for step in state.live.carried_out), observations_before_steps(state, blobs), strict=True)
            at = state.search.tree.root
            while not at.observation and at.parent is not None:
                at = at.parent
            seen = blobs.get_observation(at.observation) if at.observation else seen
        effects = [effect for state in states for step in state.live.committed for effect in step.effects]
        return SessionPlace(steps, seen, effects, handed_over=self.state.present.handed_over > 0)
