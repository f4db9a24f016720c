"""Recorded traffic: what is written has no credentials, and answers again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from exact.environments.browser import scrub
from exact.environments.browser.tape import Tape
from exact.errors import EnvironmentError_

SECRET = "hunter2hunter2"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "sent",
    [
        f"user=ann&password={SECRET}",
        f"csrf_token={SECRET}&a=b",
        f'{{"user": "ann", "newPassword": "{SECRET}", "n": 1}}',
        f'--b\r\nContent-Disposition: form-data; name="passwd"\r\n\r\n{SECRET}\r\n--b--\r\n',
        f"jwt={TOKEN}",
    ],
)
def test_what_a_page_sends_has_no_credentials_left(sent: str) -> None:
    assert SECRET not in scrub.form(sent) and TOKEN not in scrub.form(sent) and scrub.GONE in scrub.form(sent)


@pytest.mark.parametrize(
    "body",
    [
        f'{{"access_token": "{SECRET}", "name": "kept"}}',
        f'<p>kept<input type=password value="{SECRET}">',
        f"<p>kept<input type='hidden' name='csrfmiddlewaretoken' value='{SECRET}'>",
        f'<p>kept<meta name="csrf-token" content="{SECRET}">',
        f"<p>kept<script>start('{TOKEN}')</script>",
    ],
)
def test_what_a_server_answers_has_no_credentials_left(body: str) -> None:
    text = scrub.body(body.encode(), "text/html; charset=utf-8").decode()
    assert SECRET not in text and TOKEN not in text and "kept" in text


def test_headers_lose_credentials_and_cookies_their_values() -> None:
    given = [
        ("Set-Cookie", f"sid={SECRET}; Path=/; HttpOnly"),
        ("X-Auth-Token", SECRET),
        ("Location", f"/?token={SECRET}&a=1"),
        ("Age", "1"),
    ]
    assert list(scrub.headers(given)) == [
        ("Set-Cookie", "sid=scrubbed; Path=/; HttpOnly"),
        ("Location", "/?token=scrubbed&a=1"),
        ("Age", "1"),
    ]


def test_what_is_no_text_and_what_is_no_secret_stays() -> None:
    assert scrub.body(SECRET.encode(), "image/png") == SECRET.encode()
    page = "<input name=note value=hello> passing tokens around: pass=ed"
    assert scrub.body(page.encode(), "text/html") == page.encode()
    assert scrub.form("note=hello&size=3") == "note=hello&size=3"


def test_equal_requests_are_answered_in_order_though_their_credentials_differ(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    tape = Tape(path, "record")
    for number, secret in enumerate((SECRET, "another")):
        request = {"method": "POST", "url": f"http://shop.test/in?token={secret}", "postData": f"user=ann&password={secret}"}
        tape.record(request, 200 + number, [("Content-Type", "text/plain")], b"%d" % number)
    assert SECRET not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    replayed, request = Tape(path, "replay"), {"method": "POST", "url": "http://shop.test/in?token=x", "postData": "user=ann&password=y"}
    answers = [replayed.answer(request) for _ in range(3)]
    assert [(each.status, each.body) for each in answers if each] == [(200, b"0"), (201, b"1"), (201, b"1")]
    assert replayed.answer(request | {"postData": "user=bob&password=y"}) is None


@pytest.mark.parametrize("text", [None, '{"method": '])
def test_a_file_that_is_missing_or_torn_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "traffic.jsonl"
    if text:
        path.write_text(text)
    with pytest.raises(EnvironmentError_, match=r"traffic\.jsonl.*: record it"):
        Tape(path, "replay")
