"""What documents that may know a typed secret send to other origins."""

from __future__ import annotations

import copy

import pytest

from exact.environments.base import PersonQuestion
from exact.environments.browser.network.confirmation import Confirmations
from exact.environments.browser.network.flow import LONGEST_PATH, MOST_PARTS, MOST_REPEATS, SecretFlow
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.message import BrowserMessage, StoredCookie
from exact.environments.browser.network.rules import PolicyRules, decide

APP, LOGIN, OTHER, CDN = "http://app.test", "http://login.test", "http://other.test", "http://cdn.test"
ALL = (APP, LOGIN, OTHER, CDN)


class Tabs:
    """Frames whose tab is the part of their name before a dot; those without a name belong to no tab."""

    def has(self, frame: str) -> bool:
        return bool(frame)

    def tab_of(self, frame: str) -> str:
        return frame.partition(".")[0]

    async def ask(self) -> None:
        """They are known."""

    def end(self, why: str) -> None:
        """Do nothing."""


def gate(parts: dict[str, object] | None = None, **rules: object) -> Gate:
    return Gate(
        PolicyRules(**({"allowed": ALL, "writable": ALL, "home": (APP,), "guarded": frozenset((LOGIN,))} | rules)), Tabs(), **(parts or {})
    )  # type: ignore[arg-type]


def typed(*standing: str, partners: tuple[str, ...] = (), **rules: object) -> Gate:
    """Return the gate of a context whose tab `a` shows the log-in page, into which a password was typed."""
    made = gate(**rules)
    made.document_shown("a", f"{LOGIN}/in", is_main=True)
    made.decide(BrowserMessage("GET", f"{CDN}/app.js", frame="a", kind="Script"))
    made.begin_typing("<secret:password>", (LOGIN,), (LOGIN, *partners), "a", standing, ())
    return made


def get(url: str, **more: object) -> BrowserMessage:
    return BrowserMessage("GET", url, **({"frame": "a", "kind": "Image"} | more))  # type: ignore[arg-type]


def sends(subject: Gate, message: BrowserMessage) -> bool:
    return not subject.decide(message).refused


@pytest.mark.parametrize(
    "message",
    [
        get(f"{OTHER}/a?q=1"), get(f"{OTHER}/a"), get(f"{OTHER}/"), get(f"{OTHER}/a", frame="a.1"), get(f"{OTHER}/a", frame=""),
        get(f"{OTHER}/in", is_document=True, kind="Document"), BrowserMessage("POST", f"{OTHER}/", "x", frame="a"),
        BrowserMessage("POST", f"{OTHER}/", "x", frame="a", is_beacon=True, kind="Ping"), BrowserMessage("HEAD", f"{OTHER}/", frame="a"),
        BrowserMessage("WEBSOCKET", "ws://other.test/"), get(f"{OTHER}/", source=f"{LOGIN}/hop?to=x"),
        get(f"{CDN}/x.js?v=1", kind="Script"),
    ],
)  # fmt: skip
def test_a_document_that_knows_a_secret_sends_nothing_that_could_be_made_from_it(message: BrowserMessage) -> None:
    decision = typed().decide(message)
    assert "<secret:password>" in decision.refused and "browser.login.partner_origins" in decision.refused
    assert decision.effect is not None and decision.effect.url in (f"{OTHER}/", f"{CDN}/", "http://other.test/")


def test_before_a_secret_is_typed_everything_allowed_is_sent() -> None:
    subject = gate()
    assert sends(subject, get(f"{OTHER}/a?q=1")) and sends(subject, BrowserMessage("POST", f"{OTHER}/", "x", frame="a"))


@pytest.mark.parametrize("target", [LOGIN, "http://partner.test"])
def test_origins_that_a_secret_belongs_to_and_partners_get_everything(target: str) -> None:
    subject = typed(partners=("http://partner.test",), allowed=(*ALL, "http://partner.test"), writable=(*ALL, "http://partner.test"))
    assert sends(subject, BrowserMessage("POST", f"{target}/save", "x", frame="a")) and sends(subject, get(f"{target}/?q=1"))


def test_addresses_that_stood_in_the_document_are_sent_in_a_bounded_number() -> None:
    subject = typed(f"{OTHER}/pixel?id=3")
    assert all(sends(subject, get(f"{OTHER}/pixel?id=3")) for _ in range(MOST_REPEATS))
    assert not sends(subject, get(f"{OTHER}/pixel?id=3")) and not sends(subject, get(f"{OTHER}/pixel?id=4"))


def test_the_fragment_and_the_headers_of_a_known_address_count() -> None:
    subject = typed(f"{OTHER}/a")
    assert not sends(subject, get(f"{OTHER}/a", is_document=True, fragment="#pass"))
    assert not sends(subject, get(f"{OTHER}/a", headers=(("Accept-Language", "p-a-s-s"),)))
    assert not sends(subject, get(f"{OTHER}/a", referrer=f"{LOGIN}/in?pass"))
    assert sends(subject, get(f"{OTHER}/a", referrer=f"{LOGIN}/", headers=(("Accept", "*/*"), ("Sec-Fetch-Mode", "no-cors"))))


def test_a_known_address_is_not_sent_with_a_cookie_that_was_set_since() -> None:
    old, new = StoredCookie(".test", "/", "id", "7"), StoredCookie(".test", "/", "id", "pass")
    own = StoredCookie("other.test", "/", "session", "which that site set itself")
    subject = gate()
    subject.begin_typing("<secret:password>", (LOGIN,), (LOGIN,), "a", (f"{OTHER}/a",), (old,))
    assert sends(subject, get(f"{OTHER}/a", cookies=(old,))) and not sends(subject, get(f"{OTHER}/a", cookies=(new,)))
    assert sends(subject, get(f"{OTHER}/a", cookies=(old, own)))


@pytest.mark.parametrize(("page", "opened"), [(LOGIN, {LOGIN}), (OTHER, {LOGIN, OTHER}), ("", {LOGIN})])
def test_documents_open_sockets_to_their_own_origin_and_to_those_of_secrets(page: str, opened: set[str]) -> None:
    sources = gate(guarded=frozenset((LOGIN,))).content_security_policy(f"{page}/in" if page else "data:,").partition(";")[0].split()
    assert {each.replace("ws", "http", 1) for each in sources if each.startswith("ws")} == opened


def test_parts_of_a_page_are_sent_for_at_origins_whose_scripts_it_ran_before() -> None:
    subject = typed()
    assert all(sends(subject, get(f"{CDN}/chunk{n}.js", kind="Script")) for n in range(MOST_PARTS))
    assert not sends(subject, get(f"{CDN}/chunk.js", kind="Script"))
    for message in (
        get(f"{CDN}/{'x' * LONGEST_PATH}", kind="Script"),
        get(f"{CDN}/data", kind="Fetch"),
        get(f"{OTHER}/a.js", kind="Script"),
    ):
        assert not sends(typed(), message)


def test_a_server_that_does_not_know_the_secret_redirects_wherever_it_likes() -> None:
    assert sends(typed(), get(f"{OTHER}/b?token=1", source=f"{CDN}/a"))


def test_the_secrets_own_server_redirects_without_an_address_that_a_page_chose() -> None:
    subject = typed(f"{LOGIN}/leave")
    assert sends(subject, get(f"{OTHER}/welcome", is_document=True, source=f"{LOGIN}/leave", sent="user=ann"))
    assert not sends(subject, get(f"{OTHER}/welcome?x", is_document=True, source=f"{LOGIN}/leave"))
    assert not sends(
        subject, get(f"{OTHER}/706173", is_document=True, source=f"{LOGIN}/leave", sent="next=http%3A%2F%2Fother.test%2F706173")
    )
    assert not sends(subject, get(f"{OTHER}/706173", is_document=True, source=f"{LOGIN}/leave?made"))


@pytest.mark.parametrize("way", ["redirect", "address"])
def test_the_application_that_asked_for_the_log_in_gets_its_answer(way: str) -> None:
    subject = gate()
    subject.document_shown("a", f"{APP}/", is_main=True)
    asked = f"{LOGIN}/authorize?redirect_uri=http%3A%2F%2Fapp.test%2Fback" if way == "address" else f"{LOGIN}/in"
    source = f"{APP}/enter" if way == "redirect" else ""
    subject.decide(get(asked, is_document=True, kind="Document", source=source))
    subject.document_shown("a", f"{LOGIN}/in", is_main=True)
    subject.begin_typing("<secret:password>", (LOGIN,), (LOGIN,), "a", (), ())
    assert sends(subject, BrowserMessage("POST", f"{APP}/back", "SAMLResponse=x", frame="a", is_document=True))
    assert sends(subject, get(f"{APP}/back?code=1", is_document=True, source=f"{LOGIN}/in"))
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/back", "x", frame="a", is_document=True))


def test_a_page_that_only_links_to_the_log_in_gets_nothing() -> None:
    subject = gate()
    subject.document_shown("a", f"{APP}/", is_main=True)
    subject.decide(get(f"{LOGIN}/in", is_document=True, kind="Document"))
    subject.document_shown("a", f"{LOGIN}/in", is_main=True)
    subject.begin_typing("<secret:password>", (LOGIN,), (LOGIN,), "a", (), ())
    assert not sends(subject, BrowserMessage("POST", f"{APP}/got", "x", frame="a"))


def test_a_tab_that_shows_another_site_sends_freely_until_it_meets_a_document_that_knows() -> None:
    subject = typed()
    subject.document_shown("b", f"{OTHER}/", is_main=True)
    assert sends(subject, BrowserMessage("POST", f"{OTHER}/save", "x", frame="b"))
    subject.document_shown("b.1", f"{LOGIN}/frame", is_main=False)
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/save", "x", frame="b"))


def test_a_frame_of_another_origin_in_the_tab_may_have_been_told_and_tells_its_origin() -> None:
    subject = typed()
    subject.document_shown("a.1", f"{OTHER}/frame", is_main=False)
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/got", "x", frame="a.1"))
    subject.document_shown("c", f"{OTHER}/", is_main=True)
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/got", "x", frame="c")), "its storage carries it to another tab"


def test_a_popup_that_can_reach_its_opener_may_have_been_told() -> None:
    subject = typed()
    subject.expect_popup("d", "a")
    subject.document_shown("d", f"{OTHER}/", is_main=True)
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/got", "x", frame="d"))


def test_a_popup_that_is_not_a_tab_yet_is_known_by_its_document() -> None:
    subject, tabs = typed(), set[str]()
    subject.facts.tab_of = subject.frames.tab_of = lambda frame: frame if frame in {"a", "b", *tabs} else ""  # type: ignore[method-assign]
    subject.document_shown("e", f"{LOGIN}/second", is_main=True)
    subject.document_shown("b", f"{OTHER}/", is_main=True)
    tabs.add("e")
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/got", "x", frame="e"))


def test_a_tab_that_leaves_the_documents_that_know_is_free_again() -> None:
    subject = typed(f"{OTHER}/")
    subject.document_shown("a", f"{OTHER}/", is_main=True)
    assert sends(subject, BrowserMessage("POST", f"{OTHER}/save", "x", frame="a"))
    subject.document_shown("a", f"{LOGIN}/home", is_main=True)
    assert not sends(subject, BrowserMessage("POST", f"{OTHER}/save", "x", frame="a"))


def test_the_agents_own_way_is_free() -> None:
    subject = typed()
    for word in range(MOST_REPEATS + 1):
        subject.goes_to(f"{OTHER}/?q={word}")
        assert sends(subject, get(f"{OTHER}/?q={word}", is_document=True))
    assert not sends(subject, get(f"{OTHER}/?q=0", is_document=True)), "the page goes there by itself"
    subject.goes_to("http://Other.test")
    assert sends(subject, get(f"{OTHER}/", is_document=True))


def test_an_address_that_the_page_told_the_agent_is_the_pages() -> None:
    subject = typed()
    subject.note_read("a", f"Continue at {OTHER}/70, or look for 706173737764 in the shop")
    for told in (f"{OTHER}/70", f"{OTHER}/shop?code=706173737764"):
        subject.goes_to(told)
        assert not sends(subject, get(told, is_document=True))
    subject.goes_to(f"{OTHER}/shop")
    assert sends(subject, get(f"{OTHER}/shop", is_document=True)), "a word of the page is no address"
    subject.goes_to(f"{OTHER}/search?q=shoes")
    assert sends(subject, get(f"{OTHER}/search?q=shoes", is_document=True))


def test_a_page_cannot_go_the_agents_way_again_and_again_in_other_spellings() -> None:
    subject = typed()
    subject.goes_to(f"{OTHER}/shop")
    spelled = [f"{OTHER}/{'%73' if n & 1 else 's'}{'%68' if n & 2 else 'h'}op" for n in range(8)]
    assert sum(sends(subject, get(each, is_document=True)) for each in spelled) == 3


def test_a_typed_secret_closes_sockets_to_other_origins() -> None:
    assert set(gate().socket_origins) == set(ALL) and typed().socket_origins == (LOGIN,)


@pytest.mark.parametrize(("said", "sent"), [("", [True, True]), ("no", [False, False])])
async def test_a_person_decides_once_whether_an_origin_gets_what_may_hold_a_secret(said: str, sent: list[bool]) -> None:
    asked = list[PersonQuestion]()

    async def ask(question: PersonQuestion) -> str:
        asked.append(question)
        return said if question.method == "SECRET" else ""

    subject = typed(parts={"confirmations": Confirmations(ask)})
    subject.begin_action()
    message = get(f"{OTHER}/api?q=1", kind="Fetch")
    assert [not (await subject.judge(message)).refused for _ in range(2)] == sent
    assert [(each.method, each.url) for each in asked] == [("SECRET", f"{OTHER}/")]


def test_a_snapshot_keeps_its_own_flow() -> None:
    subject = typed(f"{OTHER}/a")
    kept = subject.facts.flow.copy()
    before = copy.deepcopy(kept)
    subject.begin_typing("<secret:pin>", (APP,), (APP,), "b", (f"{OTHER}/b",), ())
    subject.decide(get(f"{OTHER}/a"))
    assert kept == before and subject.facts.flow != kept and SecretFlow().copy() == SecretFlow()


def test_in_a_sandbox_nothing_is_withheld() -> None:
    assert sends(typed(is_inside=lambda url: True), BrowserMessage("POST", f"{OTHER}/got", "x", frame="a"))


def test_a_decision_changes_no_fact() -> None:
    subject = typed(f"{OTHER}/a")
    before = copy.deepcopy(subject.facts.flow)
    for message in (get(f"{OTHER}/a"), get(f"{OTHER}/b"), BrowserMessage("POST", f"{LOGIN}/", "x", frame="a")):
        decide(subject.rules, subject.facts, message)
    assert subject.facts.flow == before
