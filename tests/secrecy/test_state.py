"""Of cookies and storage, what identifies a session is secret, and plain words are not."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from exact.secrecy.state import state_secrets


def found(name: str, value: str) -> set[str]:
    state = {"cookies": [{"name": name, "value": value}], "origins": [{"localStorage": [{"name": name, "value": value}]}]}
    return {secret.value for secret in state_secrets(state)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wikiUserName", "Hanna%20Voss"),
        ("wikiUserName", "hanna.voss90@example.org"),
        ("author", "Hannelore"),
        ("auth_display", "Hanna%20Voss"),
        ("lastProject", "Annual%20planning%202026"),
        ("sessionUser", "hannavoss"),
        ("theme", "dark-and-quiet"),
        ("profile", quote(json.dumps({"name": "Hanna Voss", "city": "Oldenburg"}))),
    ],
)
def test_plain_words_are_no_secret(name: str, value: str) -> None:
    assert not found(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session", "sess77a8b9c0d1e2"),
        ("sessionid", "qwertzuiopasdf"),
        ("csrftoken", "a1b2c3d4"),
        ("sid", "8f14e45fceea167a5a36dedd4bea2543"),
        ("remember_password", "sunflower"),
        ("user_token", "abcdefghij"),
        ("user", "8f14e45fceea167a5a36dedd4bea2543"),
        ("Authorization", "Bearer%20abcdefgh12345678"),
        ("profile", quote(json.dumps({"name": "Hanna Voss", "token": "tok9f8e7d6c5b4a3210"}))),
    ],
)
def test_what_identifies_a_session_is_secret(name: str, value: str) -> None:
    assert found(name, value)
