"""Requests that count as writes of the agent, and those that do not: those that a site declares, and those that pages send by themselves.

A request counts by its method, with these exceptions. A site declares patterns for requests that only read (`reads`), that write although
they are GETs (`writes`), and that are harmless (`harmless`: drafts, preferences, telemetry). A GraphQL query or subscription reads, a
mutation never is harmless, and writes in a GET too. A POST that names a stored GraphQL operation by its hash writes unless a pattern names
the operation: patterns are also searched in `METHOD URL OPERATION`. A GET that ends the session writes, and one whose headers or parameters
ask for another method.
Requests that a page sends while nobody acts are learned: they are not writes of the agent when they are sent again, with an action or
without. Learned requests are never sent while exploring.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Literal
from urllib.parse import parse_qsl

from exact.environments.base import SAFE_METHODS
from exact.environments.browser.presume.address import address_writes, asks_to_write, graphql_in, operations, queries_in, writes_by_graphql
from exact.origins import split_url
from exact.untrusted import BoundedPattern, compiled

Nature = Literal["read", "write", "harmless"]
"""Effect of a request for the agent. `harmless`: it may change something, but not for the agent's task."""

MOST_KINDS = 1024
"""Kinds of requests that are remembered. The one that was learned first is forgotten first."""
_LENGTH = 20_000
"""Characters of a body that are looked at."""
_SESSION_END = re.compile(r"(?:^|[/=?&_.\-:])(?:user)?(?:log|sign)[-_]?(?:out|off)(?:$|[/?&=_.\-#])", re.I)
"""Part of an address whose GET ends the session, which other environments may share."""
_VERBS = frozenset(
    {"action", "cmd", "command", "do", "event", "func", "function", "method", "mode", "op", "operation", "operationname", "type"}
)
"""Names of parameters whose value selects the purpose of a request to an address that serves many."""
_STORED = frozenset({"operationName", "documentId", "doc_id", "queryId", "sha256Hash"})
"""Names of fields by which a body names a stored GraphQL operation."""
_VARIABLE = re.compile(r"\d+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*", re.I)
"""Numbers and identifiers in paths and in values."""


class HarmlessRequests:
    """The requests of one site that are not writes of the agent. Environments that are opened together share the learned ones."""

    def __init__(self, harmless: Iterable[str] = (), reads: Iterable[str] = (), writes: Iterable[str] = ()) -> None:
        """Take the declared patterns: regular expressions that are searched in `METHOD URL`. Raises UsageError for an invalid one."""
        self._harmless, self._reads, self._writes = _compiled("harmless", harmless), _compiled("reads", reads), _compiled("writes", writes)
        self._learned: OrderedDict[str, None] = OrderedDict()

    def nature(self, method: str, url: str, body: str = "", asked: Iterable[str] = ()) -> Nature:
        """Return the effect of a request, by its method and the site's declarations, without the learned kinds.

        `asked`: methods that its headers ask for.
        """
        line, stored = f"{method} {url}", stored_operation(body)
        if stored is not None and method not in SAFE_METHODS:
            return self._nature_of_stored(line, f"{line} {stored}")
        if _matches(self._writes, line, otherwise=True):
            return "write"
        if _matches(self._reads, line, otherwise=False):
            return "read"
        if method in SAFE_METHODS:
            return "write" if ends_session(url) or asks_to_write(asked) or address_writes(url) else "read"
        if _matches(self._harmless, line, otherwise=False):
            operations = graphql_operations(body)
            if writes_by_graphql(operations) or address_writes(url) or asks_to_write(each for each in asked if each != method):
                return "write"
            return "read" if operations else "harmless"
        return "write"

    def _nature_of_stored(self, line: str, named: str) -> Nature:
        """Return the effect of a POST of a stored GraphQL operation. Only a pattern that names the operation is about it."""

        def declared(patterns: tuple[BoundedPattern, ...]) -> bool:
            return _matches(patterns, named, otherwise=False) and not _matches(patterns, line, otherwise=True)

        return "read" if declared(self._reads) else "harmless" if declared(self._harmless) else "write"

    def is_declared_read(self, method: str, url: str) -> bool:
        """Return whether the site declares that a request only reads."""
        return _matches(self._reads, f"{method} {url}", otherwise=False)

    def learn(self, kind: str) -> None:
        """Remember a kind of request that a page sends by itself."""
        self._learned[kind] = None
        if len(self._learned) > MOST_KINDS:
            self._learned.popitem(last=False)

    def is_learned(self, kind: str) -> bool:
        """Return whether pages send this kind of request by themselves."""
        return kind in self._learned


def ends_session(url: str) -> bool:
    """Return whether an address is one that logs a user out.

    >>> ends_session("http://wiki.test/index.php?title=Special:UserLogout"), ends_session("http://wiki.test/blog/outlook")
    (True, False)
    """
    parts = split_url(url)
    return bool(_SESSION_END.search(parts.path) or _SESSION_END.search(parts.query))


def request_kind(method: str, url: str, body: str = "") -> str:
    """Return the kind of a request: method, address without numbers, names of parameters, and the values that select its purpose.

    Two requests of one kind may carry other data, such as a draft and a later version of it.
    """
    parts = split_url(url)
    path = _VARIABLE.sub("#", parts.path)
    named = sorted({*_named(parse_qsl(parts.query, keep_blank_values=True)), *_body_names(body)})
    return f"{method} {parts.scheme}://{parts.netloc}{path} {' '.join(named)}"


def graphql_operations(body: str) -> set[str]:
    """Return the kinds of GraphQL operations in a request's body, as `operations` does. Empty if the body is not GraphQL."""
    if _decoded(body) is None:
        return graphql_in(f"http://form.invalid/?{body[:_LENGTH]}") if "=" in body else set()
    return {kind for text in queries_in(body) if "{" in text for kind in operations(text)}


def stored_operation(body: str) -> str | None:
    """Return the name of the GraphQL operation that a body names without its text, by a hash or an id; empty if it has no name.

    None if the body is another one, or holds the text.
    """
    data = _decoded(body)
    for each in data if isinstance(data, list) else [data]:
        if not isinstance(each, dict) or isinstance(each.get("query"), str):
            continue
        extensions = each.get("extensions")
        if _STORED & each.keys() or (isinstance(extensions, dict) and "persistedQuery" in extensions):
            return str(each.get("operationName") or "")
    return None


def _body_names(body: str) -> Iterator[str]:
    """Yield the names of a body's fields, nested ones after their parents' names, and the values that select the request's purpose."""
    data = _decoded(body)
    if data is not None:
        yield from _json_names(data, "")
    elif "=" in body and "\n" not in body[:_LENGTH]:
        yield from _named(parse_qsl(body[:_LENGTH], keep_blank_values=True))
    else:
        yield from (f".{name}" for name in re.findall(r'name="([^"]{1,100})"', body[:_LENGTH]))  # multipart/form-data


def _json_names(data: Any, under: str, depth: int = 0) -> Iterator[str]:
    if isinstance(data, list) and depth < 4:
        for each in data[:50]:
            yield from _json_names(each, under, depth + 1)
    if isinstance(data, dict) and depth < 4:
        for name, value in data.items():
            yield f"{under}.{name}"
            if isinstance(value, str):
                yield from _verb(f"{under}.{name}", name, value)
            else:
                yield from _json_names(value, f"{under}.{name}", depth + 1)


def _named(fields: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in fields:
        yield f".{name}"
        yield from _verb(f".{name}", name, value)


def _verb(path: str, name: str, value: str) -> Iterator[str]:
    if name.lower() in _VERBS:
        yield f"{path}={_VARIABLE.sub('#', value)[:100]}"
    elif name.lower() == "query" and (operations := graphql_operations(json.dumps({"query": value}))):
        yield f"{path}={','.join(sorted(operations))}:{' '.join(value.split())[:200]}"


def _decoded(body: str) -> Any:
    if body[:1] not in "{[" or not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _compiled(name: str, patterns: Iterable[str]) -> tuple[BoundedPattern, ...]:
    return tuple(compiled(each, name, "write a regular expression of `METHOD URL`") for each in patterns)


def _matches(patterns: Iterable[BoundedPattern], line: str, *, otherwise: bool) -> bool:
    """Return whether a pattern is found. `otherwise`: the answer if the search takes too long, by which the request counts as a write."""
    return any(each.found_in(line, otherwise=otherwise) for each in patterns)
