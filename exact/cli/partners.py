"""The other origins that a site's pages talk to: `exact login` and `--dry-run` propose the keys that allow them."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

import click
import msgspec

from exact.config import BrowserConfig, Config, LoginConfig, RecordingConfig
from exact.errors import EnvironmentFailure
from exact.origins import is_web, origin, origins

if TYPE_CHECKING:
    from exact.task import Scalar, Task

_ROUNDS = 3
"""Times that a page is opened: each time it may load from the origins that it asked for before, whose scripts ask for more."""
_MOST_STARTS = 5
"""Starts of tasks that are looked at."""
_PART = re.compile(r"\.(?:m?js|css|woff2?|ttf|otf|png|jpe?g|gif|svg|webp|avif|ico|mp[34]|webm)$", re.I)
"""Paths of parts of a page, whose query is a version."""


class OtherOrigins(NamedTuple):
    """Other origins that the pages of a site talk to."""

    loaded: frozenset[str] = frozenset()
    """All of them."""
    told: frozenset[str] = frozenset()
    """Those to which pages send more than addresses of parts."""


def registrable_domain(site: str) -> str:
    """Return the domain of an origin that somebody registered, such as `example.co.uk`. An address or a bare name is its own.

    By the public suffix list that comes with publicsuffixlist. Nothing is asked for in the network.
    """
    from publicsuffixlist import PublicSuffixList

    host = urlsplit(site).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return str(PublicSuffixList().privatesuffix(host) or host)
    return host


def by_domain(sites: Iterable[str]) -> dict[str, list[str]]:
    """Return origins in groups of one registrable domain each, both in order."""
    groups: dict[str, list[str]] = {}
    for each in sorted(sites, key=lambda site: (registrable_domain(site), site)):
        groups.setdefault(registrable_domain(each), []).append(each)
    return groups


def agreed(sites: Iterable[str], ask: Callable[[str], bool] = click.confirm) -> list[str]:
    """Ask whether pages that know a typed secret may send to some origins. Return those that got a yes.

    One question for all origins of a registrable domain; after a no to several, one for each.
    """
    found = list[str]()
    for domain, group in by_domain(sites).items():
        if len(group) > 1 and ask(f"may pages that know a typed secret send to all of {domain} ({', '.join(group)})?"):
            found += group
            continue
        found += [each for each in group if ask(f"may pages that know a typed secret send to {each}?")]
    return found


def proposal(partners: Iterable[str], loaded: Iterable[str] = ()) -> str:
    """Return the keys of a site file that allow origins: `loaded` to load from, `partners` to send to after a secret was typed."""
    parts = [f"allow_origins: [{', '.join(loaded)}]"] if loaded else []
    parts += [f"login: {{partner_origins: [{', '.join(partners)}]}}"] if partners else []
    return f"browser: {{{', '.join(parts)}}}"


def looked_at(tasks: Sequence[Task], config: Config) -> str:
    """Return lines on the other origins that the sites of tasks talk to, and the keys that allow them; empty if no secrets are typed.

    A start page that a program of this machine serves is not opened. If standard input is a terminal, each partner needs a yes.
    """
    from exact.cli.signals import run_async
    from exact.environments.browser.launch.options import browser_config_of

    chosen = {(task.start, msgspec.json.encode(browser := browser_config_of(config.browser, task))): (task, browser) for task in tasks}
    rows, loaded, told, own = list[tuple[str, str]](), set[str](), set[str](), set[str]()
    for task, browser in [each for each in chosen.values() if _types_secrets(*each)][:_MOST_STARTS]:
        pages = tuple(dict.fromkeys((task.start, urljoin(task.start, browser.login.url))))
        try:
            seen = run_async(look(task, browser, pages))
        except EnvironmentFailure as error:
            rows.append(("not seen", f"the origins that {task.start} talks to: {error}"))
            continue
        rows.append(("opened", f"{', '.join(pages)}, without a log-in: origins that are asked for after it are unknown"))
        loaded, told, own = loaded | seen.loaded, told | seen.told, own | {*origins(*browser.login.partner_origins)}
    partners = sorted(told - own)
    if loaded:
        rows.append(("talks to", ", ".join(each for group in by_domain(loaded).values() for each in group)))
    if partners and sys.stdin.isatty():
        partners = agreed(partners)
    if loaded or partners:
        rows.append(("to allow it", proposal(partners, sorted(loaded))))
    return "\n".join(f"  {name:12} {text}" for name, text in rows)


async def look(task: Task, browser: BrowserConfig, pages: Iterable[str]) -> OtherOrigins:
    """Open pages of a task's site without logging in, and return the other origins that they ask for.

    No hook is called, and no write, credential, header, cookie or session is sent. Raises EnvironmentFailure if a page does not open.
    """
    known = {*origins(task.start, *task.origins, *browser.allow_origins)}
    loaded, told = set[str](), set[str]()
    for _ in range(_ROUNDS):
        refused = [each for url in pages for each in await _refused(task, browser, url, sorted(loaded))]
        found = {(target, method, url) for method, url in refused if (target := origin(url)) and target not in known}
        told |= {target for target, method, url in found if method != "GET" or _tells(url)}
        if {target for target, *_ in found} <= loaded:
            break
        loaded |= {target for target, *_ in found}
    return OtherOrigins(frozenset(loaded), frozenset(told))


def _tells(url: str) -> bool:
    """Return whether a page may have written something into the address of a GET."""
    parts = urlsplit(url)
    return bool(parts.query) and not _PART.search(parts.path)


async def _refused(task: Task, browser: BrowserConfig, url: str, more: Sequence[str]) -> list[tuple[str, str]]:
    """Return methods and addresses of the requests that are refused when a page opens. `more`: further origins that it may load from."""
    from exact.environments.sites.site import declared_outside
    from exact.library.make import make
    from exact.task import Task

    bare = msgspec.structs.replace(
        browser, login=LoginConfig(), profile="", cdp_url="", sandbox="never", headed=False, screenshots=False, traces="",
        recording=RecordingConfig(), learn_masks=False, confirm="never", ask_user=False, speculation="observe",
        allow_origins=(*browser.allow_origins, *more),
    )  # fmt: skip
    outside = declared_outside(task)
    places = {"hosts": outside.hosts, "trusted": outside.trusted} if outside else {}
    metadata: dict[str, Scalar] = {"hosts": task.metadata.get("hosts", "{}"), "outside": msgspec.json.encode(places).decode()}
    start = Task(id="own/look", instruction="Look.", start=url, origins=(task.start, *task.origins), metadata=metadata)
    async with make(start, config=Config(browser=bare), simulation=True) as environment:
        await environment.reset()
        effects = (await environment.step('stop "seen"')).effects
    return [(each.method, each.url) for each in effects if each.kind == "blocked"]


def _types_secrets(task: Task, browser: BrowserConfig) -> bool:
    """Return whether secrets are typed at a task's own site, which no program of this machine serves."""
    from exact.environments.own import own_environment
    from exact.environments.sites.site import declared_outside

    if not is_web(task.start) or "services" in task.metadata or own_environment(task):
        return False
    outside = declared_outside(task)
    return bool(browser.login.secrets or (outside and outside.accounts))
