"""Which reads a request policy stops because they are presumed to write."""

from __future__ import annotations

import pytest

from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.harmless import HarmlessRequests
from exact.environments.browser.network.message import BrowserMessage
from tests.environments.browser.network.test_harmless import SITE, gate


def policy(*, sends: bool = False, presumes: bool = True, **declared: tuple[str, ...]) -> Gate:
    return gate(sends=sends, harmless=HarmlessRequests(**declared), presumes=presumes)


def get(path: str, kind: str = "Document", **more: object) -> BrowserMessage:
    return BrowserMessage("GET", SITE + path, is_document=kind == "Document", kind=kind, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["Document", "XHR", "Fetch", "EventSource", "Ping", "Other", "Image"])
def test_a_get_of_an_action_that_is_presumed_to_write_is_stopped_and_judged_as_a_write(kind: str) -> None:
    subject = policy()
    subject.begin_action(presumption='link "Delete" says so')
    assert subject.decide(get("/item/3", kind)).refused
    decision = subject.decide(get("/item/3", kind))
    assert decision.effect is not None and decision.effect.is_blocked and "Delete" in decision.effect.detail


@pytest.mark.parametrize(("path", "kind"), [("/a.js", "Script"), ("/a.css", "Stylesheet"), ("/a.png", "Image"), ("/f.woff2", "Font")])
def test_the_parts_of_a_page_are_sent_all_the_same(path: str, kind: str) -> None:
    subject = policy()
    subject.begin_action(presumption="a button")
    assert not subject.decide(get(path, kind)).refused


def test_what_a_page_asks_for_by_itself_is_no_part_of_the_action() -> None:
    subject = policy()
    assert not subject.decide(get("/poll?n=1", "XHR")).refused, "before any action"
    subject.begin_action(presumption="a button")
    assert not subject.decide(get("/poll?n=2", "XHR")).refused and subject.decide(get("/buy?n=2", "XHR")).refused


def test_an_address_is_enough_where_nothing_was_presumed_of_the_action() -> None:
    subject = policy()
    subject.begin_action()
    assert subject.decide(get("/item/3/delete", "XHR")).refused and not subject.decide(get("/item/3")).refused
    assert subject.decide(get("/graphql?query=mutation%7Bbuy%7Bid%7D%7D", "XHR")).refused
    assert subject.decide(get("/item/3?_method=DELETE")).refused
    assert subject.decide(get("/item/3", "XHR", overrides=("DELETE",))).refused


def test_a_site_declares_what_its_words_do_not_say() -> None:
    subject = policy(reads=("GET .*/delete/?$",), writes=("GET .*/touch",))
    subject.begin_action()
    assert not subject.decide(get("/pages/3/delete/")).refused and subject.decide(get("/touch?id=4", "XHR")).refused


def test_a_commit_sends_it_and_counts_it_as_a_write_once() -> None:
    subject = policy(sends=True)
    subject.begin_action(presumption="a link")
    first, second = subject.decide(get("/item/3")), subject.decide(get("/more", "XHR"))
    assert not first.refused and first.effect is not None and first.effect.is_write
    subject.log.record_write("1", first.effect, get("/item/3"))
    assert subject.decide(get("/more", "XHR")).effect is None and second.effect is not None


def test_nothing_is_presumed_where_everything_is_undone() -> None:
    subject = policy(sends=True, presumes=False)
    subject.begin_action(presumption="a link")
    assert subject.decide(get("/item/3/delete")).effect is None


def test_a_get_that_writes_by_its_parameters_writes_everywhere() -> None:
    subject = policy(sends=True, presumes=False)
    for path in ("/item?_method=delete", "/graphql?query=mutation%7Bbuy%7Bid%7D%7D"):
        effect = subject.decide(get(path, "XHR")).effect
        assert effect is not None and effect.is_write
