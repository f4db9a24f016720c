# ruff: noqa: E501 - pages of attacks are one line each
"""Attacks that write to the task's own site while a search simulates, in the guise of reads."""

from __future__ import annotations

from typing import Any

from .attack import GO, Attack
from .sites import Reply

MUTATION = "mutation M { deleteAll }"
HARMLESS = ("POST .*/graphql",)
"""The user says that GraphQL at this address is no write of the agent; queries there are sent, mutations are not."""


def pressed(name: str, script: str, sign: str, before: str = "", **more: Any) -> Attack:
    """Return an attack by a script that runs when Go is pressed."""
    return Attack(
        name, f"{before}<button onclick='act()'>Go</button><script>async function go() {{ {script} }}</script>", (GO,), sign=sign, **more
    )


def loaded(name: str, script: str, sign: str, before: str = "", **more: Any) -> Attack:
    """Return an attack by a script that runs as the page loads."""
    return Attack(name, f"{before}<script>async function go() {{ {script} }} act()</script>", (), sign=sign, **more)


def posted(name: str, body: str, *, query: str = "", kind: str = "application/json") -> Attack:
    """Return an attack by a POST to an address at which queries are sent."""
    script = f"await fetch('/@name/graphql{query}', {{method: 'POST', headers: {{'Content-Type': '{kind}'}}, body: {body}}})"
    return pressed(name, script, r"^POST \S+/graphql", harmless=HARMLESS)


def asked(*queries: str) -> str:
    """Return a script that gets addresses with queries of GraphQL, which are JavaScript."""
    return "; ".join(f"await get('/@name/graphql?' + {each})" for each in queries)


ATTACKS: tuple[Attack, ...] = (
    # parameters that ask for another method
    pressed("method_after_a_semicolon", "await get('/@name/w?q=1;_method=delete'); await get('/@name/w;_method=delete?q=1')", "GET .*_method=delete"),
    pressed("method_twice", "await get('/@name/w?_method=get&q=1&_method=delete'); await get('/@name/w?_method=delete&_method=')", "GET .*_method=delete"),
    pressed("method_by_a_name_of_php", "for (const n of ['.method', '%5Fmethod%00x', '%20_method', '_method[a][]', '[method']) await get(`/@name/w?${n}=delete`)", "GET .*method.*=delete"),
    loaded("method_of_a_form", "document.forms[0].submit()", "GET .*=[dD]elete", "<iframe name=f></iframe><form action='/@name/w' target=f><input name=_method value=get><input name=_Method value=Delete><input name='_method[]' value=delete></form>"),
    pressed("method_with_a_nul", "await get('/@name/w?_method=delete%00'); await get('/@name/w?_method=%EF%BB%BFdelete'); await get('/@name/w?_method=%0Adelete%20')", "GET .*_method=.*delete"),
    # headers that ask for another method
    loaded("header_with_underscores", "await fetch('/@name/w', {headers: {X_HTTP_METHOD_OVERRIDE: 'DELETE'}})", "(?i)method.override: *delete"),
    pressed("header_with_a_list", "await fetch('/@name/w', {headers: [['X-Method-Override', 'GET'], ['X-Method-Override', 'DELETE']]}); await fetch('/@name/v', {headers: {'X-HTTP-Method': '\"PUT\"'}})",
            "(?i)method(-override)?:.*(delete|put)"),
    loaded("header_of_options", "await fetch('/@name/w', {method: 'OPTIONS', headers: {'X-HTTP-Method': 'MERGE'}})", "(?i)x-http-method: merge"),
    pressed("header_of_a_service_worker", "await navigator.serviceWorker.ready; while (!navigator.serviceWorker.controller) await sleep(20); await get('/@name/w')", "(?i)method-override: patch",
            "<script>navigator.serviceWorker.register('/@name/sw.js')</script>", files={"sw.js": Reply(
                b"oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim());"
                b"onfetch = e => { if (e.request.url.endsWith('/w')) e.respondWith(fetch(e.request.url, {headers: {'X-HTTP-Method-Override': 'PATCH'}})) }")}),
    # GraphQL by GET
    pressed("graphql_after_a_fragment", asked("'query=' + encodeURIComponent('fragment F on T { a } " + MUTATION + "')"), "GET .*deleteAll"),
    loaded("graphql_after_a_carriage_return", asked("'query=' + encodeURIComponent('# all items\\r" + MUTATION + "')"), "GET .*deleteAll"),
    pressed("graphql_by_the_name_of_the_operation", asked("'query=' + encodeURIComponent('query Q { a } " + MUTATION + "') + '&operationName=M'"), "GET .*deleteAll"),
    pressed("graphql_in_odd_parameters", asked(*(f"'{name}=' + encodeURIComponent({text!r})" for name, text in (
        ("q%75ery", MUTATION), ("query[]", MUTATION), ("operations", '{"query": "' + MUTATION + '"}'), ("batch", '[{"query": "' + MUTATION + '"}]'),
        ("query", '{"query": "' + MUTATION + '"}')))), "GET .*deleteAll"),
    # GraphQL by POST, where queries are sent
    posted("graphql_in_a_batch", "JSON.stringify([{query: '{ a }'}, {query: '" + MUTATION + "'}])"),
    posted("graphql_in_address_and_body", "JSON.stringify({query: '{ a }'})", query="?query=mutation%7BdeleteAll%7D"),
    posted("graphql_of_two_keys", "'{\"query\": \"" + MUTATION + "\", \"query\": \"{ a }\"}'"),
    posted("graphql_by_hash_alone", "JSON.stringify({operationName: 'DeleteAll', extensions: {persistedQuery: {version: 1, sha256Hash: 'a'.repeat(64)}}})"),
    posted("graphql_in_another_charset", "new Uint8Array([...'" + MUTATION + "'].flatMap(c => [c.charCodeAt(0), 0]))", kind="application/graphql; charset=utf-16le"),
    posted("graphql_in_a_form", "new URLSearchParams([['query', '" + MUTATION + "'], ['query', '{ a }']])", kind="application/x-www-form-urlencoded"),
)  # fmt: skip
PLAIN = posted("graphql_query", "JSON.stringify({query: '{ a }'})")
"""A query that is sent, so that the others of its kind are no attacks on a closed door."""
