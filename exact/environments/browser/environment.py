"""A browser environment: the episodes in one browser context and its tabs, behind the contract of `Environment`."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from exact.action import Action, ActionSpace
from exact.environments.base import SAFE_METHODS, Capabilities, Person, SideEffect, Snapshot, StateChanged, Transition
from exact.environments.browser.act.action_context import Ineffective, PartialAction, Vanished
from exact.environments.browser.act.grammar import ASK_USER
from exact.environments.browser.episode import BrowserEpisode
from exact.environments.browser.interaction import Observed, evaluate_on, mark_late_of_timers, marked_late
from exact.environments.browser.observe.describe import changed_elements, held_text, moved_elements
from exact.environments.browser.observe.redaction import SHOWN
from exact.environments.browser.page.settle import JudgedDocuments, judging
from exact.environments.browser.presume.controls import Presumption
from exact.environments.browser.snapshot.state import Memo
from exact.environments.browser.tabs import first_line
from exact.environments.process.process import processor_seconds
from exact.errors import ActionError, EnvironmentFailure, ExactError, InfrastructureError, UsageError
from exact.observation import Observation
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import Page

Evaluator = Callable[["Page", Outcome], Awaitable[Score]]
"""Scores the outcome of an episode, given its last page."""
_DRAGS = ("drag", "drag_at")
_BEGINNINGS = ("reset", "restore")
"""Calls that begin an episode with a new page."""


class BrowserEnvironment:
    """An environment in a browser: a context that the backend of its episode provides, on this machine or in a sandbox."""

    def __init__(self, episode: BrowserEpisode, evaluator: Evaluator | None = None) -> None:
        """Make an environment that plays the episodes of `episode`. `evaluator`: scores their last pages, if any."""
        self.episode = episode
        self._evaluator, self._terminated = evaluator, True
        self._late: tuple[SideEffect, ...] = ()
        """Side effects of earlier actions that no transition reports yet."""

    @property
    def capabilities(self) -> Capabilities:
        backend, config, scores = self.episode.backend, self.episode.tabs.config, self._evaluator is not None
        fidelity = backend.fidelity(config)
        return Capabilities(
            fidelity=fidelity, isolated=backend.isolated, deterministic=True, screenshots=config.screenshots, evaluates=scores
        )

    @property
    def actions(self) -> ActionSpace:
        return self.episode.actions

    @property
    def pid(self) -> int | None:
        """Process id of the sandbox that the environment has to itself; None if it shares its browser."""
        return self.episode.backend.pid

    @property
    def processor(self) -> float:
        """Processor seconds that the sandbox has used; 0 without one."""
        return processor_seconds(self.pid) if self.pid else 0.0

    @property
    def page(self) -> Page:
        """The present page, for evaluators. Raises EnvironmentFailure before the first reset."""
        return self.episode.tabs.present.page

    @property
    def observation(self) -> Observation:
        """The last observation; in a new fork, the one on arrival. Raises EnvironmentFailure before the first one."""
        if (seen := self.episode.interaction.seen) is None:
            raise EnvironmentFailure("nothing was observed yet: reset first")
        return seen

    @property
    def _task(self) -> Task | None:
        """Task of the episode; None before the first."""
        return self.episode.task

    @property
    def obstacle(self) -> str:
        """The reason why no snapshot can be taken now: something is under way. Empty if there is none."""
        tabs = self.episode.tabs
        if self._terminated or self._task is None or not tabs.window.tabs:
            return "no episode is under way"
        return tabs.obstacle or self.episode.backend.obstacle(tabs)

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the start of a task, without earlier cookies, storage and scripts. Raises EnvironmentFailure."""
        episode = self.episode
        if episode.tabs.config.learn_masks and episode.observer.masks.begin_learning(task):
            await self._learn_masks(task)
        return await self._reset(task)

    async def _learn_masks(self, task: Task) -> None:
        """Observe the start three times, the last two without a reset between them. Parts that differ are volatile."""
        observer = self.episode.observer
        await self._reset(task)
        first = observer.identities
        await self._reset(task)
        observer.masks.learn(first, second := observer.identities)
        async with self._call("look"):
            await self.episode.interaction.observe(run=False)
        observer.masks.learn(second, observer.identities)

    async def _reset(self, task: Task) -> Observation:
        self._terminated = True
        async with self._call("reset"):
            observed = await self.episode.prepare(task)
        if observed.terminated:
            raise EnvironmentFailure(f"{task.id} is over before it begins: check the page's set-up")
        blocked = [effect for effect in self.episode.tabs.gate.take_effects() if effect.kind == "blocked"]
        observation = self._begin(observed)
        self._late = marked_late(blocked)  # the first step reports requests blocked meanwhile
        return observation

    async def step(self, action: Action) -> Transition:
        """Carry out one action and settle; see Environment."""
        episode, actions = self.episode, self.actions
        tabs, gate, observe = episode.tabs, episode.tabs.gate, episode.interaction.observe
        if self._terminated:
            raise ActionError("the episode is over: reset first")
        if action.name not in actions.verbs:
            raise ActionError(f"unknown action {action}: valid: {', '.join(actions.verbs)}")
        if action.name == ASK_USER.name:
            return await self._ask_user(str(action.args[0]))
        self._late += marked_late(gate.take_effects())
        if actions.is_final(action):
            self._terminated = True
            return Transition(observation=None, terminated=True, effects=self._take_late())
        before, here, began = episode.interaction.seen, tabs.present.url, time.time()
        presumption = self._presume(action, before)
        if presumption and (stopped := self._not_carried_out(presumption)):
            return Transition(observation=before, effects=(*self._take_late(), stopped))
        gate.begin_action(presumption=presumption.why if presumption and presumption.kind == "request" else "")
        async with self._call(f"step {action.key}"):
            try:
                refused = await self._act(action)
            except ActionError as error:
                raise await self._refusal(action, before, error) from error
            observed = await observe()
            while gate.confirmations.waiting:  # a person decides whether a write may be sent
                with tabs.timeouts.unlimited():
                    await gate.confirmations.answered()
                observed = await observe()
            if not observed.terminated and await episode.login_has_expired(observed.observation.url):
                observed, refused = await self._renew_login(action, before, here, observed)
            self._terminated = observed.terminated
            effects = gate.take_effects()
            refused = refused or episode.interaction.failed_navigation(wrote=any(effect.is_write for effect in effects))
            if not tabs.dialogs.is_asked:
                effects = await mark_late_of_timers(effects, tabs.window.tabs, began)
        effects = self._note_step(action, before, presumption, effects)
        effects = (*self._take_late(), *map(episode.secrets.effect, effects))
        transition = self._transition(action, before, observed, refused, effects)
        if declined := gate.confirmations.declined:
            transition = msgspec.structs.replace(transition, info={**transition.info, "declined": declined})
        return transition

    def attend(self, person: Person) -> None:
        """Ask a person from now on, as the configuration provides."""
        self.episode.attend(person)

    async def look(self) -> Transition:
        """Observe the state after a person acted in the browser themselves. It counts as a write, since its requests are unknown."""
        async with self._call("look"):
            observed = await self.episode.interaction.observe()
            effects = tuple(map(self.episode.secrets.effect, self.episode.tabs.gate.take_effects()))
        self._terminated = observed.terminated
        by_person = SideEffect(kind="request", method="PERSON", url=observed.observation.url, reach="outside", write=True)
        seen = None if observed.terminated else observed.observation
        return Transition(observation=seen, terminated=observed.terminated, effects=(*effects, by_person))

    async def go_on(self) -> Observation:
        """Observe the present state, in which the next goal of a session begins. Raises EnvironmentFailure."""
        if self._task is None:
            raise EnvironmentFailure("no page was opened yet: reset first")
        async with self._call("go on"):
            observed = await self.episode.interaction.observe()
        if observed.terminated:
            raise EnvironmentFailure(f"{self._task.id} is over: reset first")
        self._late += marked_late(self.episode.tabs.gate.take_effects())
        self._terminated = False
        return observed.observation

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Page]:
        """Lend the present page for a block, in which the browser is not paused. The gate decides about its requests as ever."""
        async with self.episode.backend.call("the page of a session"):
            yield self.page

    async def changes(self, ids: Collection[str] = ()) -> Transition | None:
        """Observe again if the state has changed by itself; see `Environment`. None if it is the state that was observed last."""
        interaction, before = self.episode.interaction, self.episode.interaction.seen
        if self._terminated or before is None:
            return None
        async with self._call("look"):
            if not await interaction.has_changed():
                return None
            was = self.episode.observer.page
            observed = await interaction.observe(run=False)
        self._late += marked_late(self.episode.tabs.gate.take_effects())
        now, self._terminated = observed.observation, observed.terminated
        if now.fingerprint == before.fingerprint and not observed.terminated:
            return None
        info = {"changed": changed_elements(before.elements, now.elements), "still": " ".join(interaction.still(was, ids))}
        seen = None if observed.terminated else now
        return Transition(observation=seen, terminated=observed.terminated, effects=self._take_late(), info=info)

    async def _ask_user(self, text: str) -> Transition:
        """Ask a question to the person who watches. A simulation leaves that to the commit."""
        episode, seen = self.episode, self.episode.interaction.seen
        if episode.simulation:
            asked = SideEffect(kind="blocked", method="ASK", detail="left to the commit: a question to the person who watches")
            return Transition(observation=seen, effects=(asked,))
        said = episode.secrets.mask(await episode.answer(episode.secrets.mask(text)))
        said = f"the user answers {json.dumps(said, ensure_ascii=False)}" if said else "the user did not answer"
        return Transition(observation=seen, info={"answer": said})

    def _presume(self, action: Action, seen: Observation | None) -> Presumption | None:
        """Return the presumed change of an action. None in environments that undo changes."""
        episode = self.episode
        return episode.presumption.of(action, seen, episode.observer.controls) if episode.tabs.gate.rules.presumes else None

    def _not_carried_out(self, presumption: Presumption) -> SideEffect | None:
        """Return the side effect of an action that a simulation leaves to the commit, since nothing else would stop it.

        It opens another program, or writes to the clipboard of a browser that a person sees. None for other actions.
        """
        kind = presumption.kind
        if not self.episode.simulation or kind == "request" or (kind == "clipboard" and not self.episode.tabs.config.headed):
            return None
        effect = SideEffect(kind="blocked", method=kind.upper(), url=presumption.url, detail=f"left to the commit: {presumption.why}")
        return self.episode.secrets.effect(effect)

    def _note_step(
        self, action: Action, seen: Observation | None, presumption: Presumption | None, effects: tuple[SideEffect, ...]
    ) -> tuple[SideEffect, ...]:
        """Remember whether a step wrote, for the presumption of later ones. Return its side effects, including a program that it opened."""
        gate = self.episode.tabs.gate
        wrote = any(each.is_write or (each.is_blocked and each.method not in SAFE_METHODS) for each in effects if not each.late)
        self.episode.presumption.note(action, seen, wrote=wrote, complete=not (gate.sent_presumed or gate.rules.is_read_only))
        if presumption is None or not presumption.url:
            return effects
        opened = SideEffect(kind="request", method=presumption.kind.upper(), url=presumption.url, reach="outside", write=False)
        return (*effects, opened)

    def _take_late(self) -> tuple[SideEffect, ...]:
        """Return the side effects that earlier actions had after their steps."""
        late, self._late = self._late, ()
        return tuple(map(self.episode.secrets.effect, late))

    async def _renew_login(
        self, action: Action, before: Observation | None, here: str, observed: Observed
    ) -> tuple[Observed, PartialAction | None]:
        """Log in again, return to the page before an action, and repeat the action if that page is as it was and nothing was sent.

        `here`: address of the page before the action. Return the observation, and the reason why the action was not repeated. A simulated
        action that is not repeated is an EnvironmentFailure, which a fresh environment repairs: its outcome is still unknown. Raises
        EnvironmentFailure if the log-in cannot be renewed.
        """
        episode, observer, observe = self.episode, self.episode.observer, self.episode.interaction.observe
        gate, url, ids = episode.tabs.gate, observed.observation.url, observer.ids
        effects = gate.take_effects()
        assert before is not None
        await episode.renew_login(url, here)
        observer.reuse_ids(ids, before.elements, (await observe()).observation.elements)
        observed = await observe(run=False)
        gate.take_effects()  # those of the log-in
        if observed.observation.fingerprint == before.fingerprint and not any(effect.is_write for effect in effects):
            gate.begin_action()
            refused = await self._act(action)
            observed, gate.unauthorized = await observe(), ""  # a page that this account may not see
            return observed, refused
        if episode.simulation:
            raise EnvironmentFailure(f"the log-in expired during the task, at {url}, and was renewed: the action was not repeated")
        for effect in effects:
            gate.log.record(effect)
        return observed, PartialAction("the log-in had expired and was renewed: its page was opened again, and the action was not repeated")

    async def _refusal(self, action: Action, before: Observation | None, refused: ActionError) -> ActionError:
        """Observe again after a refusal. Return a StateChanged if the page, or the element, is no longer the one that was seen."""
        secrets, observed = self.episode.secrets, await self.episode.interaction.observe(run=False)
        now, over = observed.observation, observed.terminated
        same = before is not None and (now.fingerprint, now.text) == (before.fingerprint, before.text)
        if same and not over and not isinstance(refused, Vanished):
            return refused
        self._terminated = over
        effects = (*self._take_late(), *map(secrets.effect, marked_late(self.episode.tabs.gate.take_effects())))
        why = f"{refused}: the page changed by itself before {secrets.mask(action.key)} was carried out"
        info = {"changed": changed_elements(before.elements, now.elements)} if before else {}
        return StateChanged(why, Transition(observation=None if over else now, terminated=over, effects=effects, info=info))

    async def _act(self, action: Action) -> PartialAction | None:
        """Carry out an action. Return the reason if it broke off halfway; None if it did not."""
        hide = self.episode.secrets.mask
        try:
            await self.episode.interaction.act(action)
        except PartialAction as error:
            return type(error)(hide(str(error)))
        except ActionError as error:
            raise type(error)(hide(str(error))) from error.__cause__
        return None

    def _transition(
        self,
        action: Action,
        before: Observation | None,
        observed: Observed,
        refused: PartialAction | None,
        effects: tuple[SideEffect, ...],
    ) -> Transition:
        """Describe the outcome of a step. `refused`: the reason why the action broke off.

        Raises ActionError if the action broke off, or its download was stopped, and nothing else came of it.
        """
        secrets, tabs, observation = self.episode.secrets, self.episode.tabs, observed.observation
        own = [effect for effect in effects if not effect.late]
        comparable = not observed.unsettled and not (observed.terminated or tabs.clock) and before is not None
        same = comparable and before is not None and before.fingerprint == observation.fingerprint
        ineffective = isinstance(refused, Ineffective) and before is not None and before.fingerprint == observation.fingerprint
        if refused and (same or ineffective) and not own:
            self._late = effects
            raise ActionError(str(refused))
        info = {"unsettled": observed.unsettled} if observed.unsettled else {}
        if url := tabs.window.unanswered():
            info["unsettled"] = f"{secrets.mask(url)} did not answer for {tabs.config.answer_seconds:g} s: its loading was stopped"
        if refused and not isinstance(refused, Ineffective):
            info["refused"] = str(refused)
        if action.name == "fill" and (held := held_text(observation, action.elements[0], str(action.args[1]))):
            info["holds"] = held
        alike = same or (comparable and before is not None and before.text == observation.text)  # a moved element may look moved too
        if alike and before and action.name in _DRAGS and (found := moved_elements(before.elements, observation.elements)):
            info["moved"] = found
        if stopped := tabs.downloads.refused or tabs.take_too_large():
            tabs.downloads.refused, stopped = "", secrets.mask(stopped)
            if same and len(own) == 1:
                raise ActionError(stopped)
            info["download"] = stopped
        seen = None if observed.terminated else observation
        return Transition(observation=seen, terminated=observed.terminated, effects=effects, info=info)

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the present state. Raises EnvironmentFailure if there is an obstacle; the state is unchanged then."""
        if obstacle := self.obstacle:
            raise EnvironmentFailure(f"no snapshot now: {obstacle}")
        from playwright.async_api import Error

        tab = self.episode.tabs.present
        async with self._call("snapshot"):
            try:
                return await self.episode.snapshot()
            except Error as error:
                if not tab.is_navigation_error(error):
                    raise
                raise EnvironmentFailure("no snapshot now: the page was replaced by another one meanwhile") from error

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to a snapshot that any environment of this kind took. Compare the fingerprints. Raises EnvironmentFailure if it is gone.

        If the snapshot holds a page only, parts of the state may be missing. Elements get the ids they had, as far as it is built alike.
        """
        memo = self.episode.recall(snapshot)
        self._terminated = True
        if memo.page is None:  # the snapshot holds the browser
            await self.episode.leave()
            await self.episode.backend.restore(snapshot)
        return await self.resume(memo)

    async def resume(self, memo: Memo) -> Observation:
        """Continue the episode of a snapshot, in whose state the browser is, or whose page is loaded. Raises EnvironmentFailure."""
        self._terminated = True
        async with self._call("restore"):
            observed = await self.episode.resume(memo)
        if observed.terminated:
            self.episode.tabs.gate.take_effects()
            raise EnvironmentFailure(f"{memo.task.id} is over after the restore: return by another route")
        return self._begin(observed)

    async def evaluate(self, outcome: Outcome) -> Score:
        """Score the outcome on the present page, without a reset. Raises UsageError if the environment has no evaluator."""
        if self._evaluator is None:
            raise UsageError("this environment has no evaluator: its outcomes are judged, not scored")
        secrets, tabs = self.episode.secrets, self.episode.tabs
        config, gate = tabs.config, tabs.gate
        if config.mask and SHOWN in (outcome.answer or ""):
            raise InfrastructureError(f"the answer holds {SHOWN}, in place of a text that browser.mask hides: it is not scored").final()
        judged = secrets.revealed(msgspec.structs.replace(outcome, task=self._task))
        documents, before, gate.is_judged = JudgedDocuments(config.answer_seconds, gate.partial), dict(gate.partial), True
        try:
            async with self._call("evaluate"):
                with tabs.timeouts.unlimited(), judging(documents):
                    score = await evaluate_on(tabs, partial(self._evaluator, self.page, judged))
            for frame in (tab.main_frame for tab in tabs.window.tabs):  # a click of the evaluator may have led to such a document
                if (url := gate.partial.get(frame, "")) != before.get(frame, ""):
                    raise documents.still_loading(url)
        except ExactError as error:  # an evaluator may repeat secrets that it read
            error.args = (secrets.mask(str(error)),)
            raise
        finally:
            gate.is_judged = False
        return msgspec.structs.replace(score, reason=secrets.mask(score.reason))

    async def close(self) -> None:
        """End the episode, close its browser context and release the browser."""
        self._terminated = True
        try:
            await self.episode.leave()
        finally:
            await self.episode.backend.close()

    def _begin(self, observed: Observed) -> Observation:
        """Let an episode begin, without the side effects of its preparation."""
        self.episode.tabs.gate.take_effects()
        self._late = ()
        self._terminated = False
        return observed.observation

    @asynccontextmanager
    async def _call(self, what: str) -> AsyncIterator[None]:
        """Run one call within the page's time limit, and turn Playwright's errors into EnvironmentFailure."""
        from playwright.async_api import Error

        timeouts = self.episode.tabs.timeouts
        if timeouts.broken and what not in _BEGINNINGS:  # since the last call: the browser answers nothing about a page that is gone
            self._terminated = True
            raise EnvironmentFailure(f"{what}: {timeouts.broken}")
        async with self.episode.backend.call(what):
            try:
                async with timeouts.limited():
                    yield
            except TimeoutError as error:
                self._terminated = True
                raise EnvironmentFailure(f"{what}: {error}") from error
            except Error as error:
                self._terminated = True
                gone = self.episode.backend.browser.is_gone
                why = "the browser is gone: launch it again" if gone else timeouts.broken or first_line(error)
                raise EnvironmentFailure(f"{what}: {why}") from error
