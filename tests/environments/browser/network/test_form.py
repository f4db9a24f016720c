"""Of what a page sends, the names of the fields are recorded, and never a value."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.network.form import LONGEST_NAME, MOST_NAMES, field_names

URLENCODED = {"Content-Type": "application/x-www-form-urlencoded"}
MULTIPART = (
    '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nname="secret"\r\n'
    '--b\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\x00\r\n--b--\r\n'
)


def request(body: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"headers": {"content-type": kind}, "postData": body, **more}


@pytest.mark.parametrize(
    ("kind", "body", "names"),
    [
        (URLENCODED["Content-Type"], "title=Hello&body=a%26b&csrf_token=s3cr3t", ("title", "body", "csrf_token")),
        (URLENCODED["Content-Type"], "tag=a&tag=b&n%C3%A4me=x", ("tag", "näme")),
        (URLENCODED["Content-Type"], "onlyavalue", ()),
        ("multipart/form-data; boundary=b", MULTIPART, ("title", "picture")),
        ("application/json; charset=utf-8", '{"user": "a", "password": "s3cr3t"}', ("user", "password")),
        ("application/json", '["s3cr3t"]', ()),
        ("application/json", "{broken", ()),
        ("text/plain", "a=b", ()),
        ("", "", ()),
    ],
)
def test_names_are_read_from_forms_and_objects_alone(kind: str, body: str, names: tuple[str, ...]) -> None:
    assert field_names(request(body, kind)) == names


def test_a_body_in_parts_is_read_too() -> None:
    parts = [{"bytes": base64.b64encode(text).decode()} for text in (b"a=1&", b"b=2")]
    assert field_names({"headers": URLENCODED, "postDataEntries": parts}) == ("a", "b")
    assert field_names({"headers": URLENCODED, "postDataEntries": [{"bytes": "?"}]}) == ()


@given(st.lists(st.text(min_size=1, max_size=200), max_size=60), st.sampled_from(["application/json", URLENCODED["Content-Type"]]))
def test_names_are_few_and_short(names: list[str], kind: str) -> None:
    import json
    from urllib.parse import urlencode

    body = json.dumps(dict.fromkeys(names, 1)) if "json" in kind else urlencode(dict.fromkeys(names, 1))
    found = field_names(request(body, kind))
    assert len(found) <= MOST_NAMES and all(0 < len(name) <= LONGEST_NAME for name in found)
