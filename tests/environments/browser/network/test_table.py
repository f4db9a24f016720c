"""One table: by which way, at which moment and by which rule something leaves a browser. Each cell has an answer."""

from __future__ import annotations

from typing import get_args

import pytest

from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.message import SOCKET, BrowserMessage, Channel
from exact.environments.browser.network.rules import PolicyRules

from .test_flow import Tabs

SITE, OTHER, DENIED, FOREIGN = "http://site.test", "http://other.test", "http://denied.test", "http://foreign.test"
MOMENTS = ("log-in", "commit", "simulation", "evaluation")
WAYS: dict[Channel, BrowserMessage] = {
    "page": BrowserMessage("GET", "", is_document=True, kind="Document"),
    "form": BrowserMessage("POST", "", "a=1", is_document=True, kind="Document"),
    "request": BrowserMessage("GET", "", kind="Fetch"),
    "upload": BrowserMessage("POST", "", "data", kind="Fetch"),
    "part": BrowserMessage("GET", "", kind="Image"),
    "beacon": BrowserMessage("POST", "", "data", is_beacon=True, kind="Ping"),
    "report": BrowserMessage("POST", "", "data", is_report=True, kind="CSPViolationReport"),
    "redirect": BrowserMessage("GET", "", is_document=True, kind="Document", source=f"{SITE}/hop"),
    "socket": BrowserMessage(SOCKET, ""),
}
WRITES = {"form", "upload", "beacon", "report", "socket"}
"""Ways that change something at the site. A search does not send them, the log-in and a commit do."""


def gate(moment: str) -> Gate:
    """Return a gate at a moment, with a password that was typed into a page of the site."""
    allowed = (SITE, OTHER, DENIED)
    sent = () if moment == "simulation" else allowed
    deny, guarded = DenyList((DENIED,)), frozenset((SITE,))
    made = Gate(PolicyRules(allowed=allowed, writable=sent, own=(SITE,), deny=deny, guarded=guarded, presumes=True), Tabs())
    made.begin_action()
    made.document_shown("a", f"{SITE}/in", is_main=True)
    made.is_judged = moment == "evaluation"
    if moment == "log-in":
        made.begin_login_action(f"{SITE}/in")
    made.begin_typing("<secret:password>", (SITE,), (SITE,), "a", (), ())
    return made


def answer(moment: str, way: Channel, target: str) -> bool:
    """Return whether a message is sent."""
    message = WAYS[way]._replace(url=f"{target}/x".replace("http", "ws" if way == "socket" else "http", 1), frame="a")
    return not gate(moment).decide(message).refused


def test_each_way_has_a_row_and_is_told_by_its_message() -> None:
    assert set(WAYS) == set(get_args(Channel))
    assert {way: message.channel for way, message in WAYS.items()} == {way: way for way in WAYS}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_leaves_for_origins_off_the_list_on_the_deny_list_or_without_a_right_to_a_secret(moment: str, way: Channel) -> None:
    assert [answer(moment, way, target) for target in (FOREIGN, DENIED, OTHER)] == [False, False, False]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_the_site_itself_gets_reads_always_and_writes_unless_a_search_simulates(moment: str, way: Channel) -> None:
    assert answer(moment, way, SITE) == (way not in WRITES or moment != "simulation")
