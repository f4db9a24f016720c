"""What a person is shown of a request, and what an answer is bound to."""

from __future__ import annotations

import asyncio

import pytest

from exact.environments.base import PersonQuestion
from exact.environments.browser.network.confirmation import Confirmations, shown_fields
from exact.environments.browser.network.message import BrowserMessage
from exact.environments.browser.network.rules import Allow
from tests.environments.browser.network.test_harmless import SITE, gate

MULTIPART = '--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nhello\r\n--x\r\n' + (
    'Content-Disposition: form-data; name="photo"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\x00\x01\r\n--x--'
)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("name=Ann+B&password=hunter2", {"name": "Ann B", "password": "(not shown)"}),
        ('{"order": {"id": 3, "cardNumber": "4111"}}', {"order.id": "3", "order.cardNumber": "(not shown)"}),
        (MULTIPART, {"text": "hello", "photo": "file a.png"}),
        ("plain text", {"body": "plain text"}),
        ("", {}),
    ],
)
def test_fields_are_shown_with_secrets_masked(body: str, shown: dict[str, str]) -> None:
    assert shown_fields(body, str) == shown


def test_known_secrets_are_masked_in_any_field() -> None:
    assert shown_fields("note=my+word+swordfish", lambda text: text.replace("swordfish", "<word>")) == {"note": "my word <word>"}


class Asked:
    def __init__(self, *answers: str) -> None:
        self.answers, self.questions = list(answers), list[PersonQuestion]()

    async def __call__(self, question: PersonQuestion) -> str:
        self.questions.append(question)
        await asyncio.sleep(0)
        return self.answers.pop(0)


async def test_a_no_holds_for_the_same_request_until_the_agent_acts_again_and_a_yes_for_one_request() -> None:
    asked = Asked("no", "", "")
    subject = Confirmations(asked)
    send = lambda body: subject.refusal("POST", SITE, body, str, by_itself=False)  # noqa: E731
    assert await send("a=1") == "no" and await send("a=1") == "no" and len(asked.questions) == 1
    assert await send("a=2") == "" and len(asked.questions) == 2, "another body is another request"
    subject.begin_action()
    assert await send("a=1") == "" and len(asked.questions) == 3
    assert len({question.digest for question in asked.questions}) == 2


async def test_what_a_page_sends_by_itself_is_not_sent_and_nobody_is_asked() -> None:
    asked = Asked()
    policy = gate(sends=True, parts={"confirmations": Confirmations(asked)})
    request = BrowserMessage("POST", f"{SITE}/telemetry", "{}")
    decision = await policy.confirm(request, policy.decide(request))
    assert decision.refused and not asked.questions


async def test_reads_and_what_the_site_declares_harmless_need_no_yes() -> None:
    policy = gate(sends=True, parts={"confirmations": Confirmations(Asked())})
    policy.begin_action()
    request = BrowserMessage("GET", f"{SITE}/")
    assert await policy.confirm(request, policy.decide(request)) == Allow()


def test_sockets_stay_closed_while_each_write_needs_a_yes() -> None:
    assert "ws://wiki.test" in gate(sends=True).content_security_policy(SITE)
    policy = gate(sends=True, parts={"confirmations": Confirmations(Asked())})
    assert "ws:" not in policy.content_security_policy(SITE) and not policy.socket_origins
