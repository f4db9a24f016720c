"""Recorded traffic: what is written has no credentials, and answers again."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from exact.environments.browser.network import scrub
from exact.environments.browser.network.recording import Recording
from exact.errors import EnvironmentFailure

SECRET = "hunter2hunter2"
NUMBER = "73911804"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "sent",
    [
        f"user=ann&password={SECRET}",
        f"csrf_token={SECRET}&a=b",
        f'{{"user": "ann", "newPassword": "{SECRET}", "n": 1}}',
        f'{{"user": "ann", "credentials": {{"key": ["{SECRET}", 1]}}}}',
        f"user=ann&password={SECRET};{SECRET}#{SECRET}",
        f'--b\r\nContent-Disposition: form-data; name="passwd"\r\n\r\n{SECRET}\r\n--b--\r\n',
        f"jwt={TOKEN}",
    ],
)
def test_recorded_requests_have_no_credentials(sent: str) -> None:
    assert SECRET not in scrub.form(sent) and TOKEN not in scrub.form(sent) and scrub.SCRUBBED in scrub.form(sent)


@pytest.mark.parametrize(
    "body",
    [
        f'{{"access_token": "{SECRET}", "name": "kept"}}',
        f'<p>kept<input type=password value="{SECRET}">',
        f"<p>kept<input type='hidden' name='csrfmiddlewaretoken' value='{SECRET}'>",
        f'<p>kept<meta name="csrf-token" content="{SECRET}">',
        f"<p>kept<script>start('{TOKEN}')</script>",
        f'{{"kept": 1, "otp": {NUMBER}, "password": true}}',
        f'{{"token": ["{SECRET}", {{"raw": [{NUMBER}]}}], "name": "kept"}}',
        f'{{"credentials": {{"key": "{SECRET}", "more": {{"a]": "{SECRET}"}}}}, "name": "kept"}}',
        f"<script>csrfToken = '{SECRET}'; name = 'kept'</script>",
        f"<script>var kept = {{\"csrf_token\": '{SECRET}', apiKey : `{SECRET}`}}</script>",
        f'<script>const token="{SECRET}",kept=1</script>',
        f"<p onclick=\"start(accessToken='{SECRET}')\">kept",
        f'<script>kept = "{{\\"csrfToken\\":\\"{SECRET}\\"}}"</script>',
        f'<div data-kept="{{&quot;csrf_token&quot;:&quot;{SECRET}&quot;}}" data-token="{SECRET}">',
        f'<a href="/kept?a=b&amp;token={SECRET}#access_token={SECRET}">',
        f"<a href='?token={SECRET}'>kept</a>",
        f"<meta http-equiv=refresh content='0; url=/kept?next=%2Fin%3Ftoken%3D{SECRET}'>",
        f'<script>open("https:\\/\\/kept.test\\/in?a=b\\u0026token={SECRET}")</script>',
    ],
)
def test_recorded_responses_have_no_credentials(body: str) -> None:
    text = scrub.body(body.encode(), "text/html; charset=utf-8").decode()
    assert SECRET not in text and TOKEN not in text and NUMBER not in text and "true" not in text and "kept" in text
    assert text == scrub.body(text.encode(), "text/html").decode(), "what was scrubbed once stays as it is"


def test_a_form_that_a_server_answers_has_no_credentials_left() -> None:
    answered = scrub.body(f"access_token={SECRET}&scope=kept".encode(), "application/x-www-form-urlencoded")
    assert answered == b"access_token=scrubbed&scope=kept"


@pytest.mark.parametrize(
    "url", ["/in#access_token={0}&state=a", "/in?next=/at?token={0}", "/in;jsessionid={0}", "/in?next=%2Fat%3Ftoken%3D{0}"]
)
def test_an_address_has_no_credentials_left(url: str) -> None:
    assert scrub.address(url.format(SECRET)) == url.format(scrub.SCRUBBED)


def test_headers_lose_credentials_and_cookies_their_values() -> None:
    given = [
        ("Set-Cookie", f"sid={SECRET}; Path=/; HttpOnly"),
        ("X-Auth-Token", SECRET),
        ("X-Access-Token", SECRET),
        ("X-Session-Id", SECRET),
        ("Location", f"/?token={SECRET}&a=1"),
        ("Refresh", f"0; url=?token={SECRET}"),
        ("Link", f'</a?token={SECRET}>; rel="next", </b?token={SECRET}>; rel=prev'),
        ("Content-Location", f"/in#access_token={SECRET}"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Age", "1"),
    ]
    assert list(scrub.headers(given)) == [
        ("Set-Cookie", "sid=scrubbed; Path=/; HttpOnly"),
        ("Location", "/?token=scrubbed&a=1"),
        ("Refresh", "0; url=?token=scrubbed"),
        ("Link", '</a?token=scrubbed>; rel="next", </b?token=scrubbed>; rel=prev'),
        ("Content-Location", "/in#access_token=scrubbed"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Age", "1"),
    ]


def test_binary_content_and_ordinary_text_stay_unchanged() -> None:
    assert scrub.body(SECRET.encode(), "image/png") == SECRET.encode()
    page = "<input name=note value=hello> passing tokens around: pass=ed"
    assert scrub.body(page.encode(), "text/html") == page.encode()
    assert scrub.form("note=hello&size=3") == "note=hello&size=3"


@pytest.mark.parametrize(
    "text",
    [
        "if (token == null) { token = next(); return token=='x' || password != \"\" }",
        "a&&b;token=f();x?token=b:c=d;const tokens=split(text,'?')",
        "type = shown ? 'password' : 'text'; kind=e?\"password\":\"text\"",
        "tokenSelector = '#in', csrfHeader='X-CSRF-Token', tokenUrl:\"/api/token\"",
        "fetch(url, {credentials: 'same-origin', authorization:\"Bearer \".concat(it)}); token = `${a}/${b}`; token = '.' + it; PWD='/'",
        '"/in?token="+t+"&a=1"; document.cookie = "token="+t+";path=/"',
        "labels = {password: 'Enter your password'}",
        '{"passage": "words", "author": "Ann", "tokenize": true, "passed": 3, "footprint": 4, "secretary": ["Bob"]}',
        '{"max_tokens": 5, "token_count": 5, "password": null, "password_errors": ["This field is required."]}',
        '{"password": ["This field is required."]}',
        '<script nonce="abc" src="/tokenize.js?v=3#top"></script><label for="password" title="pass=ed">',
        '<a href="/author?passage=3&amp;page=2">the author of a passage: "tokens"</a>',
    ],
)
def test_ordinary_text_with_such_words_stays(text: str) -> None:
    assert scrub.body(text.encode(), "text/html").decode() == text


@pytest.mark.parametrize(
    "piece",
    [
        "token",
        '"token',
        '"token":[',
        "token='",
        'token="\\',
        "?token",
        "%26token",
        "&amp;",
        '"a" ',
        "token ",
        "{",
        "/",
        '\\"',
        "<meta ",
        "'\"",
        "=\n",
        "eyJ-",
        'name="token',
        "token: ",
    ],
)
def test_scrubbing_takes_time_in_proportion(piece: str) -> None:
    text = piece * ((1 << 16) // len(piece))
    began = time.process_time()
    for scrubbed in (scrub.form, scrub.address, lambda text: scrub.body(text.encode(), "text/html")):
        scrubbed(text)
    assert time.process_time() - began < 5


def test_equal_requests_are_answered_in_order_though_their_credentials_differ(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    recording = Recording(path, "record")
    for number, secret in enumerate((SECRET, "another")):
        request = {"method": "POST", "url": f"http://shop.test/in?token={secret}", "postData": f"user=ann&password={secret}"}
        recording.record(request, 200 + number, [("Content-Type", "text/plain")], b"%d" % number)
    assert SECRET not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    replayed, request = (
        Recording(path, "replay"),
        {"method": "POST", "url": "http://shop.test/in?token=x", "postData": "user=ann&password=y"},
    )
    answers = [replayed.answer(request) for _ in range(3)]
    assert [(each.status, each.body) for each in answers if each] == [(200, b"0"), (201, b"1"), (201, b"1")]
    assert replayed.answer(request | {"postData": "user=bob&password=y"}) is None


@pytest.mark.parametrize("text", [None, '{"method": '])
def test_a_file_that_is_missing_or_torn_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "traffic.jsonl"
    if text:
        path.write_text(text)
    with pytest.raises(EnvironmentFailure, match=r"traffic\.jsonl.*: record it"):
        Recording(path, "replay")


@pytest.mark.parametrize("text", ["export PATH=/bin\n", "{}\n", "[" * 5000])
def test_a_file_that_is_no_recording_is_not_written_to(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile"
    path.write_text(text)
    with pytest.raises(EnvironmentFailure, match="is no recorded traffic"):
        Recording(path, "record")
    assert path.read_text() == text
