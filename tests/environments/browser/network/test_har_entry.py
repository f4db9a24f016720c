"""Entries of a HAR: what is compared stays as it was sent, and no credential is left."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.network.har import HarExchange, Kept, body, entry

FORM, JSON = "application/x-www-form-urlencoded", "application/json; charset=utf-8"


def made(kept: Kept | None = None, **fields: Any) -> dict[str, Any]:
    return entry(HarExchange(**{"method": "GET", "url": "http://a.test/x", "started": 0.0, **fields}), kept or Kept())


def test_an_entry_has_the_parts_of_har_1_2() -> None:
    found = made(url="http://a.test/x?q=a+b&q=c", status=302, answer_headers=(("Location", "/y"), ("Content-Type", "text/html")))
    assert found["request"]["queryString"] == [{"name": "q", "value": "a b"}, {"name": "q", "value": "c"}]
    assert (found["response"]["status"], found["response"]["redirectURL"]) == (302, "/y")
    assert found["response"]["content"] == {"size": 0, "mimeType": "text/html"} and found["startedDateTime"].startswith(
        "1970-01-01T00:00:00"
    )
    assert "postData" not in found["request"]


@pytest.mark.parametrize(
    ("kind", "sent", "kept"),
    [
        (FORM, "title=a+b&password=hunter2&_csrf_token=hunter2", "title=a+b&password=scrubbed&_csrf_token=scrubbed"),
        (FORM, "user%5Bpassword%5D=hunter2&note=password%3D1", "user%5Bpassword%5D=scrubbed&note=password%3D1"),
        (JSON, '{"note": {"text": "password: hunter"}, "api_key": "hunter2", "list": [{"secret": {"a": "hunter2"}}]}', None),
        (JSON, "no JSON", "no JSON"),
        ("text/plain", "token=1", "token=1"),
    ],
)
def test_values_with_a_credentials_name_are_scrubbed_and_texts_stay(kind: str, sent: str, kept: str | None) -> None:
    found = made(method="POST", headers=(("content-type", kind),), sent=sent.encode())["request"]["postData"]
    assert found["mimeType"] == kind and "hunter2" not in found["text"]
    if kept is None:
        expected = {"note": {"text": "password: hunter"}, "api_key": "scrubbed", "list": [{"secret": "scrubbed"}]}
        assert json.loads(found["text"]) == expected
    else:
        assert found["text"] == kept


def test_parts_of_a_form_are_scrubbed_by_their_names() -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    sent = part.format("title", "a password: b") + part.format("form_token", "hunter2") + "--x--\r\n"
    found = made(method="POST", headers=(("content-type", "multipart/form-data; boundary=x"),), sent=sent.encode())
    assert "hunter2" not in str(found) and "a password: b" in found["request"]["postData"]["text"]


def test_headers_and_addresses_hold_no_credentials() -> None:
    headers = (
        ("authorization", "Bearer hunter2"),
        ("x-csrf-token", "hunter2"),
        ("cookie", "sid=hunter2"),
        ("referer", "http://a.test/?token=hunter2"),
    )
    answered = (("set-cookie", "sid=hunter2; HttpOnly\nb=hunter2"), ("location", "http://a.test/?sid=hunter2"))
    key = "0123456789abcdef" * 4
    found = made(url=f"http://ann:hunter2@a.test/admin/key/{key}/?api_key=hunter2", headers=headers, answer_headers=answered, status=302)
    assert "hunter2" not in str(found) and key not in str(found)
    assert [each["name"] for each in found["request"]["headers"]] == ["referer"]
    assert found["response"]["cookies"] == [{"name": "sid", "value": "scrubbed"}, {"name": "b", "value": "scrubbed"}]


def test_the_values_of_cookies_that_an_evaluator_names_are_kept() -> None:
    kept = Kept(cookies={"mage-messages"}.__contains__, sent_cookies={"engine"}.__contains__)
    answered = (("set-cookie", "mage-messages=%5B%5D; path=/"), ("set-cookie", "sid=hunter2"))
    found = made(kept, headers=(("Cookie", "engine=bike; sid=hunter2"),), answer_headers=answered)
    assert found["request"]["headers"] == [{"name": "Cookie", "value": "engine=bike; sid=scrubbed"}]
    assert found["response"]["cookies"] == [{"name": "mage-messages", "value": "%5B%5D"}, {"name": "sid", "value": "scrubbed"}]


def test_json_of_an_answer_is_kept_only_where_it_is_read() -> None:
    fields: dict[str, Any] = {"answer_headers": (("content-type", JSON),), "body": b'{"star_count": 3, "token": "hunter2"}'}
    assert "text" not in made(**fields)["response"]["content"]
    assert json.loads(made(Kept(json=True), **fields)["response"]["content"]["text"]) == {"star_count": 3, "token": "scrubbed"}


TEXTS = st.text(max_size=8)


@given(st.dictionaries(st.sampled_from("abc"), st.lists(TEXTS | st.integers() | st.dictionaries(st.just("d"), TEXTS), max_size=3)))
def test_json_without_a_credentials_name_keeps_its_value(value: Any) -> None:
    assert json.loads(body(json.dumps(value), JSON)) == value
