"""Acting on an environment's present page, and observing the outcome.

Side effects of an earlier action: requests that it caused, and that left after its step had ended.

Evaluating an episode on its pages, which cannot keep the evaluator waiting without end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from exact.action import Action
from exact.environments.base import SideEffect
from exact.environments.browser.act.act import act, navigation_error
from exact.environments.browser.act.action_context import ActionContext, PartialAction, Vanished
from exact.environments.browser.act.aiming import is_vanished
from exact.environments.browser.network.message import StoredCookie
from exact.environments.browser.observe.refind import SeenPage
from exact.environments.browser.observer import Observer
from exact.environments.browser.page.cdp import TOO_LARGE, PageTooLarge, script, script_call
from exact.environments.browser.page.clipboard import Clipboard
from exact.environments.browser.page.ids import NodeLocation
from exact.environments.browser.page.settle import heard
from exact.environments.browser.page.tab import Tab
from exact.environments.browser.secrets import SecretMasking
from exact.environments.browser.tabs import Tabs
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.origins import origin, origins, target_refusal
from exact.slowness import REST_CLOCK

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_REPLACED = 3
"""Settling times for which an observation is tried again on a page that navigates meanwhile."""

_MOST_LOOKS = 4
"""Times that a page is observed for one action because its element may have changed."""
_WRITES = ("drag", "fill", "select", "upload")
"""Actions that write, besides a click that sends a form."""

_PAGELESS = (204, 205)
"""HTTP statuses of answers after which the browser keeps its page."""


class Observed(NamedTuple):
    """An observation, and how it came about."""

    observation: Observation
    unsettled: str
    """Reason why the pages did not become quiet before it; empty if they did."""
    terminated: bool
    """Whether the episode is over."""


class Interaction:
    """Carries out actions in the tabs of one environment and observes them."""

    def __init__(self, tabs: Tabs, observer: Observer, secrets: SecretMasking) -> None:
        self.tabs, self.observer, self.secrets = tabs, observer, secrets
        self.seen: Observation | None = None
        """The last observation; None before the first."""
        self._files: dict[str, Path] = {}
        self._clipboard: Clipboard | None = None
        self._tab: Tab | None = None
        self._saw_dialog = False
        """The tab that was observed last, and whether that was its dialog."""
        self._restless = set[NodeLocation]()
        """Nodes of elements that an action was refused on because of a change."""
        self._addresses: Sequence[str] = ()
        self._cookies: Sequence[StoredCookie] = ()
        """Addresses in the documents of the present tab, and cookies of the context, before a secret is typed."""

    def begin(self, files: dict[str, Path], clipboard: Clipboard | None) -> None:
        """Begin an episode. `files`: those that an action may upload, by name. `clipboard`: None if the browser is not shared."""
        self._files, self._clipboard, self._restless = files, clipboard, set()

    def leave(self) -> None:
        """Forget the tabs, whose browser context is gone, and release the clipboard."""
        self.tabs.clear()
        if self._clipboard:
            self._clipboard.close()

    async def act(self, action: Action) -> None:
        """Carry out one action, up to the next dialog.

        If the action closes the tab in which it acts, the rest of it is dropped. Raises ActionError if it does not fit the page, and
        PartialAction if the page was replaced meanwhile.
        """
        from playwright.async_api import Error

        for tab in self.tabs.window.tabs:
            tab.traffic.mark()
        self.observer.begin_step(action, self.seen.fingerprint if self.seen else "")
        dialogs = self.tabs.dialogs
        if any(self.secrets.holds(str(each)) for each in action.args):  # a page behind a dialog does not answer
            self._addresses = () if dialogs.is_asked else await self.tabs.present.addresses()
            self._cookies = await cookies_of(self.tabs.present.page.context)
        if dialogs.is_asked:
            await dialogs.act(action, self._fill_answer, self.secrets.mask)
            return
        tab = self.tabs.present
        try:
            await dialogs.race(self._act_on_seen(tab, action), keep_running=True)
        except Error as error:
            if tab.is_navigation_error(error):
                raise PartialAction(f"the page was replaced by another one during {action.key}: look at what is there now") from error
            if not await self.tabs.window.recovers_from(tab, error):
                raise

    async def _act_on_seen(self, tab: Tab, action: Action) -> None:
        """Carry out an action on the elements that were observed. If the page has changed since, they are found again.

        Raises Vanished, before anything is pressed, if not exactly one element still is the one that was observed.
        """
        checks, was = self.observer.checks(action.elements), None
        for looks in range(1, _MOST_LOOKS + 1):
            try:
                return await act(self._context(tab, checks), action)
            except Vanished as vanished:
                was = was or self.observer.page
                if looks == _MOST_LOOKS or any(not _is_on(tab, was.location(each)) for each in action.elements):
                    raise
                words = await self._find_again(tab, action, was, vanished)
            checks = {where: {"words": said} if looks < _MOST_LOOKS - 1 else {} for where, said in words.items()}

    async def _find_again(self, tab: Tab, action: Action, was: SeenPage, vanished: Vanished) -> dict[NodeLocation, str]:
        """Give the ids of an action to the elements that they still mean. Return those elements' nodes, with their words as of said.js.

        Raises Vanished if an id means none of them, or if the page changes all the time.
        """
        from playwright.async_api import Error

        strict = action.name in _WRITES or bool(self.seen and not set(self.seen.senders).isdisjoint(action.elements))
        known = [was.location(id) for id in action.elements]
        for _ in range(_MOST_LOOKS):
            try:
                words = [await self._words(tab, each) for each in known if each]
                now = await self.observer.look(self.tabs.config)
            except PageTooLarge:
                tab.mark_unreadable()
                raise vanished from None
            except Error as error:
                if not (is_vanished(error) or tab.is_navigation_error(error)):
                    raise
                raise vanished from error
            try:
                found = [now.find(was, id, strict=strict, restless=was.location(id) in self._restless) for id in action.elements]
            except ActionError as error:
                self._restless |= {where for id in action.elements if (where := was.location(id))}
                raise Vanished(str(error)) from None
            if [where for _, where in found] == known:
                if names := {now: id for (now, _), id in zip(found, action.elements, strict=True) if now != id}:
                    self.observer.ids.rename(names)
                return {where: said for (_, where), said in zip(found, words, strict=True)}
            known = [where for _, where in found]
        raise vanished

    async def _words(self, tab: Tab, where: NodeLocation) -> str:
        """Return the words of a node, as of said.js; empty if it is gone."""
        from playwright.async_api import Error

        try:
            return str(await tab.call(where.backend, where.frame, f"function() {{ {script('act/said')} return said(this); }}"))
        except Error as error:
            if not is_vanished(error):
                raise
            return ""

    async def has_changed(self) -> bool:
        """Return whether the state has changed by itself since it was observed, but for parts that change again and again."""
        tabs, asked = self.tabs, self.tabs.dialogs.is_asked
        if not tabs.window.tabs:
            return False
        if asked or self._saw_dialog:
            return asked != self._saw_dialog
        return tabs.present is not self._tab or await tabs.present.has_changed_since(self.observer.marks)

    def still(self, was: SeenPage, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of elements of an earlier observation that mean the same elements in the last one."""
        now, found = self.observer.page, list[str]()
        for id in ids:
            with suppress(ActionError):
                if was.location(id) and now.find(was, id, strict=True)[0] == id:
                    found.append(id)
        return tuple(found)

    def failed_navigation(self, *, wrote: bool) -> PartialAction | None:
        """Return the reason if an action led to a page that did not come, or came empty; None if not.

        `wrote`: whether the action wrote. Raises EnvironmentFailure if it did not, and a server of the task cannot be reached.
        """
        gate = self.tabs.gate
        for failed in (*(tab.traffic.failed for tab in self.tabs.window.tabs), gate.closed_popup):
            if failed and failed.url:
                url, error, status = failed
                why = f"status {status} without a page" if status in _PAGELESS else target_refusal(url, gate.rules.allowed)
                if error == "ABORTED" and not why:  # a download, or the page has gone elsewhere
                    continue
                is_own = origin(url) in gate.rules.own
                found = navigation_error(self.secrets.mask(url), error if error != "ABORTED" else why, is_own=is_own)
                if isinstance(found, EnvironmentFailure) and not wrote:
                    raise found
                return PartialAction(str(found))
        status, seen = self.tabs.present.traffic.status, self.seen
        return (
            PartialAction(f"{seen.url} is empty: status {status}")
            if status >= 400 and seen and not seen.elements and not seen.text
            else None
        )

    async def observe(self, *, run: bool = True, expected: str = "") -> Observed:
        """Settle and observe the present page, or the dialog that is open.

        `run`: whether a paused clock runs for its step. `expected`: a fingerprint; a page that has it already does not have to settle.
        """
        dialogs = self.tabs.dialogs
        found = None if dialogs.is_asked else await dialogs.race(self._observe_page(run, expected))
        observed = found or Observed(self.observer.observe_dialog(dialogs, self.tabs.downloads), unsettled="", terminated=False)
        self.seen, self._tab, self._saw_dialog = observed.observation, self.tabs.present, found is None
        self.tabs.gate.note_read(self.tabs.present.main_frame, f"{self.seen.url}\n{self.seen.text}")
        return observed

    async def _observe_page(self, run: bool, expected: str) -> Observed:
        from playwright.async_api import Error

        tabs, unsettled, patience = self.tabs, "", self.tabs.patience()
        last = REST_CLOCK.time() + _REPLACED * tabs.config.settle_seconds + tabs.config.answer_seconds
        while True:
            if not expected:
                unsettled = await tabs.settle(patience, run=run)
            tab = tabs.present
            try:
                if expected:
                    await tab.note_marks()
                observation, over = await self.observer.observe_page(tabs.config, tabs.downloads, tabs.setup.terminated)
            except PageTooLarge:
                tab.mark_unreadable()
                continue
            except Error as error:
                if TOO_LARGE in str(error) and not tab.is_unreadable:
                    tab.mark_unreadable()
                    continue
                if not (tab.is_navigation_error(error) or await tabs.window.recovers_from(tab, error)):
                    raise
                if REST_CLOCK.time() > last:
                    why = f"{tab.url} is replaced by another page all the time, so it cannot be observed"
                    raise EnvironmentFailure(why) from error
            else:
                if not expected or observation.fingerprint == expected:
                    return Observed(observation, unsettled, over)
            expected = ""

    def _fill_answer(self, text: str) -> str:
        """Return the answer to a dialog with secrets. Any document that its tab has had may have opened the dialog."""
        return self._fill(text, self.tabs.present.origins)

    def _fill(self, text: str, where: Iterable[str]) -> str:
        """Return a text with secrets, which documents of the origins `where` are about to know. Raises SecretRefused."""
        at, tabs = tuple(where), self.tabs
        filled = self.secrets.fill(text, at)
        for name, bound in self.secrets.named(text):
            partners = origins(*tabs.config.login.partner_origins)
            tabs.gate.begin_typing(name, at, (*bound, *partners), tabs.present.main_frame, self._addresses, self._cookies)
        return filled

    def _note_field(self, text: str, backend: int) -> None:
        """Note whether a field of the present tab holds a secret from now on, since a text is typed there."""
        places, tab = self.tabs.gate.facts.flow.places, self.tabs.present
        place = tab.index, tab.traffic.documents, backend
        places.pop(place, None)
        if self.secrets.named(text):
            places[place] = ""

    def _context(self, tab: Tab, checks: dict[NodeLocation, dict[str, Any]]) -> ActionContext:
        tabs = self.tabs
        return ActionContext(
            tab=tab, ids=self.observer.ids, width=tabs.config.width, height=tabs.config.height, others=tabs.window.others,
            focus=tabs.window.focus, refusal=lambda url: target_refusal(url, tabs.gate.rules.allowed), previous_url=tabs.back,
            fill=self._fill, holds_secret=self.secrets.holds, note_field=self._note_field, files=self._files, clipboard=self._clipboard,
            checks=checks,
            is_own=lambda url: origin(url) in tabs.gate.rules.own,
        )  # fmt: skip


def _is_on(tab: Tab, where: NodeLocation | None) -> bool:
    """Return whether a node is on the present page of a tab."""
    return where is not None and (where.tab, where.document) == (tab.index, tab.traffic.documents)


async def cookies_of(context: BrowserContext, url: str = "") -> tuple[StoredCookie, ...]:
    """Return the cookies of a browser context, or those that a request to an address carries. May raise Playwright's Error."""
    found = await context.cookies(url or None)
    return tuple(StoredCookie(each.get("domain", ""), each.get("path", ""), each.get("name", ""), each.get("value", "")) for each in found)


def marked_late(effects: Sequence[SideEffect]) -> tuple[SideEffect, ...]:
    """Return side effects as those of an earlier action."""
    return tuple(msgspec.structs.replace(effect, late=True) for effect in effects)


async def mark_late_of_timers(effects: Sequence[SideEffect], tabs: Sequence[Tab], began: float) -> tuple[SideEffect, ...]:
    """Return the side effects since a step began. Those that an earlier timer sent are marked late.

    `began`: when the step began, in seconds since 1970. A document that was left meanwhile cannot be asked. Its requests count as those of
    the step.
    """
    from playwright.async_api import Error

    if not any(effect.method for effect in effects):
        return tuple(effects)
    late = set[str]()
    for tab in tabs:
        try:
            sent = await tab.evaluate(script_call("page/sent_by_timers"))
        except Error:  # the page is gone, or a dialog holds it
            continue
        late |= {str(url) for url, since in sent if since < began * 1000}
    return tuple(msgspec.structs.replace(effect, late=True) if effect.method and effect.url in late else effect for effect in effects)


T = TypeVar("T")
EVALUATION_SECONDS = 600.0
"""Seconds that an evaluator may take: it may open pages, and ask models with retries."""
_EVERY = 0.25
"""Seconds between two looks at the pages."""
_END = 5.0
"""Seconds that an evaluator has to end once it is cancelled."""


async def evaluate_on(tabs: Tabs, evaluate: Callable[[], Awaitable[T]]) -> T:
    """Return the result of an evaluator that works on the tabs of an environment, or on others that it opens beside them.

    It begins when Playwright knows the present documents, whose addresses it may compare. Dialogs are answered meanwhile: a page that asks
    before it is left is left, and nothing is confirmed on behalf of the agent. Raises EnvironmentFailure if a page does not answer, or if
    the evaluator does not end.
    """

    async def begun() -> T:
        await asyncio.gather(*(heard(tab) for tab in tabs.window.tabs))
        return await evaluate()

    loop = asyncio.get_running_loop()
    work, end, watches = asyncio.ensure_future(begun()), loop.time() + EVALUATION_SECONDS, dict[Tab, _Watch]()
    try:
        with tabs.dialogs.leaving():
            await tabs.dialogs.answer_open()
            while not (await asyncio.wait({work}, timeout=_EVERY))[0]:
                if loop.time() > end:
                    raise EnvironmentFailure(f"evaluate: no score came within {EVALUATION_SECONDS:g} s")
                for tab in tabs.window.tabs:
                    watches.setdefault(tab, _Watch(tab)).check(tabs.timeouts.seconds)
            return work.result()
    finally:
        work.cancel()
        for watch in watches.values():
            watch.end()
        await asyncio.wait({work}, timeout=_END)


class _Watch:
    """The watch over one tab while an evaluator works."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._asked = asyncio.get_running_loop().time()
        self._look = asyncio.ensure_future(self._ask())

    def check(self, limit: float) -> None:
        """Ask the tab again if it has answered. Raise EnvironmentFailure if it has not answered for `limit` seconds."""
        now = asyncio.get_running_loop().time()
        if self._look.done():
            self._asked = now
            self._look = asyncio.ensure_future(self._ask())
        elif now - self._asked > limit:
            raise EnvironmentFailure(f"evaluate: the page {self._tab.url} did not answer for {limit:g} s")

    def end(self) -> None:
        """Ask no more."""
        self._look.cancel()

    async def _ask(self) -> None:
        from playwright.async_api import Error

        try:
            await self._tab.evaluate("0")
        except (Error, EnvironmentFailure) as error:
            self._tab.is_navigation_error(error)  # or the evaluator has closed the page
