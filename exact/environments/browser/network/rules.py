"""The one decision about everything that leaves a browser context: a request, a redirect, a form, a beacon, a download, a WebSocket.

While a search explores, no write is sent to a site that keeps it: no request whose method writes, and no GET that is presumed to write, by
its address or because the action that caused it is presumed to (see presume/). Requests that a page sends by itself are told from those
that an action caused: they are requests before the first action of an episode, requests of a document that came with the step and that
nobody acted in, and requests that a page repeats while nobody acts. Their kind is learned (see harmless.py), and does not count as a write
of the agent from then on. A beacon of a page that is left does not count either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from exact.environments.base import SAFE_METHODS, SideEffect
from exact.environments.browser.network import flow
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.network.harmless import HarmlessRequests, Nature, request_kind
from exact.environments.browser.network.message import PARTS, BrowserMessage
from exact.environments.browser.presume.address import writing_address
from exact.origins import origin, refusal, split_url

_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|bmp)$", re.I)
_KEY = "browser.login.partner_origins"


@dataclass(frozen=True)
class Allow:
    """The message may leave."""

    effect: SideEffect | None = None
    """Its side effect if it writes."""
    is_presumed: bool = False
    """Whether it writes if the action does."""
    is_own_read: bool = False
    """Whether it reads, and a page sends it by itself."""
    refused = ""


@dataclass(frozen=True)
class Refuse:
    """The message may not leave."""

    refused: str
    """The reason."""
    effect: SideEffect
    pretends: bool = False
    """Whether it is answered as if it were sent: the site declares it harmless."""
    is_presumed: bool = False
    """Whether it writes if the action does."""
    is_secret: bool = False
    """Whether a secret is the reason, which a person may overrule."""
    is_own_read = False


Decision = Allow | Refuse


@dataclass(frozen=True, kw_only=True)
class PolicyRules:
    """Everything that an episode fixes about the messages of its browser context."""

    allowed: tuple[str, ...] = ()
    """Origins that get reads."""
    writable: tuple[str, ...] = ()
    """Origins that get writes too."""
    own: tuple[str, ...] = ()
    """The task's own origins, to which `headers` are sent."""
    home: tuple[str, ...] = ()
    """Origins of the task's start and of its log-in: an application that asks another origin for a log-in is there."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that are added to requests, by name."""
    deny: DenyList = field(default_factory=DenyList)
    """Addresses that are refused even if they are allowed."""
    harmless: HarmlessRequests = field(default_factory=HarmlessRequests)
    """Requests that are not writes of the agent, with those that are learned."""
    learns: bool = False
    """Whether more of them are learned."""
    presumes: bool = False
    """Whether a GET may be presumed to write."""
    guarded: frozenset[str] = frozenset()
    """Origins that the secrets of the log-in belong to, and partners of theirs; empty if there are no secrets."""
    is_inside: Callable[[str], bool] = lambda url: False
    """Returns whether an address is answered in the sandbox, so that requests to it stay there."""
    spelled: Callable[[str, str], str] = lambda text, target: ""
    """Returns the placeholder of a secret of other origins that a text for an origin spells, in a usual form; empty if there is none."""
    document_seconds: float = 15.0
    """Seconds that a server has for the whole of a document. After that, the received part is shown."""
    document_bytes: int = 1 << 30
    """Maximum bytes of a PDF whose text is shown."""
    body_bytes: int = 1 << 24
    """Maximum bytes of a document, once decompressed."""
    counts_pages: bool = False
    """Whether the pages of this context count in the pace."""

    @property
    def is_read_only(self) -> bool:
        """Whether some allowed origin gets no writes."""
        return len(self.writable) < len(self.allowed)


@dataclass
class EpisodeFacts:
    """What an episode knows when a message would leave."""

    acted: bool = False
    """Whether the agent has acted in this episode."""
    acting: bool = False
    """Whether an action is under way."""
    documents: dict[str, str] = field(default_factory=dict)
    """Addresses of the documents that came since the last action began, by frame."""
    presumption: str = ""
    """Reason why the action under way is presumed to write; empty if it is presumed to read."""
    own_reads: set[str] = field(default_factory=set)
    """Kinds of reads that pages sent by themselves."""
    left: set[str] = field(default_factory=set)
    """Frames that requested another document since the last action began."""
    has_written: bool = False
    """Whether the action under way has sent a write."""
    login_origins: tuple[str, ...] = ()
    """Origins of the pages of a log-in script that is acting; empty if none is."""
    flow: SecretFlow = field(default_factory=SecretFlow)
    """Where typed secrets may have got to."""
    knowing: Sequence[str] | set[str] = ()
    """Main frames of the tabs whose documents may know a typed secret."""
    tab_of: Callable[[str], str] = lambda frame: ""
    """Returns the main frame of a frame's tab; empty if it is unknown, as of a worker."""

    def knows(self, frame: str) -> bool:
        """Return whether a frame, or a worker, may know a typed secret."""
        tab = self.tab_of(frame)
        return bool(self.flow.typed) and (not tab or tab in self.knowing)

    def is_by_itself(self, message: BrowserMessage, *, with_document: bool) -> bool:
        """Return whether a page sends a message by itself: before the first action, or from a document that came with the last one."""
        document = None if message.is_document else self.documents.get(message.frame)
        return not self.acted or with_document or (document is not None and _is_of(message.referrer, document))


def decide(rules: PolicyRules, facts: EpisodeFacts, message: BrowserMessage, *, with_document: bool = False) -> Decision:
    """Decide on a message. `with_document`: it came with a new document, in which nobody acted."""
    unsafe, found = message.method not in SAFE_METHODS, origin(message.url)
    if refused := refusal(message.url, rules.allowed) or rules.deny.refusal(message.url):
        return _refuse(message, refused, write=False if unsafe else None)
    if refused := withheld(rules, facts, message):
        return replace(_refuse(bare(message), refused, write=False), is_secret=True)
    nature = nature_of(rules, facts, message, with_document=with_document)
    if nature == "read":
        return _decide_read(rules, facts, message, with_document=with_document)
    write = False if nature == "harmless" else None if unsafe else True
    if found in rules.allowed and found not in rules.writable:
        return _refuse(message, "a write while exploring", write=write, pretends=nature == "harmless")
    return Allow(_effect(message, "request", reach=reach_of(rules, message.url), write=write))


def nature_of(rules: PolicyRules, facts: EpisodeFacts, message: BrowserMessage, *, with_document: bool = False) -> Nature:
    """Return the effect of a message for the agent."""
    found = rules.harmless.nature(message.method, message.url, message.body, message.overrides)
    if found != "write" or _is_of_login(rules, facts, message, with_document=with_document):
        return "read" if found == "write" else found
    reports = message.is_beacon and message.frame in facts.left and origin(message.url) in rules.allowed
    return "harmless" if message.is_report or reports else "write"  # a page that is left reports or saves a draft


def withheld(rules: PolicyRules, facts: EpisodeFacts, message: BrowserMessage) -> str:
    """Return the reason if a secret stops a message: its sender may know one of other origins, or one is spelled in it."""
    target = origin(message.url)
    if not target or rules.is_inside(message.url):
        return ""
    name = facts.flow.foreign(target)
    if name and facts.knows(message.frame):
        why = flow.refusal(facts.flow, message)
        if why:
            return f"{name} was typed, and a page that may know it sends to {target}: {why}; see {_KEY}"
    text = "\n".join((message.url + message.fragment, message.body, *(value for _, value in message.headers)))
    if (name := rules.spelled(text, target)) and target not in facts.flow.typed.get(name, ()):
        return f"{name} is sent to {target}, which it does not belong to; see browser.login.secret_origins"
    return ""


def bare(message: BrowserMessage) -> BrowserMessage:
    """Return a message as it is recorded if a secret may stand in it: without path, query, body and headers."""
    return message._replace(url=f"{origin(message.url)}/", body="", fields=(), headers=(), referrer="", fragment="")


def reach_of(rules: PolicyRules, url: str) -> Literal["sandbox", "outside"]:
    """Return the place in which a request is answered."""
    return "sandbox" if rules.is_inside(url) else "outside"


def kind_of(message: BrowserMessage) -> str:
    """Return the kind of a message, which is learned."""
    return request_kind(message.method, message.url, message.body)


def presumed(rules: PolicyRules, facts: EpisodeFacts, message: BrowserMessage) -> str:
    """Return the reason if a message that reads by its method is presumed to write; empty if it is not."""
    is_picture = message.kind == "Image" and _PICTURE.search(split_url(message.url).path)
    if is_picture or (message.kind != "Image" and message.kind in PARTS):
        return ""
    if rules.harmless.is_declared_read(message.method, message.url) or kind_of(message) in facts.own_reads:
        return ""
    if word := writing_address(message.url):
        return f"presumed to write: its address says {word!r}"
    return f"presumed to write: {facts.presumption}" if facts.presumption else ""


def _decide_read(rules: PolicyRules, facts: EpisodeFacts, message: BrowserMessage, *, with_document: bool) -> Decision:
    """Decide on a message that reads by its method. It is stopped if it is presumed to write and may not.

    If writes are sent, it counts as one, unless the action has sent another.
    """
    found = origin(message.url)
    if not rules.presumes or found not in rules.allowed or facts.login_origins:
        return Allow()
    if facts.is_by_itself(message, with_document=with_document):
        return Allow(is_own_read=not message.is_document)
    if not (why := presumed(rules, facts, message)):
        return Allow()
    if found not in rules.writable:
        effect = _effect(message, "blocked", detail=why, write=True)
        return Refuse(f"a write while exploring: {why}", effect, is_presumed=True)
    sent = _effect(message, "request", reach=reach_of(rules, message.url), write=True, detail=why)
    return Allow(None if facts.has_written else sent, is_presumed=True)


def _is_of_login(rules: PolicyRules, facts: EpisodeFacts, message: BrowserMessage, *, with_document: bool) -> bool:
    """Return whether a write belongs to the log-in: a POST that an action of its script caused, to the origin of the page acted on.

    A page that came since then may send only the form by which a page of another origin hands over the log-in.
    """
    if not facts.login_origins or message.method != "POST":
        return False
    found, sender = origin(message.url), origin(message.referrer)
    if message.is_document and sender in facts.login_origins and found != sender:
        return True
    came = with_document or any(not message.referrer or _is_of(message.referrer, each) for each in facts.documents.values())
    return not came and found == facts.login_origins[-1]


def _is_of(referrer: str, document: str) -> bool:
    """Return whether a document may have sent a message with a referrer, which its policy may cut or leave out."""
    return referrer.partition("#")[0] in ("", document, f"{origin(document)}/")


def _refuse(message: BrowserMessage, why: str, *, write: bool | None, pretends: bool = False) -> Refuse:
    return Refuse(why, _effect(message, "blocked", detail=why, write=write), pretends)


def _effect(message: BrowserMessage, kind: Literal["request", "blocked"], **more: Any) -> SideEffect:
    """Return a message as a side effect, with the names of the fields that it sends."""
    return SideEffect(kind=kind, method=message.method, url=message.url, fields=message.fields, **more)
