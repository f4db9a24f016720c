"""The rules of url_match, by which an address is the wanted one."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from exact.benchmarks.webarena.format import OR, Dialect

Rule = str
"""Rule of comparison: `EXACT` or `GOLD in PRED`."""

DEFAULT: dict[Dialect, Rule] = {"webarena": "GOLD in PRED", "visualwebarena": "EXACT"}


def matches(wanted: str, url: str, rule: Rule, dialect: Dialect) -> bool:
    """Return whether `url` is one of the addresses between ` |OR| `.

    EXACT: the same except for a last slash. GOLD in PRED: VisualWebArena looks for the text; WebArena for host and path in host and
    path, and for one of the wanted values of each parameter that the reference has.
    """
    return any(_matches(_plain(each, dialect), _plain(url, dialect), rule, dialect) for each in wanted.split(OR))


def _matches(wanted: str, url: str, rule: Rule, dialect: Dialect) -> bool:
    if rule == "EXACT":
        return wanted == url
    if dialect == "visualwebarena":
        return wanted in url
    one, other = urlsplit(wanted), urlsplit(url)
    if one.netloc + one.path not in other.netloc + other.path:
        return False
    given = parse_qs(other.query)
    return all(set(values) & set(given.get(name, ())) for name, values in parse_qs(one.query).items())


def _plain(url: str, dialect: Dialect) -> str:
    if dialect == "webarena":
        return url.strip().rstrip("/")
    return url.strip().replace("localhost", "127.0.0.1").removesuffix("/")
