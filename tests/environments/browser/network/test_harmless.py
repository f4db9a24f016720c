"""Which requests count as writes of the agent."""

from __future__ import annotations

import json

import pytest

from exact.environments.browser.network.gate import Gate, writable
from exact.environments.browser.network.harmless import HarmlessRequests, ends_session, graphql_operations, request_kind
from exact.environments.browser.network.message import BrowserMessage
from exact.environments.browser.network.rules import PolicyRules
from exact.errors import UsageError

SITE = "http://wiki.test"


class NoFrames:
    def has(self, frame: str) -> bool:
        return False

    def tab_of(self, frame: str) -> str:
        return frame

    async def ask(self) -> None:
        """There are none."""

    def end(self, why: str) -> None:
        """Do nothing."""


def gate(*more: str, sends: bool = False, parts: dict[str, object] | None = None, **rules: object) -> Gate:
    """Return the gate of a context that may read at the site, and at `more` origins. `parts`: further parts of the gate."""
    allowed = (SITE, *more)
    made = PolicyRules(allowed=allowed, writable=writable(allowed, writes=sends), **rules)  # type: ignore[arg-type]
    return Gate(made, NoFrames(), **(parts or {}))  # type: ignore[arg-type]


def policy(*, sends: bool = False, **declared: tuple[str, ...]) -> Gate:
    return gate(sends=sends, harmless=HarmlessRequests(**declared), learns=True)


def post(path: str, body: str = "", **more: object) -> BrowserMessage:
    return BrowserMessage("POST", SITE + path, body, **more)  # type: ignore[arg-type]


def counts(subject: Gate, request: BrowserMessage) -> bool:
    """Whether a request in the middle of an action is a write of the agent's."""
    decision = subject.decide(request)
    if decision.effect is not None:
        subject.log.record(decision.effect, request)
    return any(effect.is_blocked or effect.is_write for effect in subject.take_effects())


def graphql(query: str) -> str:
    return json.dumps({"operationName": "x", "query": query, "variables": {"n": 1}})


@pytest.mark.parametrize(
    ("query", "operations"),
    [
        ("query Items { items { id } }", {"query"}),
        ("{ items { id } }", {"query"}),
        ("fragment F on Item { id } mutation Save { save(id: 1) { id } }", {"mutation"}),
        ('query Find { items(text: "} mutation Save {") { id } }', {"query"}),
        ("# mutation\nsubscription S { changed }", {"subscription"}),
    ],
)
def test_graphql_says_what_it_does(query: str, operations: set[str]) -> None:
    assert graphql_operations(graphql(query)) == operations
    assert graphql_operations(json.dumps([{"query": query}])) == operations


def test_a_stored_operation_is_a_write_unless_a_pattern_names_it() -> None:
    stored = json.dumps({"operationName": "GetCart", "extensions": {"persistedQuery": {"sha256Hash": "00"}}})
    assert HarmlessRequests(reads=("/graphql",)).nature("POST", f"{SITE}/graphql", stored) == "write"
    assert HarmlessRequests(reads=("/graphql GetCart$",)).nature("POST", f"{SITE}/graphql", stored) == "read"
    assert HarmlessRequests(harmless=("/graphql GetCart$",)).nature("POST", f"{SITE}/graphql", '{"documentId": "7"}') == "write"


def test_each_of_two_queries_in_one_body_or_beside_it_counts() -> None:
    twice = '{"query": "mutation { a }", "query": "{ a }"}'
    assert HarmlessRequests(harmless=("/graphql",)).nature("POST", f"{SITE}/graphql", twice) == "write"
    assert HarmlessRequests(harmless=("/graphql",)).nature("POST", f"{SITE}/graphql?query=mutation%7Ba%7D", graphql("{ a }")) == "write"


def test_graphql_in_a_form_counts() -> None:
    assert HarmlessRequests(harmless=("/graphql",)).nature("POST", f"{SITE}/graphql", "query=mutation%7Ba%7D") == "write"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_page_that_asks_for_another_method_by_a_header_as_it_loads_writes(method: str) -> None:
    decision = policy().decide(BrowserMessage(method, f"{SITE}/items/3", overrides=("GET", "DELETE")))
    assert decision.refused and decision.effect is not None and decision.effect.is_blocked


def test_what_is_no_graphql_has_no_operations() -> None:
    assert not graphql_operations("query=shoes") and not graphql_operations('{"query": "shoes"}') and not graphql_operations("{broken")


@pytest.mark.parametrize(
    "path",
    [
        "/logout",
        "/users/sign_out",
        "/wp-login.php?action=logout&_wpnonce=1",
        "/index.php?title=Special:UserLogout&returnto=A",
        "/auth/log-off",
    ],
)
def test_a_get_that_logs_out_writes(path: str) -> None:
    assert ends_session(SITE + path)
    assert counts(policy(), BrowserMessage("GET", SITE + path))


@pytest.mark.parametrize("path", ["/blog/logouts-of-the-year", "/shop/catalog/outfit", "/signoffs", "/?q=blogoff"])
def test_a_get_whose_name_is_only_alike_reads(path: str) -> None:
    assert not ends_session(SITE + path)


def test_patterns_say_what_a_method_does_not() -> None:
    subject = policy(harmless=("/draft$", "/graphql"), reads=("^POST .*/search",), writes=("^GET .*[?&]delete=",))
    subject.begin_action()
    assert not counts(subject, post("/draft", "text=a")) and not counts(subject, post("/search", "q=a"))
    assert counts(subject, BrowserMessage("GET", SITE + "/item?delete=3")) and counts(subject, post("/save", "text=a"))
    assert not counts(subject, post("/graphql", graphql("query A { a }")))
    assert counts(subject, post("/graphql", graphql("mutation A { a }"))), "one address for both: a mutation is never harmless"


def test_what_is_declared_harmless_is_not_sent_while_searching_and_what_reads_is() -> None:
    subject = policy(harmless=("/draft$", "/graphql"), reads=("/search",))
    assert subject.decide(post("/draft")).refused and subject.decide(post("/draft")).pretends
    assert not subject.decide(post("/search")).refused and not subject.decide(post("/graphql", graphql("{ a }"))).refused
    assert not policy(sends=True, harmless=("/draft$",)).decide(post("/draft")).refused, "the live environment sends it"


def test_an_invalid_pattern_is_named() -> None:
    with pytest.raises(UsageError, match=r"invalid pattern '\(' in harmless"):
        HarmlessRequests(harmless=("(",))


def test_what_a_page_sends_before_any_action_is_no_write_of_the_agent() -> None:
    subject = policy()
    assert not counts(subject, post("/prefs", "theme=dark")), "it is blocked all the same, but not the agent's"
    subject.begin_action()
    assert not counts(subject, post("/prefs", "theme=light")) and counts(subject, post("/save", "theme=light"))


def test_what_a_page_repeats_while_nobody_acts_is_learned_and_what_comes_late_once_is_not() -> None:
    subject = policy()
    subject.begin_action()
    assert not subject.take_effects()  # the action has ended
    subject.decide(post("/late", "text=a"))
    for n in (1, 2):
        subject.decide(post("/ping", json.dumps({"n": n, "event": "tick"})))
    subject.begin_action()
    assert not counts(subject, post("/ping", json.dumps({"n": 3, "event": "tick"})))
    subject.begin_action()
    assert counts(subject, post("/late", "text=ab"))
    assert counts(subject, post("/ping", json.dumps({"n": 4, "event": "purchase"}))), "it says that it does something else"


@pytest.mark.parametrize("sends", [True, False])
def test_a_blocked_request_that_is_tried_again_stays_the_agents(sends: bool) -> None:
    subject = policy(sends=sends)
    subject.begin_action()
    assert counts(subject, post("/save", "text=a"))
    for _ in range(3):
        subject.decide(post("/save", "text=a"))
    subject.begin_action()
    assert counts(subject, post("/save", "text=b")) is not sends, "where it was sent, nothing is tried again"


def test_what_a_new_document_sends_by_itself_is_no_write_of_the_agent() -> None:
    subject = policy()
    subject.begin_action()
    subject.document_came("F", f"{SITE}/list#top")
    assert not counts(subject, post("/views", frame="F", referrer=f"{SITE}/list"))
    subject.begin_action()
    assert counts(subject, post("/save", frame="F", referrer=f"{SITE}/list")), "then somebody acted in it"


@pytest.mark.parametrize("referrer", ["", f"{SITE}/", f"{SITE}/list"])
def test_a_document_may_tell_less_of_its_address(referrer: str) -> None:
    subject = policy()
    subject.begin_action()
    subject.document_came("F", f"{SITE}/list")
    assert not counts(subject, post("/views", frame="F", referrer=referrer))


@pytest.mark.parametrize("leaves", [True, False])
def test_a_beacon_of_a_page_that_is_left_is_no_write_of_the_agent(leaves: bool) -> None:
    subject = policy()
    subject.begin_action()
    if leaves:
        subject.decide(BrowserMessage("GET", f"{SITE}/list", frame="F", is_document=True))
    beacon = post("/draft", frame="F", referrer=f"{SITE}/edit", is_beacon=True)
    assert subject.decide(beacon).refused and counts(subject, beacon) is not leaves


def test_a_form_that_sends_itself_is_never_learned() -> None:
    subject = policy()
    assert counts(subject, post("/saml", frame="F", referrer=SITE, is_document=True))


def test_what_one_environment_learns_holds_in_the_others() -> None:
    shared = HarmlessRequests()
    one, other = (gate(harmless=shared, learns=True) for _ in range(2))
    one.decide(post("/telemetry", "{}"))
    other.begin_action()
    assert not counts(other, post("/telemetry", "{}"))


def test_where_everything_is_rolled_back_nothing_is_learned() -> None:
    subject = gate(sends=True)
    request = post("/prefs")
    decision = subject.decide(request)
    assert decision.effect is not None and decision.effect.is_write and not decision.refused


def test_a_write_to_an_origin_that_is_never_allowed_is_none_of_the_agents() -> None:
    subject = policy(sends=True)
    subject.begin_action()
    assert not counts(subject, BrowserMessage("POST", "http://ads.test/collect"))


def test_kinds_tell_purposes_apart_and_not_data() -> None:
    assert request_kind("POST", f"{SITE}/items/12", "a=1&b=2") == request_kind("POST", f"{SITE}/items/7", "b=3&a=4")
    assert request_kind("POST", f"{SITE}/api", "action=edit&text=a") != request_kind("POST", f"{SITE}/api", "action=logout&text=a")
    assert request_kind("POST", f"{SITE}/a") != request_kind("POST", f"{SITE}/b")
    assert request_kind("POST", f"{SITE}/g", graphql("query A { a }")) != request_kind("POST", f"{SITE}/g", graphql("mutation A { a }"))


def message(data: object) -> BrowserMessage:
    return BrowserMessage("WEBSOCKET", "ws://wiki.test/feed", json.dumps(data))


def test_a_message_on_a_socket_is_a_write_unless_the_page_sends_it_by_itself() -> None:
    subject = policy(sends=True)
    subject.record_message(message({"type": "hello"}))
    assert not any(effect.is_write for effect in subject.take_effects())
    subject.begin_action()
    subject.record_message(message({"type": "hello"}))
    subject.record_message(message({"type": "save", "text": "a"}))
    assert [effect.is_write for effect in subject.take_effects()] == [False, True]
