"""The request policy of a browser context: which requests are sent, and which side effects they had.

While a search explores, no write is sent to a site that keeps it: no request whose method writes, and no GET that is presumed to write, by
its address or because the action that caused it is presumed to (see presume/). Requests that a page sends by itself are told from those
that an action caused: they are requests before the first action of an episode, requests of a document that came with the step and that
nobody acted in, and requests that a page repeats while nobody acts. Their kind is learned (see harmless.py), and does not count as a write
of the agent from then on. A beacon of a page that is left does not count either.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from exact.environments.base import SAFE_METHODS, SideEffect
from exact.environments.browser.network.confirmation import Confirmations
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.harmless import MOST_KINDS, HarmlessRequests, request_kind
from exact.environments.browser.network.pace import Pace
from exact.environments.browser.network.scrub import unchanged
from exact.environments.browser.presume.address import writing_address
from exact.origins import host_name, origin, refusal, split_url

_PARTS = ("Script", "Stylesheet", "Font", "Media", "Manifest", "TextTrack")
"""Types of requests for the parts of a page, which no application treats as a command."""
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|bmp)$", re.I)
Reach = Literal["", "sandbox", "recording", "outside"]
"""Place in which a sent request was answered; see SideEffect."""


_FAILURES: tuple[tuple[type[OSError], str], ...] = (
    (socket.gaierror, "NameNotResolved"),
    (ConnectionRefusedError, "ConnectionRefused"),
    (TimeoutError, "TimedOut"),
)
"""Errors of connections, and their names in CDP's Network.ErrorReason."""


SOCKET_REPORTS = "https://exact.invalid/refused-socket"
"""Address to which the browser reports the WebSockets that it refuses. The reports are answered here and never sent."""


class PageRequest(NamedTuple):
    """A request of a page, before it is sent."""

    method: str
    url: str
    body: str = ""
    fields: tuple[str, ...] = ()
    """Names of the fields in the body."""
    frame: str = ""
    """CDP id of the frame."""
    referrer: str = ""
    """Address of the document that sent it; empty if the page does not report it."""
    is_document: bool = False
    """Whether it is a navigation."""
    is_beacon: bool = False
    """Whether its answer never reaches the page, as with `navigator.sendBeacon`."""
    is_report: bool = False
    """Whether the browser reports a violation of the page's content security policy, which neither the page nor the agent does."""
    kind: str = ""
    """CDP's type of the requested resource: Document, XHR, Image, ..."""
    overrides: tuple[str, ...] = ()
    """Methods that headers of the request ask for in place of the sent one."""
    headers: str = ""
    """Values of the headers, one a line."""


class RequestDecision(NamedTuple):
    """Decision on a request."""

    refused: str = ""
    """Reason why it is not sent. Empty if it is."""
    effect: SideEffect | None = None
    """Its side effect, if it writes or is refused."""
    pretends: bool = False
    """Whether a request that is not sent is answered as if it were: the site declares it harmless."""


class _Noted(NamedTuple):
    """A side effect, and the kind of its request if that may be learned."""

    effect: SideEffect
    kind: str = ""


class Frames(Protocol):
    """The frames of one browser context."""

    def has(self, frame: str) -> bool:
        """Return whether the frame with an id is known to belong to the context."""
        ...

    async def ask(self) -> None:
        """Ask the browser for all frames. A blocked page answers late. Raises Playwright's Error if a page is gone."""
        ...


class RequestPolicy:
    """The requests that one browser context may send, and the side effects since they were last taken."""

    def __init__(
        self,
        allowed: Iterable[str],
        *,
        writes: bool,
        frames: Frames,
        only: Iterable[str] | None = None,
        harmless: HarmlessRequests | None = None,
        learns: bool = False,
        presumes: bool = False,
    ) -> None:
        """Create a policy that sends reads to the `allowed` origins.

        `writes`: whether writes are sent too, to the origins in `only` if that is given: those whose writes can be undone. `frames`: the
        frames of the context. `harmless`: the requests that are not writes of the agent. `learns`: whether it learns more of them.
        `presumes`: whether a GET may be presumed to write.
        """
        self._harmless, self._learns, self.presumes = harmless or HarmlessRequests(), learns, presumes
        self._acted = self._acting = False
        """Whether the agent has acted in this episode, and whether an action is under way."""
        self._documents: dict[str, str] = {}
        """Addresses of the documents that came since the last action began, by frame."""
        self._presumption = ""
        """Reason why the action under way is presumed to write; empty if it is presumed to read."""
        self.sent_presumed = False
        """Whether a request that writes if the action does was sent or stopped since the last action began."""
        self._own_reads: set[str] = set()
        """Kinds of reads that pages sent by themselves."""
        self._left: set[str] = set()
        """Frames that requested another document since the last action began."""
        self._caused: set[str] = set()
        """Kinds of requests that were blocked while an action was under way: a page may try them again when nobody acts."""
        self._idle: Counter[str] = Counter()
        """Kinds of requests since the last action ended."""
        self.allowed, self.frames = tuple(allowed), frames
        self.writable = () if not writes else self.allowed if only is None else tuple(each for each in self.allowed if each in set(only))
        """Origins to which writes are sent."""
        self.task_origins: tuple[str, ...] = ()
        """The task's own origins, to which `headers` are sent."""
        self.headers: dict[str, str] = {}
        """Headers that are added to requests, by name."""
        self._login_origins: tuple[str, ...] = ()
        """Origins of the pages of a log-in script that is acting; empty if none is."""
        self.blank_pages: set[str] = set()
        """Addresses that are answered with an empty page, without a request to the server."""
        self.unauthorized = ""
        """The address of a page that the server answered with status 401; the reader empties it."""
        self.is_inside: Callable[[str], bool] = lambda url: False
        """Returns whether an address is answered in the sandbox, so that requests to it stay there."""
        self.document_seconds = 15.0
        """Seconds that a server has for the whole of a document. After that, the received part is shown."""
        self.partial: dict[str, str] = {}
        """Addresses of documents of which only a part has come, by frame."""
        self.is_judged = False
        """Whether an evaluator works, to which a part of a document is not shown."""
        self.document_bytes = 1 << 30
        """Maximum bytes of a PDF whose text is shown."""
        self.body_bytes = 1 << 24
        """Maximum bytes of a document, once decompressed."""
        self.too_large: dict[str, str] = {}
        """Reasons why documents that are too large were refused, by frame. The reader empties it."""
        self.pace, self.counts_pages = Pace(), False
        """Rate of requests to the site, and whether the pages of this context count in that."""
        self.confirmations = Confirmations()
        """The writes that wait for a person's yes."""
        self._effects: list[_Noted] = []
        self._pending: dict[str, _Noted] = {}
        """Writes without an answer yet, by request id."""
        self._refused: set[str] = set()
        """Connections that were refused since side effects were last taken."""
        self._failures: dict[str, str] = {}
        """Reasons why servers could not be connected to, as CDP names them, by `host:port`."""
        self.deny = DenyList()
        """Addresses that are refused even if they are allowed."""
        self.mask: Callable[[str], str] = unchanged
        """Masks secrets in records."""
        self.withheld: Callable[[str, str, bool], str] = lambda text, target, is_document: ""
        """Returns the reason if a secret keeps a text from an origin (see SecretMasking). Empty if it may be sent."""
        self._popups: set[str] = set()
        self._popups_done = asyncio.Event()
        self._popups_done.set()

    def expect_popup(self, target: str) -> None:
        """Note a popup, by its CDP target id, that is not watched yet."""
        self._popups.add(target)
        self._popups_done.clear()

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

    @property
    def is_read_only(self) -> bool:
        """Whether some allowed origin gets no writes."""
        return len(self.writable) < len(self.allowed)

    @property
    def socket_origins(self) -> tuple[str, ...]:
        """Origins to which WebSockets may be opened: none if each write needs a yes, which messages cannot wait for."""
        return () if self.confirmations.ask else self.writable

    def begin_action(self, *, presumption: str = "", resumed: bool = False) -> None:
        """Note that an action begins.

        `presumption`: reason why it is presumed to write, so that no GET that it causes is sent unless writes are. `resumed`: the episode
        resumes from a snapshot, so an action may have been taken before.
        """
        self._acted, self._acting = True, not resumed
        self._presumption, self.sent_presumed = presumption, False
        self.confirmations.begin_action()
        self._documents.clear()
        self._left.clear()
        self._idle.clear()

    def begin_login_action(self, url: str) -> None:
        """Note that a log-in script acts on the page at `url`: requests that this causes to the page's origin are sent."""
        self._documents.clear()
        self._login_origins = (*self._login_origins, origin(url))

    def end_login(self) -> None:
        """Note that the log-in script has ended."""
        self._login_origins = ()

    def document_came(self, frame: str, url: str) -> None:
        """Note the address of a frame's new document."""
        self._documents[frame] = url.partition("#")[0]

    def holds(self, frame: str) -> bool:
        """Return whether the navigation of a frame waits for a person's yes, or for the rest of a document that an evaluator opened."""
        return self.confirmations.waiting or (self.is_judged and frame in self.partial)

    async def admit(self, request: PageRequest, decision: RequestDecision) -> RequestDecision:
        """Decide on a request that may be sent: it waits for its turn, and for a person's yes if its write needs one."""
        if decision.refused or not (found := origin(request.url)) or self.is_inside(request.url):
            return decision if decision.refused else await self.confirm(request, decision)
        if self.counts_pages and request.is_document and not self.pace.opens_page(found):
            why = f"this tree has opened {self.pace.pages_allowed} pages at {found}: see browser.pages"
            return RequestDecision(why, _effect(request, "blocked", detail=why))
        if self.pace.is_limited:
            with self.confirmations.held():
                await self.pace.turn(found)
        return await self.confirm(request, decision)

    async def confirm(self, request: PageRequest, decision: RequestDecision) -> RequestDecision:
        """Decide on a request that may be sent, after asking a person if its write needs a yes."""
        effect = decision.effect
        if effect is None or decision.refused or effect.write is False:
            return decision
        by_itself = self._is_by_itself(request, with_document=False) or self._harmless.is_learned(self._kind(request))
        why = await self.confirmations.refusal(request.method, request.url, request.body, self.mask, by_itself=by_itself)
        if not why:
            return decision
        refused = msgspec.structs.replace(effect, kind="blocked", reach="", detail=why, write=False)
        return RequestDecision(why, refused)

    def record(self, effect: SideEffect) -> None:
        """Record a side effect of the context."""
        self._effects.append(_Noted(effect))

    def record_blocked(self, request: PageRequest, effect: SideEffect) -> None:
        """Record a request that is not sent."""
        self._effects.append(_Noted(effect, self._kind(request)))

    def record_write(self, id: str, request: PageRequest, effect: SideEffect) -> None:
        """Record a write that is being sent, by its request id, whether or not it will be answered."""
        self._pending[id] = _Noted(effect, self._kind(request))

    def record_message(self, message: PageRequest) -> None:
        """Record a message on a WebSocket, which has been sent. One without an action, or with a new document, is the page's own."""
        decision = self.decide(message, with_document=bool(self._documents))
        if decision.effect and decision.effect.kind == "request":
            self._effects.append(_Noted(decision.effect, self._kind(message)))

    def connection_refused(self, host: str, port: int, why: str, *, is_socket: bool = False) -> None:
        """Record a connection that may not be made, once a step. `is_socket`: a WebSocket, which counts as a write if it is allowed."""
        scheme = ("wss" if port == 443 else "ws") if is_socket else ("https" if port == 443 else "http")
        url = f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"
        self._failures[f"{host_name(host)}:{port}"] = "BlockedByClient"
        if is_socket:
            self.record_refused_socket(url)
        elif url not in self._refused:
            self._refused.add(url)
            self.record(SideEffect(kind="blocked", method="CONNECT", url=url, detail=why, write=False))

    def record_refused_socket(self, url: str) -> None:
        """Record a WebSocket that was refused before it opened, so that its messages are not sent. Once a step: pages try again."""
        message = PageRequest("WEBSOCKET", url)
        decision = self.decide(message, with_document=bool(self._documents))
        if decision.effect and url not in self._refused:
            self._refused.add(url)
            self.record_blocked(message, msgspec.structs.replace(decision.effect, kind="blocked", reach=""))

    def connection_failed(self, host: str, port: int, error: OSError) -> None:
        """Note the reason why a server could not be connected to."""
        found = next((reason for kind, reason in _FAILURES if isinstance(error, kind)), "ConnectionFailed")
        self._failures[f"{host_name(host)}:{port}"] = found

    def failure(self, url: str) -> str:
        """Return the reason of a failed connection to a URL's server, as CDP's Network.ErrorReason; empty if it is not known."""
        parts = urlsplit(origin(url))
        return self._failures.pop(f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}", "")

    def record_too_large(self, frame: str, method: str, url: str) -> None:
        """Record a document that was refused because it is too large."""
        why = f"{url} was not opened: it has more than the {self.body_bytes:,} bytes that browser.document_bytes allows"
        self.too_large[frame] = why
        self.record(SideEffect(kind="blocked", method=method, url=url, detail=why, write=False))

    def record_answer(self, request: str, status: int) -> None:
        """Record the status of a write. Do nothing if the write was taken before, or sent under another policy."""
        if sent := self._pending.pop(request, None):
            self._effects.append(sent._replace(effect=msgspec.structs.replace(sent.effect, status=status)))

    def take_effects(self) -> tuple[SideEffect, ...]:
        """Return the side effects since the last call, and note that an action has ended.

        Each write is returned once, without a status if it has no answer yet.
        """
        noted, self._effects, self._pending = (*self._effects, *self._pending.values()), [], {}
        self._acting = False
        self._idle.clear()
        self._refused.clear()
        return tuple(self._settled(each) for each in noted)

    def _settled(self, noted: _Noted) -> SideEffect:
        """Return a side effect with the present knowledge of its kind."""
        learned = noted.effect.write is None and noted.kind and self._harmless.is_learned(noted.kind)
        return msgspec.structs.replace(noted.effect, write=False) if learned else noted.effect

    def decide(self, request: PageRequest, *, with_document: bool = False) -> RequestDecision:
        """Decide on a request, and learn from it. `with_document`: it came with a new document, in which nobody acted."""
        method, url = request.method, request.url
        unsafe, found = method not in SAFE_METHODS, origin(url)
        nature = self._harmless.nature(method, url, request.body, request.overrides)
        if nature == "write" and self._is_of_login(request, with_document=with_document):
            nature = "read"
        if request.is_document:
            self._left.add(request.frame)
        elif nature == "write" and request.is_report:
            nature = "harmless"
        elif nature == "write" and found in self.allowed:
            self._learn(request, with_document=with_document)
            if request.is_beacon and request.frame in self._left:
                nature = "harmless"  # a page that is left reports or saves a draft
        if refused := refusal(url, self.allowed) or self.deny.refusal(url):
            return RequestDecision(refused, _effect(request, "blocked", detail=refused, write=False if unsafe else None))
        if withheld := self._withheld(request, found):
            return RequestDecision(withheld, _effect(request, "blocked", detail=withheld, write=False))
        if nature == "read":
            return self._decide_read(request, with_document=with_document)
        write = False if nature == "harmless" else None if unsafe else True
        if found in self.allowed and found not in self.writable:
            why = "a write while exploring"
            return RequestDecision(why, _effect(request, "blocked", detail=why, write=write), nature == "harmless")
        return RequestDecision(effect=_effect(request, "request", reach="sandbox" if self.is_inside(url) else "outside", write=write))

    def _withheld(self, request: PageRequest, target: str) -> str:
        """Return the reason if a secret stops a request: one of other origins is in it, or was typed a moment ago."""
        if not target or self._login_origins or self.is_inside(request.url):
            return ""
        text = "\n".join((request.url, request.body, request.headers))
        return self.withheld(text, target, request.is_document)

    def _decide_read(self, request: PageRequest, *, with_document: bool) -> RequestDecision:
        """Decide on a request that reads by its method. It is stopped if it is presumed to write and may not.

        If writes are sent, it counts as one, unless the action has sent another.
        """
        found = origin(request.url)
        if not self.presumes or found not in self.allowed or self._login_origins:
            return RequestDecision()
        if self._is_by_itself(request, with_document=with_document):
            self._note_own_read(request)
            return RequestDecision()
        if not (why := self._presumed(request)):
            return RequestDecision()
        self.sent_presumed = True
        if found not in self.writable:
            return RequestDecision(f"a write while exploring: {why}", _effect(request, "blocked", detail=why, write=True))
        if any(each.effect.is_write for each in (*self._effects, *self._pending.values())):
            return RequestDecision()
        reach: Reach = "sandbox" if self.is_inside(request.url) else "outside"
        return RequestDecision(effect=_effect(request, "request", reach=reach, write=True, detail=why))

    def _presumed(self, request: PageRequest) -> str:
        """Return the reason if a request that reads by its method is presumed to write; empty if it is not."""
        if request.kind in _PARTS or (request.kind == "Image" and _PICTURE.search(split_url(request.url).path)):
            return ""
        if self._harmless.is_declared_read(request.method, request.url) or self._kind(request) in self._own_reads:
            return ""
        if word := writing_address(request.url):
            return f"presumed to write: its address says {word!r}"
        return f"presumed to write: {self._presumption}" if self._presumption else ""

    def _note_own_read(self, request: PageRequest) -> None:
        """Remember the kind of a read that a page sends by itself: it is not part of an action when it comes again."""
        if not request.is_document and len(self._own_reads) < MOST_KINDS:
            self._own_reads.add(self._kind(request))

    def _is_of_login(self, request: PageRequest, *, with_document: bool) -> bool:
        """Return whether a write belongs to the log-in: a POST that an action of its script caused, to the origin of the page acted on.

        A page that came since then may send only the form by which a page of another origin hands over the log-in.
        """
        if not self._login_origins or request.method != "POST":
            return False
        found, sender = origin(request.url), origin(request.referrer)
        if request.is_document and sender in self._login_origins and found != sender:
            return True
        shown = self._documents.values()
        came = with_document or any(not request.referrer or _is_of(request.referrer, document) for document in shown)
        return not came and found == self._login_origins[-1]

    def _learn(self, request: PageRequest, *, with_document: bool) -> None:
        """Learn the kind of a write that no action caused."""
        if not self._learns:
            return
        kind, by_itself = self._kind(request), self._is_by_itself(request, with_document=with_document)
        if not self._acting:
            self._idle[kind] += 1
        elif not by_itself and origin(request.url) not in self.writable:
            self._caused.add(kind)
        if by_itself or (self._idle[kind] > 1 and kind not in self._caused):
            self._harmless.learn(kind)

    def _is_by_itself(self, request: PageRequest, *, with_document: bool) -> bool:
        """Return whether a page sends a request by itself: before the first action, or from a document that came with the last one."""
        document = None if request.is_document else self._documents.get(request.frame)
        return not self._acted or with_document or (document is not None and _is_of(request.referrer, document))

    def _kind(self, request: PageRequest) -> str:
        return request_kind(request.method, request.url, request.body)

    def content_security_policy(self) -> str:
        """Return the content security policy that restricts connections that CDP's Fetch does not see: WebSockets and WebTransport."""
        sockets = [o.replace("http", "ws", 1) for o in self.socket_origins if o.startswith("http")]
        return f"{' '.join(('connect-src http: https: data: blob: filesystem:', *sockets))}; report-uri {SOCKET_REPORTS}"


def _is_of(referrer: str, document: str) -> bool:
    """Return whether a document may have sent a request with a referrer, which its policy may cut or leave out."""
    return referrer.partition("#")[0] in ("", document, f"{origin(document)}/")


def _effect(request: PageRequest, kind: Literal["request", "blocked"], **more: Any) -> SideEffect:
    """Return a request as a side effect, with the names of the fields that it sends."""
    return SideEffect(kind=kind, method=request.method, url=request.url, fields=request.fields, **more)
