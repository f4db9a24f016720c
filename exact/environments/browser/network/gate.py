"""The gate of one browser context: everything that leaves passes it, and is recorded if it changes something."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Protocol
from urllib.parse import unquote

import msgspec

from exact.environments.base import SECRET, SideEffect
from exact.environments.browser.network import flow
from exact.environments.browser.network.confirmation import Confirmations
from exact.environments.browser.network.effects import EffectLog
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.network.harmless import MOST_KINDS
from exact.environments.browser.network.message import SOCKET, SOCKET_REPORTS, BrowserMessage, StoredCookie
from exact.environments.browser.network.pace import Allowance, Pace
from exact.environments.browser.network.rules import (
    Allow,
    Decision,
    EpisodeFacts,
    PolicyRules,
    Refuse,
    decide,
    kind_of,
    nature_of,
)
from exact.environments.browser.network.scrub import unchanged
from exact.environments.browser.page.traffic import FailedNavigation, Traffic
from exact.origins import origin

_MOST_WAYS = 3
"""Requests for an address that the agent itself goes to: a page may ask for it again in other spellings, which tell it something."""
_MOST_TRIED, _TRIED_A_SECOND = 1000, 20.0
"""Refused requests that a page may send at once, and further ones in each second, before it is ended."""
_MOST_BEACONS = 2000
"""Judged beacons that are remembered until their pages report them."""
_COMMIT_SECONDS = 1.0
"""Seconds that a request of a tab waits until the browser reports which document the tab shows."""


async def no_cookies(url: str) -> Iterable[StoredCookie]:
    """Return no cookies."""
    return ()


class Frames(Protocol):
    """The frames of one browser context."""

    def has(self, frame: str) -> bool:
        """Return whether the frame with an id is known to belong to the context."""
        ...

    def tab_of(self, frame: str) -> str:
        """Return the main frame of a frame's tab; empty if it is unknown."""
        ...

    async def ask(self) -> None:
        """Ask the browser for all frames. A blocked page answers late. Raises Playwright's Error if a page is gone."""
        ...

    def end(self, why: str) -> None:
        """End the renderers of all pages, whose requests hold up other environments."""
        ...


class Gate:
    """The messages that one browser context may send, and the side effects since they were last taken."""

    def __init__(
        self,
        rules: PolicyRules,
        frames: Frames,
        *,
        flow: SecretFlow | None = None,
        confirmations: Confirmations | None = None,
        pace: Pace | None = None,
        mask: Callable[[str], str] = unchanged,
        cookies: Callable[[str], Awaitable[Iterable[StoredCookie]]] = no_cookies,
        readmit: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a gate.

        `frames`: the frames of the context. `flow`: where secrets got to before, from a snapshot. `confirmations`: the writes that wait
        for a person's yes. `pace`: the rate of requests to the site. `mask` masks secrets in records. `cookies` returns those that a
        request to an address carries. `readmit` is called when fewer WebSockets may be open than before.
        """
        self.rules, self.frames, self.mask, self._cookies, self._readmit = rules, frames, mask, cookies, readmit
        self.facts = EpisodeFacts(flow=flow or SecretFlow(), tab_of=frames.tab_of)
        self.log = EffectLog(rules.harmless.is_learned)
        self.confirmations, self._pace = confirmations or Confirmations(), pace or Pace()
        self.withheld = ""
        """The reason of the last refusal because of a typed secret; empty if there was none."""
        self.sent_presumed = False
        """Whether a request that writes if the action does was sent or stopped since the last action began."""
        self.blank_pages: set[str] = set()
        """Addresses that are answered with an empty page, without a request to the server."""
        self.unauthorized = ""
        """The address of a page that the server answered with status 401; the reader empties it."""
        self.partial: dict[str, str] = {}
        """Addresses of documents of which only a part has come, by frame."""
        self.closed_popup: FailedNavigation | None = None
        """The last popup since the last action began that was closed because its page was refused or did not come."""
        self.is_judged = False
        """Whether an evaluator works, to which a part of a document is not shown."""
        self.too_large: dict[str, str] = {}
        """Reasons why documents that are too large were refused, by frame. The reader empties it."""
        self._caused: set[str] = set()
        """Kinds of requests that were blocked while an action was under way: a page may try them again when nobody acts."""
        self._idle: Counter[str] = Counter()
        """Kinds of requests since the last action ended."""
        self._arriving: set[str] = set()
        """Frames whose next document has come and is not shown yet."""
        self._committed = asyncio.Event()
        self._chosen = ""
        """The last address to which the agent itself went."""
        self._ways = 0
        """Number of requests that may still count as its way there."""
        self._tried, self.is_over = Allowance(_MOST_TRIED, _TRIED_A_SECOND), False
        """The refused requests that pages may still send, and whether they are ended because they sent too many."""
        self._beacons, self._waiting = OrderedDict[str, None](), list[Traffic]()
        """The last beacons that were judged, by the ids under which their pages report them, and the pages that wait for more."""
        self._popups: set[str] = set()
        self._popups_done = asyncio.Event()
        self._popups_done.set()

    def expect_popup(self, target: str, opener: str = "") -> None:
        """Note a popup, by its CDP target id, that is not watched yet. `opener`: the tab that can reach it, if any."""
        self._popups.add(target)
        self._popups_done.clear()
        if opener:
            self.facts.flow.openers[target] = opener

    def forget_popup(self, target: str) -> bool:
        """Forget a popup that is watched now, or gone. Return False if it was not expected."""
        known = target in self._popups
        self._popups.discard(target)
        if not self._popups:
            self._popups_done.set()
        return known

    async def no_popups(self) -> None:
        """Wait until every popup is watched or gone."""
        await self._popups_done.wait()

    def beacon_judged(self, id: str) -> None:
        """Note that the side effect of a beacon is recorded, by the id under which its page reports it."""
        self._beacons[id] = None
        if len(self._beacons) > _MOST_BEACONS:
            self._beacons.popitem(last=False)
        for page in self._waiting:
            page.look_again()

    async def beacons_judged(self, page: Traffic) -> None:
        """Wait until every beacon that a page has in flight is judged: a step that ended before would not name it."""
        self._waiting.append(page)
        try:
            await page.judged(self._beacons.__contains__)
        finally:
            self._waiting.remove(page)

    @property
    def socket_origins(self) -> tuple[str, ...]:
        """Origins to which WebSockets may be opened: none if each write needs a yes, which messages cannot wait for.

        A typed secret closes those to other origins, whoever opened them, since their messages are not held up one by one.
        """
        return () if self.confirmations.ask else tuple(each for each in self.rules.writable if not self.facts.flow.foreign(each))

    def begin_action(self, *, presumption: str = "", resumed: bool = False) -> None:
        """Note that an action begins.

        `presumption`: reason why it is presumed to write, so that no GET that it causes is sent unless writes are. `resumed`: the episode
        resumes from a snapshot, so an action may have been taken before.
        """
        facts, self.closed_popup = self.facts, None
        facts.acted, facts.acting, facts.presumption, self.sent_presumed = True, not resumed, presumption, False
        self.confirmations.begin_action()
        facts.documents.clear()
        facts.left.clear()
        self._idle.clear()

    def begin_login_action(self, url: str) -> None:
        """Note that a log-in script acts on the page at `url`: requests that this causes to the page's origin are sent."""
        self.facts.documents.clear()
        self.facts.login_origins = (*self.facts.login_origins, origin(url))

    def end_login(self) -> None:
        """Note that the log-in script has ended."""
        self.facts.login_origins = ()

    def begin_typing(
        self, name: str, at: Iterable[str], trusted: Iterable[str], tab: str, addresses: Iterable[str], cookies: Iterable[StoredCookie]
    ) -> None:
        """Note that a secret is about to be typed.

        `name`: its placeholder. `at`: origins of the documents that get it. `trusted`: origins that pages may send it to. `tab`: the main
        frame of the tab. `addresses`: those that stand in its documents. `cookies`: those of the context.
        """
        self._spread()
        if tab not in self.facts.knowing:
            self.facts.flow.note_addresses(addresses)
        self.facts.flow.note_cookies(cookies)
        at = tuple(at)
        self.facts.flow.shown.setdefault(tab, at[0] if at else "")
        self.facts.flow.note_typed(name, at, trusted)
        self._readmit()

    def goes_to(self, url: str) -> None:
        """Note that the agent itself goes to an address. It is the agent's choice unless a page that may know a secret showed it."""
        self._chosen, self._ways = _plain(url), _MOST_WAYS

    def note_read(self, frame: str, text: str) -> None:
        """Note a text that the agent read in a tab, by its main frame."""
        self._spread()
        if self.facts.knows(frame):
            self.facts.flow.note_told(text)

    def document_came(self, frame: str, url: str, *, is_shown: bool = True) -> None:
        """Note the address of a frame's new document, whose answer has begun. `is_shown`: whether the frame will show it."""
        self.facts.documents[frame] = url.partition("#")[0]
        if is_shown:
            self._arriving.add(frame)

    def document_shown(self, frame: str, url: str, *, is_main: bool) -> None:
        """Note the document that a frame shows from now on. `is_main`: whether it is the main frame, so that all frames within are gone."""
        shown = self.facts.flow.shown
        if is_main:
            self._spread()  # its documents up to now may have told each other
            for each in [each for each in shown if self.frames.tab_of(each) == frame]:
                del shown[each]
        if found := origin(url):
            shown[frame] = found
        self._arriving.discard(frame)
        self._committed.set()

    def _spread(self) -> None:
        if self.facts.flow.typed:
            self.facts.knowing = self.facts.flow.spread(self.frames.tab_of)

    def holds(self, frame: str) -> bool:
        """Return whether the navigation of a frame waits for a person's yes, or for the rest of a document that an evaluator opened."""
        return self.confirmations.waiting or (self.is_judged and frame in self.partial)

    async def judge(self, message: BrowserMessage) -> Decision:
        """Decide on a request, once it is certain which document sends it.

        One that may be sent waits for its turn, and for a person's yes if its write needs one.
        """
        until = asyncio.get_running_loop().time() + _COMMIT_SECONDS
        while self.facts.flow.typed and message.frame in self._arriving and not message.is_document:
            self._committed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._committed.wait()
            except TimeoutError:
                self._arriving.discard(message.frame)
        if self.facts.flow.foreign(origin(message.url)):
            message = message._replace(cookies=await self._cookies(message.url))
        decision = self.decide(message)
        if isinstance(decision, Refuse) and decision.is_secret and await self._trusts(message):
            decision = self.decide(message)
        return await self.admit(message, decision)

    async def _trusts(self, message: BrowserMessage) -> bool:
        """Return whether a person lets an origin get what may hold a typed secret. Each origin is asked for once a step."""
        target = f"{origin(message.url)}/"
        if self.confirmations.ask is None or await self.confirmations.refusal(SECRET, target, "", self.mask, by_itself=False):
            return False
        self.facts.flow.trust(origin(message.url))
        return True

    def decide(self, message: BrowserMessage, *, with_document: bool = False) -> Decision:
        """Decide on a message, and learn from it. `with_document`: it came with a new document, in which nobody acted."""
        rules, facts = self.rules, self.facts
        if message.is_document:
            facts.left.add(message.frame)
        elif not message.is_report and origin(message.url) in rules.allowed:
            self._learn(message, with_document=with_document)
        facts.has_written = self.log.has_write
        self._spread()
        url = message.url + message.fragment
        message = message._replace(
            is_chosen=self._ways > 0 and message.is_document and _plain(url) == self._chosen and not facts.flow.is_told(url)
        )
        decision = decide(rules, facts, message, with_document=with_document)
        if isinstance(decision, Refuse) and facts.flow.typed:  # it may hold a secret in any form
            target = origin(message.url)
            shown = f"{target}/" if facts.flow.foreign(target) else decision.effect.url.partition("?")[0]
            effect = msgspec.structs.replace(decision.effect, url=shown, fields=())
            decision = replace(decision, effect=effect)
        if isinstance(decision, Refuse) and decision.is_secret:
            self.withheld = decision.refused
        self.sent_presumed = self.sent_presumed or decision.is_presumed
        if decision.is_own_read and len(facts.own_reads) < MOST_KINDS:
            facts.own_reads.add(kind_of(message))
        if isinstance(decision, Allow):
            self._note_sent(message)
            self._ways -= message.is_chosen
        return decision

    def _note_sent(self, message: BrowserMessage) -> None:
        """Remember a message that is sent, for the flow of secrets if there are any."""
        if not self.rules.guarded:
            return
        found, url, source = self.facts.flow, message.url + message.fragment, origin(message.source)
        if not self.facts.knows(message.frame):
            found.note_request(url, message.headers, is_script=message.kind == "Script")
        elif found.foreign(origin(url)) and not (message.is_chosen or self.rules.is_inside(url)):
            flow.count(found, message)
        if message.is_document and _plain(url) != self._chosen:
            found.note_way(url, source or found.shown.get(message.frame, ""), self.rules.home, redirects=bool(source))

    async def admit(self, message: BrowserMessage, decision: Decision) -> Decision:
        """Decide on a message that may be sent: it waits for its turn, and for a person's yes if its write needs one."""
        if isinstance(decision, Refuse) or not (found := origin(message.url)) or self.rules.is_inside(message.url):
            return decision if isinstance(decision, Refuse) else await self.confirm(message, decision)
        if self.rules.counts_pages and message.is_document and not self._pace.opens_page(found):
            why = f"this tree has opened {self._pace.pages_allowed} pages at {found}: see browser.pages"
            return Refuse(why, SideEffect(kind="blocked", method=message.method, url=message.url, fields=message.fields, detail=why))
        if self._pace.is_limited:
            with self.confirmations.held():
                await self._pace.turn(found)
        return await self.confirm(message, decision)

    async def confirm(self, message: BrowserMessage, decision: Decision) -> Decision:
        """Decide on a message that may be sent, after asking a person if its write needs a yes."""
        effect = decision.effect
        if effect is None or isinstance(decision, Refuse) or effect.write is False:
            return decision
        by_itself = self.facts.is_by_itself(message, with_document=False) or self.rules.harmless.is_learned(kind_of(message))
        why = await self.confirmations.refusal(message.method, message.url, message.body, self.mask, by_itself=by_itself)
        return Refuse(why, msgspec.structs.replace(effect, kind="blocked", reach="", detail=why, write=False)) if why else decision

    def record_message(self, message: BrowserMessage) -> None:
        """Record a message on a WebSocket, which has been sent. One without an action, or with a new document, is the page's own."""
        decision = self.decide(message, with_document=bool(self.facts.documents))
        if decision.effect and decision.effect.kind == "request":
            self.log.record(decision.effect, message)

    def connection_refused(self, host: str, port: int, why: str, *, is_socket: bool = False) -> None:
        """Record a connection that may not be made, once a step. `is_socket`: a WebSocket, which counts as a write if it is allowed."""
        scheme = ("wss" if port == 443 else "ws") if is_socket else ("https" if port == 443 else "http")
        url = f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"
        self.log.connection_failed(host, port, "BlockedByClient")
        if is_socket:
            self.record_refused_socket(url)
        else:
            self.log.record_once(url, SideEffect(kind="blocked", method="CONNECT", url=url, detail=why, write=False))

    def connection_failed(self, host: str, port: int, error: OSError) -> None:
        """Note the reason why a server could not be connected to."""
        self.log.connection_failed(host, port, error)

    def record_refused(self, effect: SideEffect, message: BrowserMessage) -> bool:
        """Record a request that is refused. Return False if so many were that this one is not to be answered."""
        self._note_tried()
        return self.log.record_refused(effect, message)

    def _note_tried(self) -> None:
        """Count a refused request. A page that sends them without end is ended: each one takes time of the browser."""
        if not self._tried.take():
            self.end_pages(f"it sent more than {_MOST_TRIED:,} requests that are refused")

    def end_pages(self, why: str) -> None:
        """End the pages, once: they take the time of other environments. `why` says by what."""
        if not self.is_over:
            self.is_over = True
            self.frames.end(why)

    def record_refused_socket(self, url: str) -> None:
        """Record a WebSocket that was refused before it opened, so that its messages are not sent. Once a step: pages try again."""
        self._note_tried()
        message = BrowserMessage(SOCKET, url)
        decision = self.decide(message, with_document=bool(self.facts.documents))
        if decision.effect:
            shown = f"{origin(url)}/".replace("http", "ws", 1) if self.facts.flow.typed else url
            effect = msgspec.structs.replace(decision.effect, kind="blocked", reach="", url=shown)
            self.log.record_once(url, effect, message)

    def record_too_large(self, frame: str, method: str, url: str) -> None:
        """Record a document that was refused because it is too large."""
        why = f"{url} was not opened: it has more than the {self.rules.body_bytes:,} bytes that browser.document_bytes allows"
        self.too_large[frame] = why
        self.log.record(SideEffect(kind="blocked", method=method, url=url, detail=why, write=False))

    def take_effects(self) -> tuple[SideEffect, ...]:
        """Return the side effects since the last call, and note that an action has ended."""
        self.facts.acting = False
        self._idle.clear()
        return self.log.take()

    def _learn(self, message: BrowserMessage, *, with_document: bool) -> None:
        """Learn the kind of a write that no action caused."""
        rules, facts = self.rules, self.facts
        if not rules.learns or nature_of(rules, facts, message._replace(is_beacon=False), with_document=with_document) != "write":
            return
        kind, by_itself = kind_of(message), facts.is_by_itself(message, with_document=with_document)
        if not facts.acting:
            self._idle[kind] += 1
        elif not by_itself and origin(message.url) not in rules.writable:
            self._caused.add(kind)
        if by_itself or (self._idle[kind] > 1 and kind not in self._caused):
            rules.harmless.learn(kind)

    def content_security_policy(self, url: str) -> str:
        """Return the content security policy of a document, or worker, for connections that CDP's Fetch does not see.

        They are WebSockets and WebTransport. A document of an origin to which secrets belong opens them to such origins alone from its
        beginning: over HTTP/2 a WebSocket uses a connection that is open already, so that no other guard sees it.
        """
        guarded, here = self.rules.guarded, origin(url)
        own = guarded if here in guarded else {here, *guarded}
        sockets = [each.replace("http", "ws", 1) for each in self.socket_origins if not guarded or each in own]
        return f"{' '.join(('connect-src http: https: data: blob: filesystem:', *sockets))}; report-uri {SOCKET_REPORTS}"


def _plain(url: str) -> str:
    """Return an address in a form in which an agent's writing of it equals the browser's."""
    return origin(url) + unquote(url.partition("://")[2].partition("/")[2]).rstrip("/")


def writable(allowed: Iterable[str], *, writes: bool, only: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the origins that get writes: none unless `writes`; those in `only`, if that is given, whose writes can be undone."""
    chosen = tuple(allowed)
    return () if not writes else chosen if only is None else tuple(each for each in chosen if each in set(only))
