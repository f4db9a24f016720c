"""A shared copy holds no secret that has a form, in whatever part of the journal it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.cli.main import main
from exact.observation import Element, Observation
from exact.report import build_report
from exact.report.build import Redactor
from exact.report.model.text import in_words
from tests.report.journals import hostile_run, shop_run

SECRETS = {
    "an API key": "sk-proj-abcdEFGH1234567890abcd",
    "a GitHub token": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "a JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl",
    "a bearer token": "Bearer abcdefghijklmnop",
    "a password": "hunter2hunter2",
    "an e-mail address": "jane.doe@mail.example",
    "a card number": "4111 1111 1111 1111",
    "an IBAN": "DE89 3704 0044 0532 0130 00",
    "a telephone number": "+49 170 1234567",
    "a long random word": "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg",
    "a private machine": "192.168.17.4",
    "a home folder": "/home/jane/secret-plan",
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
}
SAID = {"a password": "password: hunter2hunter2", "a private key": SECRETS["a private key"]}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_in_no_part_of_a_shared_copy(name: str, tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", f"So: {SAID.get(name, SECRETS[name])} ok")
    path = build_report(run, run.manifest.tasks[0], share=True)
    text = path.read_text()
    assert path.name == "shared.html"
    assert SECRETS[name].split("\n")[-1].strip("-") not in text
    assert "removed]" in text and "Shared copy" in text


def test_the_whole_report_is_left_as_it_was(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", "mail jane.doe@mail.example")
    whole = build_report(run, run.manifest.tasks[0])
    before = whole.read_bytes()
    build_report(run, run.manifest.tasks[0], share=True)
    assert whole.read_bytes() == before and b"jane.doe@mail.example" in before


def test_pictures_raw_answers_and_typed_texts_are_left_out(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    text = build_report(run, run.manifest.tasks[0], share=True).read_text()
    assert "data:image/" not in text and "chat.completion" not in text
    assert 'green tea\\\\\\"' not in text and 'fill [3] textbox \\"Search\\" \\"[typed text removed]' in text
    assert "Buy two packs of green tea." in text


@pytest.mark.parametrize(
    "text",
    [
        'fill [3] "hunter2": done, but it led to another state than foreseen',
        '1. fill [3] "hunter2" -- nothing changed\n2. click [4] -- refused: there is no "Go"',
        'select [4] "hunter2"',
        'fill [3] textbox "Say \\"hi\\"" "hunter2 \\"quoted\\" hunter2" -- nothing changed',
        'select [4] push button "Who" "hunter2" -- nothing changed',
        'fill textbox "Password" "hunter2" went worse than expected',
        'then fill [3] "hunter2\nhunter2" and press "Enter"',
        "I type 'hunter2' now",
        '{"action": "fill [3] \\"hunter2\\"", "why": "it is asked for"}',
        'fill [3] "it is long: hunter2…\nLesson: look at the "Pay" button',
        'committed fill [3] "it is long: hunter2…, which was refused',
        'answer "hunter2", then wait',
    ],
)
def test_a_typed_text_is_redacted_everywhere(text: str) -> None:
    found = Redactor()(text)
    assert "hunter2" not in found and "[typed text removed]" in found
    assert Redactor()(found) == found


def test_a_long_typed_text_that_was_cut_is_taken_out_whole() -> None:
    seen = Observation(text="", fingerprint="", elements=(Element(id="3", role="textbox", name='Your "letter"'),))
    words = in_words(f"fill [3] {json.dumps('Dear Ann, hunter2. ' * 20)}", seen)
    assert words.endswith("…") and Redactor()(words) == 'fill [3] textbox "Your \\"letter\\"" "[typed text removed]"'


def test_text_beside_a_typed_text_stays() -> None:
    said = '1. fill [3] textbox "Search" "tea" -- nothing changed\n2. click [4] link "Green tea" -- refused: it is "gone"'
    assert Redactor()(said) == said.replace('"tea"', '"[typed text removed]"')


def test_words_that_one_names_are_taken_out_in_any_case(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    assert main(["report", str(run.path), "--share", "--redact", "Green Tea"]) == 0
    (path,) = run.path.glob("tasks/*/shared.html")
    assert "green tea" not in path.read_text().lower()


def test_an_address_keeps_its_site_and_loses_who_and_what() -> None:
    found = Redactor()("see https://jane:pw@shop.example/cart/7?session=abc&q=x#part now")
    assert found == "see https://shop.example/cart/7?[query removed] now"


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_text_is_redacted_twice_as_once(text: str) -> None:
    once = Redactor()(text)
    assert Redactor()(once) == once


@pytest.mark.parametrize("text", ['click [4] link "Green tea"', "Q 0.93, N 17, 41.3 s", "20 of 300 states", "seed=1", "2026-11-21 12:30"])
def test_ordinary_words_and_figures_stay(text: str) -> None:
    assert Redactor()(text) == text


@pytest.mark.parametrize(
    "call", ['computer {"action":"type","text":"tea %s"}', 'computer {"actions":[{"type":"type","text":"%s"}],"checks":[]}']
)
def test_a_text_that_a_computer_tool_types_is_left_out(call: str) -> None:
    clean = Redactor()(call % 'green \\"one\\"')
    assert "green" not in clean and "one" not in clean and "type" in clean and clean.count("[typed text removed]") == 1
