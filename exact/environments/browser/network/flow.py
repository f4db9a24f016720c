"""Where typed secrets may have got to in a browser context, and what its documents may still send to other origins.

A page can write a secret in endless ways, so its forms are not looked for. From the moment at which a secret is typed, its document knows
it, and so do all documents that could learn it from there: those of the same tab, of tabs that opened each other, and all later ones of
their origins, which share storage. Such documents send to origins that the secret does not belong to only what could not be made from it.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, fields
from urllib.parse import unquote

from exact.environments.browser.network.message import BrowserMessage, StoredCookie
from exact.origins import origin, split_url

MOST_PARTS, LONGEST_PATH = 16, 96
"""Parts of a page, such as scripts, that are sent for at one origin without having stood in a document, and characters of their paths. At 6
bits a character that is 9,216 bits for each origin whose scripts the page had run before."""
MOST_KNOWN, MOST_REPEATS = 1000, 8
"""Addresses that are remembered of one origin, and requests to them by documents that know a secret. The choice among the addresses
tells at most 10 bits a request: 80 bits in an episode. Parts of the page at origins whose scripts it ran do not count."""
MOST_TOLD, SHORTEST = 20, 12
"""Texts that are remembered, and characters of a part of an address that is looked for in them."""
_OWN_HEADERS = ("origin", "referer", "sec-")
"""Beginnings of the names of headers that no page can set. The referrer is judged apart."""
_ORDINARY = frozenset(
    (name, value)
    for name, values in {
        "accept": (
            "*/*", "text/css,*/*;q=0.1", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
        ),
        "cache-control": ("no-cache", "max-age=0"), "pragma": ("no-cache",), "upgrade-insecure-requests": ("1",),
    }.items()
    for value in values
)  # fmt: skip
"""Headers that browsers set by themselves."""


@dataclass
class SecretFlow:
    """The typed secrets of one episode. A copy of it belongs to a snapshot."""

    typed: dict[str, frozenset[str]] = field(default_factory=dict)
    """Origins to which pages may send each secret that was typed, by its placeholder."""
    knowing: set[str] = field(default_factory=set)
    """Origins whose documents may know a typed secret."""
    known: dict[str, set[str]] = field(default_factory=dict)
    """Addresses that stood in a document, or were requested, before a secret was typed, by origin."""
    headers: set[tuple[str, str]] = field(default_factory=set)
    """Headers that were sent before a secret was typed, with names in lower case."""
    cookies: set[StoredCookie] = field(default_factory=set)
    """Cookies of the context before a secret was typed."""
    script_origins: set[str] = field(default_factory=set)
    """Origins of scripts that were requested before a secret was typed."""
    brought: dict[str, set[str]] = field(default_factory=dict)
    """Origins at which the task starts and that led the browser to another origin, by that origin: they asked for the log-in there."""
    shown: dict[str, str] = field(default_factory=dict)
    """Origins of the documents that are shown, by frame."""
    openers: dict[str, str] = field(default_factory=dict)
    """The tab that opened a tab and can be reached from there, by their main frames."""
    told: tuple[str, ...] = ()
    """The last texts that the agent read in documents which may know a secret."""
    parts: Counter[str] = field(default_factory=Counter)
    """Number of parts of a page that documents which know a secret were sent, by origin."""
    places: dict[tuple[int, int, int], str] = field(default_factory=dict)
    """Fields that hold a typed secret, in whatever form the page brings it: number of tab, number of document and backend id, with the path
    in the document once that is observed. A negative id stands for the node at the path, in a document that was loaded again."""
    repeats: int = 0
    """Number of requests to known addresses by documents that know a secret."""

    def copy(self) -> SecretFlow:
        """Return a copy, for a snapshot."""
        flat = {each.name: copy.copy(getattr(self, each.name)) for each in fields(self)}
        known = {each: set(found) for each, found in self.known.items()}
        return SecretFlow(**flat | {"known": known, "brought": {each: set(found) for each, found in self.brought.items()}})

    def note_request(self, url: str, headers: Iterable[tuple[str, str]], *, is_script: bool) -> None:
        """Remember a request of a document that knows no secret."""
        self.note_addresses((url,))
        self.headers.update((name.lower(), value) for name, value in headers)
        if is_script:
            self.script_origins.add(origin(url))

    def note_addresses(self, urls: Iterable[str]) -> None:
        """Remember addresses that stand in documents now, in which no secret has been typed yet, or to which the agent goes."""
        for url in urls:
            found = self.known.setdefault(origin(url), set())
            if len(found) < MOST_KNOWN:
                found.add(url)

    def note_told(self, text: str) -> None:
        """Remember a text that the agent reads in a document which may know a secret."""
        if text not in self.told:
            self.told = (*self.told, text)[-MOST_TOLD:]

    def is_told(self, url: str) -> bool:
        """Return whether an address, or a long part of it behind the origin, stands in a text that such a document showed to the agent."""
        whole = url.partition("://")[2].rstrip("/")
        rest = whole.partition("/")[2]
        said = {whole, unquote(whole)} if rest else set()
        said |= {each for part in re.split(r"[/?&=#;]", rest) for each in (rest, part, unquote(part)) if len(each) >= SHORTEST}
        return any(each in text for each in said for text in self.told)

    def is_known(self, url: str) -> bool:
        """Return whether an address stood in a document, or was requested, before a secret was typed."""
        return url in self.known.get(origin(url), ())

    def note_cookies(self, cookies: Iterable[StoredCookie]) -> None:
        """Remember the cookies that the context has before the first secret is typed."""
        if not self.typed:
            self.cookies.update(cookies)

    def could_set(self, cookie: StoredCookie) -> bool:
        """Return whether a document that may know a secret could have set a cookie: its host is in the cookie's domain."""
        hosts, domain = (split_url(each).hostname or "" for each in self.knowing), cookie.domain.lstrip(".")
        return any(host == domain or host.endswith(f".{domain}") for host in hosts)

    def note_way(self, url: str, source: str, home: Collection[str], *, redirects: bool) -> None:
        """Remember that `source`, one of the origins at which the task starts, led a tab to an address of another origin, to log in there.

        It did if its server redirected there, or if the address names it, to lead back to it.
        """
        target = origin(url)
        if source in home and target and target != source and (redirects or source in unquote(url)):
            self.brought.setdefault(target, set()).add(source)

    def note_typed(self, name: str, at: Iterable[str], trusted: Iterable[str]) -> None:
        """Remember that a secret is about to be typed into documents of the origins `at`. `trusted`: the origins that it belongs to."""
        where = set(at)
        brought = {source for target in where for source in self.brought.get(target, ())}
        self.typed[name] = self.typed.get(name, frozenset()) | frozenset(trusted) | brought
        self.knowing |= where

    def trust(self, target: str) -> None:
        """Let an origin get all typed secrets from now on."""
        self.typed = {name: trusted | {target} for name, trusted in self.typed.items()}

    def foreign(self, target: str) -> str:
        """Return the placeholder of a typed secret that an origin may not get; empty if it may get all of them."""
        return next((name for name, trusted in self.typed.items() if target not in trusted), "")

    def spread(self, tab_of: Callable[[str], str]) -> set[str]:
        """Return the tabs whose documents may know a secret, by their main frames. Their other origins know it too from then on.

        `tab_of`: returns the main frame of a frame's tab; empty if it is unknown.
        """
        shown = self.shown
        if not self.knowing:
            return set()
        tabs = {frame: tab for frame in shown if (tab := tab_of(frame))}
        knowing = set[str]()
        while True:
            found = {tab for frame, tab in tabs.items() if shown[frame] in self.knowing}
            linked = {pair for pair in self.openers.items() if set(pair) & (found | knowing)}
            found |= {tab for pair in linked for tab in pair}
            origins = {shown[frame] for frame, tab in tabs.items() if tab in found}
            if found <= knowing and origins <= self.knowing:
                return knowing
            knowing |= found
            self.knowing |= origins


def refusal(flow: SecretFlow, message: BrowserMessage) -> str:
    """Return the reason why a document that may know a secret may not send a message to another origin; empty if it may."""
    url, source, target = message.url + message.fragment, message.source, origin(message.url)
    if message.method != "GET" or message.body or not message.is_whole:
        return "it sends more than an address"
    if source and flow.foreign(origin(source)):
        return ""  # a server that does not know the secret redirects
    if any(flow.could_set(each) for each in message.cookies if each not in flow.cookies):
        return "it carries a cookie that was set since"
    if message.is_chosen:
        return ""
    if _tells(flow, message.headers, message.referrer):
        return "its headers were made by the page"
    is_part = message.channel == "part" and target in flow.script_origins
    if flow.is_known(url):
        enough = flow.repeats >= MOST_REPEATS and not is_part
        return f"{MOST_REPEATS} requests were sent to addresses that stood in the page before" if enough else ""
    parts = split_url(url)
    if parts.query or parts.fragment or len(parts.path) > LONGEST_PATH:
        return "its address did not stand in the page before"
    chosen = not flow.is_known(source) or (parts.hostname or "") in unquote(unquote(f"{source} {message.sent}"))
    if chosen if source else not is_part:
        return "its address did not stand in the page before"
    return "" if flow.parts[target] < MOST_PARTS else f"{MOST_PARTS} parts of the page were sent for at {target}"


def count(flow: SecretFlow, message: BrowserMessage) -> None:
    """Count a message that a document which may know a secret sends to another origin."""
    if not flow.is_known(message.url + message.fragment):
        flow.parts[origin(message.url)] += 1
    elif message.channel != "part" or origin(message.url) not in flow.script_origins:
        flow.repeats += 1


def _tells(flow: SecretFlow, headers: Iterable[tuple[str, str]], referrer: str) -> bool:
    """Return whether headers may hold what a page put into them."""
    if referrer and referrer != f"{origin(referrer)}/" and not flow.is_known(referrer.partition("#")[0]):
        return True
    given = {(name.lower(), value) for name, value in headers if not name.lower().startswith(_OWN_HEADERS)}
    return not given <= _ORDINARY | flow.headers
