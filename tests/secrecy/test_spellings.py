"""A known secret is found in spellings that pages make of it, and texts in which it does not stand stay as they are."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import random
import re
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.config import LoginConfig
from exact.environments.browser.login import Authenticator
from exact.environments.browser.secrets import SecretMasking
from exact.errors import InfrastructureError
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.values import Secret
from exact.task import Outcome

VALUES = ("Kelp/Heron_28$r#tV", "qX7!vMn2zLp9", "tide-Mangrove.41*Yw=k", "Tr0ub4dor&3!x")
LOOKS = str.maketrans("aceopxyACEHKMOPTX", "асеорхуАСЕНКМОРТХ")
MATHS = {ord(each): 0x1D400 + at for at, each in enumerate(string.ascii_uppercase + string.ascii_lowercase)}
CIRCLED = {ord(each): 0x24B6 + at for at, each in enumerate(string.ascii_uppercase + string.ascii_lowercase)}
ACUTE = "\u0301"


def codes(form: str, between: str = " ", data: Callable[[str], object] = str) -> Callable[[str], str]:
    """Return the spelling that writes the code of each character in a form."""
    return lambda value: between.join(form.format(ord(each)) for each in str(data(value)))


def digit(number: int) -> str:
    return (string.digits + string.ascii_lowercase)[number]


def groups(size: int, between: str) -> Callable[[str], str]:
    return lambda value: between.join(value[at : at + size] for at in range(0, len(value), size))


def halves(value: str) -> tuple[str, str]:
    return value[: len(value) // 2], value[len(value) // 2 :]


SPELLINGS: dict[str, Callable[[str], str]] = {
    # most of it
    "without its last character": lambda v: v[:-1],
    "without its first character": lambda v: v[1:],
    "without its last two": lambda v: v[:-2],
    "its first two thirds": lambda v: v[: -(-len(v) * 2 // 3)],
    "its last two thirds": lambda v: v[len(v) // 3 :],
    "its inner part": lambda v: v[1:-1],
    "without a character in the middle": lambda v: v[: len(v) // 2] + v[len(v) // 2 + 1 :],
    "with another character in the middle": lambda v: v[: len(v) // 2] + "~" + v[len(v) // 2 + 1 :],
    "with three stars in the middle": lambda v: v[: len(v) // 2 - 1] + "***" + v[len(v) // 2 + 2 :],
    "with one more character": lambda v: v[: len(v) // 2] + "_" + v[len(v) // 2 :],
    "in capitals without the last": lambda v: v.upper()[:-1],
    "backwards without the first": lambda v: v[::-1][:-1],
    # cases and order
    "in the other case": str.swapcase,
    "in small letters": str.lower,
    "backwards": lambda v: v[::-1],
    "rot13": lambda v: codecs.encode(v, "rot13"),
    "rot47": lambda v: "".join(chr(33 + (ord(c) + 14) % 94) for c in v),
    "atbash": lambda v: v.lower().translate(str.maketrans(string.ascii_lowercase, string.ascii_lowercase[::-1])),
    # numbers
    "decimal": codes("{}"),
    "decimal with commas": codes("{}", ","),
    "a list in JSON": lambda v: json.dumps([ord(c) for c in v]),
    "an indented list in JSON": lambda v: json.dumps([ord(c) for c in v], indent=4),
    "decimal with zeros": codes("{:03}"),
    "decimal without gaps": codes("{}", ""),
    "decimal one a line": codes("{}", "\n"),
    "decimal with semicolons": codes("{}", "; "),
    "decimal in calls": codes("chr({})", " + "),
    "decimal in cells": codes("<td>{}</td>", ""),
    "decimal of the small letters": codes("{}", data=str.lower),
    "decimal of the capitals": codes("{}", data=str.upper),
    "decimal backwards": codes("{}", data=lambda v: v[::-1]),
    "decimal without the last": lambda v: codes("{}")(v[:-1]),
    "octal": codes("{:o}"),
    "octal with 0o": codes("0o{:o}"),
    "octal with a zero": codes("0{:o}", ", "),
    "octal escapes": codes("\\{:03o}", ""),
    "binary": codes("{:b}"),
    "binary bytes": codes("{:08b}"),
    "binary bytes without gaps": codes("{:08b}", ""),
    "binary with 0b": codes("0b{:b}", ", "),
    "binary bytes with 0b": codes("0b{:08b}"),
    "hex": codes("{:x}"),
    "hex with 0x": codes("0x{:x}"),
    "hex with 0x and commas": codes("0x{:02X}", ", "),
    "hex with 0x without gaps": codes("0x{:02x}", ""),
    "hex with x": codes("\\x{:02x}", " "),
    "hex with dashes": codes("{:02x}", "-"),
    "hex of 16 bits": codes("{:04x}"),
    "hex of UTF-16": lambda v: v.encode("utf-16-le").hex(),
    "hex without the last": lambda v: v[:-1].encode().hex(),
    "hex with h": codes("{:02x}h"),
    "code points": codes("U+{:04X}"),
    "code points of 32 bits": codes("\\U{:08x}", ""),
    "code points in braces": codes("\\u{{{:x}}}", ""),
    "old escapes of addresses": codes("%u{:04x}", ""),
    "percent with gaps": codes("%{:02X}"),
    "entities with gaps": codes("&#{};"),
    "hexadecimal entities with gaps": codes("&#x{:x};", ", "),
    "quoted printable": codes("={:02X}", ""),
    "quoted printable of its signs": lambda v: binascii.b2a_qp(v.encode(), quotetabs=True).decode(),
    "base 36": lambda v: " ".join(digit(ord(c) // 36).strip("0") + digit(ord(c) % 36) for c in v),
    # encodings
    "base32": lambda v: base64.b32encode(v.encode()).decode(),
    "base32 in small letters": lambda v: base64.b32encode(v.encode()).decode().lower(),
    "base32 in the middle": lambda v: base64.b32encode(b"abc" + v.encode() + b"xyz").decode(),
    "base32 of another alphabet": lambda v: base64.b32hexencode(v.encode()).decode(),
    "base32 in groups": lambda v: groups(4, "-")(base64.b32encode(v.encode()).decode()),
    "base64 without the last": lambda v: base64.b64encode(v[:-1].encode()).decode(),
    "base64 without the first": lambda v: base64.b64encode(v[1:].encode()).decode(),
    "base64 of UTF-16": lambda v: base64.b64encode(v.encode("utf-16-le")).decode(),
    "base64 in groups": lambda v: groups(4, " ")(base64.b64encode(v.encode()).decode()),
    "ascii85": lambda v: base64.a85encode(v.encode()).decode(),
    "ascii85 in the middle": lambda v: base64.a85encode(b"ab" + v.encode() + b"c").decode(),
    "base85": lambda v: base64.b85encode(v.encode()).decode(),
    "uuencode": lambda v: binascii.b2a_uu(v.encode()).decode(),
    # set apart
    "in pairs": groups(2, " "),
    "in pairs with dashes": groups(2, "-"),
    "in pairs of small letters": lambda v: groups(2, " ")(v.lower()),
    "in triples": groups(3, " "),
    "in triples one a line": groups(3, "\n"),
    "in fours": groups(4, " "),
    "in sixes with bars": groups(6, " | "),
    "in halves": lambda v: " ".join(halves(v)),
    "in halves one a line": lambda v: "\n".join(halves(v)),
    "in halves with a sign": lambda v: " ... ".join(halves(v)),
    "in pairs without the last": lambda v: groups(2, " ")(v[:-1]),
    "letter by letter without the last": lambda v: " ".join(v[:-1]),
    "between letters x": "x".join,
    "between zeros": "0".join,
    "between stars": "*".join,
    "after letters z": lambda v: "".join(f"z{c}" for c in v),
    "in pairs of tags": lambda v: "".join(f"<b>{quote(v[at : at + 2], safe='')}</b>" for at in range(0, len(v), 2)),
    # other characters
    "in full width": lambda v: "".join(chr(ord(c) + 0xFEE0) for c in v),
    "in full width in pairs": lambda v: " ".join("".join(chr(ord(c) + 0xFEE0) for c in v[at : at + 2]) for at in range(0, len(v), 2)),
    "in bold letters of mathematics": lambda v: v.translate(MATHS),
    "in circled letters": lambda v: v.translate(CIRCLED),
    "with look-alikes": lambda v: v.translate(LOOKS),
    "with acute accents": lambda v: ACUTE.join(v) + ACUTE,
    "with marks and without the last": lambda v: "\u0336".join(v[:-1]),
    "with soft hyphens": "\u00ad".join,
    "with joiners in pairs": groups(2, "\u200d"),
    "with variation selectors": "\ufe0f".join,
    "with tags of Unicode": "\U000e0041".join,
    "with bullets": "•".join,
    "full width codes": lambda v: "".join(chr(ord(c) + 0xFEE0) for c in " ".join(str(ord(c)) for c in v) if c != " "),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_replaced_in_a_spelling_and_the_text_around_stays(spelling: str) -> None:
    for value in VALUES:
        written = SPELLINGS[spelling](value)
        done = Scrubber([Secret("word", value)]).text(f"It says: {written} and that is all.")
        assert done.startswith("It says: ") and done.endswith(" and that is all."), done
        left = re.sub("<secret:(part of )?word>", "", done.removeprefix("It says: ").removesuffix(" and that is all."))
        assert len(left) <= max(2, len(written) // (2 if spelling.endswith("in the middle") else 4)), (written, done)


def test_a_large_file_is_scrubbed_too() -> None:
    filled = [{"name": each} for each in ordinary("words", 1).split() * 30]
    done = json.loads(Scrubber([Secret("word", VALUES[0])]).data(json.dumps([*filled, {"name": codes("{}")(VALUES[0])}]).encode()))
    assert done == [*filled, {"name": "<secret:word>"}]
    assert Scrubber([Secret("word", VALUES[0])]).data(data := json.dumps(filled * 9).encode()) == data


def test_a_part_does_not_stand_for_the_value() -> None:
    scrubber = Scrubber([Secret("word", VALUES[0])])
    assert scrubber.text(f"a {VALUES[0]} b") == "a <secret:word> b"
    assert scrubber.text(f"a {VALUES[0][:-1]} b") == "a <secret:part of word> b"
    assert scrubber.texts([f"a {VALUES[0][:12]}", f"{VALUES[0][12:]} b"]) == ["a <secret:word>", " b"]


def test_an_answer_with_a_part_is_not_scored() -> None:
    masking = SecretMasking(Authenticator(), None, LoginConfig(secrets={"word": VALUES[0]}))
    assert masking.revealed(Outcome(actions=(), answer=masking.mask(f"it is {VALUES[0]}"))).answer == f"it is {VALUES[0]}"
    with pytest.raises(InfrastructureError, match="stands for no secret"):
        masking.revealed(Outcome(actions=(), answer=masking.mask(f"it is {VALUES[0][:-1]}")))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("password123", "Password, passwords, Password 12"),
        ("wagtail-admin", "/wagtail/admin: the Wagtail administration, wagtails"),
        ("correcthorse", "the correct horse"),
        ("administrator-8x!Q", "Administrators and the administration of 8x"),
        ("20240115", "2024-01, 20240116, 2024011"),
        ("tobeornottobe", "to be or not to do"),
        ("s3cret-word", "secret-word, s3cret word, s-3-cre"),
        ("rosemary-harbour", "rosemary harvest; Rosemary's harbour"),
    ],
)
def test_words_of_which_a_weak_value_is_made_stay(value: str, text: str) -> None:
    assert Scrubber([Secret("word", value)]).text(text) == text


def test_parts_of_user_names_and_of_values_that_only_look_like_secrets_stay() -> None:
    address = "http://127.0.0.1:4123/catalogue/page-1?of=2"
    assert Scrubber([Secret("storage last", address, presumed=True)]).text(address[:-4]) == address[:-4]
    text = "rosemary.harbour-5 and ROSEMARY.harbour"
    assert Scrubber([Secret("user", "rosemary.harbour-52")]).text(text) == text


STRONG = st.builds(
    lambda seed, size: "".join(random.Random(seed).choices(string.ascii_letters + string.digits + "!#%&*-_.", k=size)),
    st.integers(0, 10**9), st.integers(10, 30),
)  # fmt: skip
WORDS = tuple((__doc__ + (random.__doc__ or "") + (json.__doc__ or "") + (re.__doc__ or "")).split())


def ordinary(kind: str, seed: int) -> str:
    """Return a text of a kind in which no secret stands."""
    rnd = random.Random(seed)
    words = " ".join(rnd.choices(WORDS, k=400))
    match kind:
        case "words":
            return words
        case "html":
            return "".join(
                f'<p id="n{rnd.randrange(10**6)}" class=a><a href="/w/{quote(each)}?p=%20{rnd.random()}">{each}</a></p>'
                for each in words.split()
            )
        case "json":
            return json.dumps(
                [{"id": rnd.randrange(10**9), "box": [rnd.random() * 900, rnd.randrange(1280)], "name": each} for each in words.split()]
            )
        case "base64":
            return base64.b64encode(rnd.randbytes(4000)).decode()
        case "hex":
            return rnd.randbytes(4000).hex()
        case "codes":
            return ", ".join(str(rnd.randrange(32, 127)) for _ in range(2000))
        case "bits":
            return " ".join(f"{rnd.randrange(32, 127):08b}" for _ in range(800))
        case "letters":
            return " ".join(rnd.choices(string.ascii_letters + string.digits, k=3000))
    return "".join(chr(rnd.choice((rnd.randrange(0x400, 0x460), 32, rnd.randrange(0x2000, 0x2100)))) for _ in range(3000))


@settings(max_examples=60, deadline=None)
@given(STRONG, st.sampled_from(("words", "html", "json", "base64", "hex", "codes", "bits", "letters", "other")), st.integers(0, 10**9))
def test_an_ordinary_text_stays_as_it_is(value: str, kind: str, seed: int) -> None:
    text = ordinary(kind, seed)
    assert Scrubber([Secret("word", value)]).text(text) == text


@pytest.mark.parametrize(
    "unit", ["7", "98 117 ", "0110", "Kelp", "Kelp/Heron_28$r#t ", "75 101 108 112 47 72 101 114 ", "а", "K e l p / ", "Кк•"]
)
def test_a_long_text_is_scrubbed_by_one_pass(unit: str) -> None:
    scrubber = Scrubber([Secret("word", VALUES[0])])
    scrubber.text(unit * (300_000 // len(unit)))
