"""A known secret is found in whatever form it is written."""

from __future__ import annotations

import base64
import html
import io
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from exact.secrecy.scrubber import NOTHING, Scrubber
from exact.secrecy.values import Secret

VALUES = ("Tr0ub4dor&3!", "wörd-of-Ann 42", "correct horse/battery+staple", "p\"a\\ss'<w>&", "hunter2-hunter2")


def _hidden(value: str, text: str) -> None:
    done = Scrubber([Secret("word", value)]).text(text)
    assert "<secret:word>" in done, done
    return None


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "written",
    [
        str,
        str.upper,
        str.lower,
        quote,
        lambda v: quote(quote(v, safe=""), safe=""),
        lambda v: "".join(f"%{byte:02X}" for byte in v.encode()),
        lambda v: "".join(f"%{byte:02x}" for byte in v.encode()),
        html.escape,
        lambda v: "".join(f"&#{ord(c)};" for c in v),
        lambda v: "".join(f"&#x{ord(c):x};" for c in v),
        lambda v: html.escape("".join(f"&#x{ord(c):x};" for c in v)),
        lambda v: "".join(f"\\u{ord(c):04x}" for c in v),
        json.dumps,
        lambda v: json.dumps(json.dumps({"v": v})),
        lambda v: v.encode().hex(),
        lambda v: v.encode().hex().upper(),
        lambda v: v.encode().hex(":"),
        lambda v: "".join(f"\\x{byte:02x}" for byte in v.encode("latin-1")),
        lambda v: v[::-1],
        lambda v: "".join(f"<b>{html.escape(c)}</b>" for c in v),
        lambda v: "\u200b".join(v),
        lambda v: "".join(c + "<i class='x'></i>" if c.isalnum() else c for c in v),
        " ".join,
        ".".join,
        "\n".join,
        " - ".join,
        "\u00a0\u2022".join,
        lambda v: json.dumps(list(v)),
        lambda v: html.escape(" ".join(v)),
        lambda v: "".join(f"<b>{html.escape(c)}</b> " for c in v),
        lambda v: "".join(f"{c}{' .'[at % 2]}" for at, c in enumerate(v)),
        lambda v: " ".join(v.encode().hex()),
        lambda v: "%20".join(quote(c, safe="") for c in v),
    ],
)
def test_a_secret_is_found_in_every_encoding(value: str, written) -> None:  # type: ignore[no-untyped-def]
    _hidden(value, f"x{written(value)}y")


@given(st.sampled_from(VALUES), st.binary(max_size=9), st.binary(max_size=9), st.booleans())
def test_a_secret_is_found_in_base64_at_each_alignment(value: str, before: bytes, after: bytes, urls: bool) -> None:
    encode = base64.urlsafe_b64encode if urls else base64.b64encode
    _hidden(value, encode(before + value.encode() + after).decode())


@given(st.text(max_size=60), st.sampled_from(VALUES))
def test_what_was_scrubbed_holds_nothing_more_to_scrub(text: str, value: str) -> None:
    scrubber = Scrubber([Secret("password", value), Secret("user", "ann"), Secret("x", "password"), Secret("y", "secret")])
    done = scrubber.text(f"{text}{value} ann password secret")
    assert scrubber.text(done) == done and value not in done


def test_a_text_without_secrets_is_unchanged() -> None:
    scrubber = Scrubber([Secret("pin", "1234"), Secret("word", "s3cret-word")])
    for text in ("", "a%20b &amp; <b>c</b>", "f" * 60 + "1234", "s3cret word"):
        assert scrubber.text(text) == text
    assert NOTHING.text("s3cret-word") == "s3cret-word" and not NOTHING


def test_a_secret_in_fields_and_elements_is_found_where_it_is_split() -> None:
    scrubber = Scrubber([Secret("word", "s3cret-word")])
    given = {"kind": "a", "elements": [{"role": "text", "name": "its s3cr"}, {"role": "text", "name": "et-"}, {"name": "word now"}]}
    done = scrubber.value(given)
    assert [each["name"] for each in done["elements"]] == ["its <secret:word>", "", " now"]
    assert scrubber.value({"a": [1, None, "b"]}) == {"a": [1, None, "b"]}
    assert scrubber.value({"s3cret-word": {"x": "S3CRET-WORD"}}) == {"<secret:word>": {"x": "<secret:word>"}}
    assert scrubber.texts(["s3cret-word", "s3cret", "-word"]) == ["<secret:word>", "<secret:word>", ""]


def test_json_stays_json_and_a_picture_loses_its_texts() -> None:
    scrubber = Scrubber([Secret("word", 's3"cret\\word')])
    done = json.loads(scrubber.data(json.dumps({"a": 's3"cret\\word', "n": 1.5}).encode()))
    assert done == {"a": "<secret:word>", "n": 1.5}
    shown = PngImagePlugin.PngInfo()
    shown.add_text("Comment", 's3"cret\\word', zip=True)
    file = io.BytesIO()
    Image.new("RGB", (9, 9), "red").save(file, "PNG", pnginfo=shown)
    bare = scrubber.data(file.getvalue())
    assert Image.open(io.BytesIO(bare)).info == {} and Image.open(io.BytesIO(bare)).getpixel((4, 4)) == (255, 0, 0)
    photo = io.BytesIO()
    Image.new("RGB", (9, 9), "red").save(photo, "JPEG", comment=b's3"cret\\word')
    assert b"s3" not in scrubber.data(photo.getvalue()) and Image.open(io.BytesIO(scrubber.data(photo.getvalue()))).size == (9, 9)
    assert b"cret" not in scrubber.data(b'\xff\x00s3"cret\\word')


def test_letters_that_stand_apart_and_are_no_secret_stay() -> None:
    scrubber = Scrubber([Secret("word", "Tr0ub4dor&3!")])
    for text in ("A B C D E F G", "t r 0 u b", "1, 2, 3, 4, 5, 6", "Tr 0 u b 4 dog", "a.b.c.d.e: see u.s.a. and e.g. t.r."):
        assert scrubber.text(text) == text


def test_a_text_around_a_secret_whose_letters_stand_apart_stays() -> None:
    scrubber = Scrubber([Secret("word", "Tr0ub4dor&3!")])
    assert scrubber.text("You typed T r 0 u b 4 d o r & 3 ! today") == "You typed <secret:word> today"


@pytest.mark.parametrize("unit", ["aaaaaaaa", "abababab", "abcabcab"])
def test_of_a_secret_that_overlaps_itself_nothing_stays(unit: str) -> None:
    scrubber = Scrubber([Secret("word", unit)])
    for length in (9, 11, 15, 17, 40):
        whole = (unit[:6] * length)[: len(unit[:6]) * 2 + length]
        done = scrubber.text(f"x {whole} y")
        assert done.startswith("x <secret:word>") and done.endswith(" y")
        assert len(done) - len("x <secret:word> y") < 3, done


def test_a_hostile_text_of_placeholders_and_secrets_is_scrubbed_by_one_pass() -> None:
    scrubber = Scrubber([Secret("word", "aaaaaaaa")])
    assert scrubber.text("<secret:b>aaaaaaaa " * 20_000) == "<secret:b><secret:word> " * 20_000
