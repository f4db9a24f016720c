"""`exact trust --secrets` finds secrets in all files of a run, and never prints one."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin

from exact.cli.main import main

WORD = "s3cret-Word"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUDIT_WORD", WORD)
    folder = tmp_path / "run"
    (folder / "blobs" / "ab").mkdir(parents=True)
    (folder / "tasks" / "t").mkdir(parents=True)
    (folder / "run.json").write_text('{"tasks": [], "agent": "a"}')
    (folder / "config.yaml").write_text("{}")
    (folder / "guest.log").write_text("all is well\n")
    return folder


def audited(run: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[tuple[str, int, str]]]:
    code = main(["trust", str(run), "--secrets", "--secret-env", "AUDIT_WORD", "--json", *more])
    out = capsys.readouterr().out
    assert WORD.lower() not in out.lower()
    return code, [(each["file"], each["line"], each["what"]) for each in json.loads(out)["found"]]


def test_a_clean_run_is_clean(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(run, capsys) == (0, [])
    assert main(["trust", str(run), "--secrets"]) == 0 and "0 places with a secret" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        WORD,
        WORD.upper(),
        base64.b64encode(f"u:{WORD}".encode()).decode(),
        base64.b64encode(f"us:{WORD}".encode()).decode(),
        WORD.encode().hex(),
        "".join(f"%{byte:02x}" for byte in WORD.encode()),
        "".join(f"&#{ord(each)};" for each in WORD),
        f"<b>{WORD[:4]}</b>{WORD[4:]}",
        json.dumps([{"name": WORD[:4], "role": "x"}, {"name": WORD[4:], "role": "x"}]),
    ],
)
def test_a_known_secret_is_found_with_its_place(run: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (run / "tasks" / "t" / "journal.jsonl").write_text(f'{{"a": 1}}\n{text if text[0] == "[" else json.dumps({"t": text})}\n')
    (run / "blobs" / "ab" / "abcd").write_text("x" * 100 + text if text[0] != "[" else text)
    code, found = audited(run, capsys)
    assert code == 1
    assert {("blobs/ab/abcd", 1, "AUDIT_WORD"), ("tasks/t/journal.jsonl", 2, "AUDIT_WORD")} == set(found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----", "private key"),
        ("-----BEGIN PRIVATE KEY-----", "private key"),
        ("Authorization: Bearer abcdef0123456789abcdef", "bearer token"),
        ("key AKIAIOSFODNN7EXAMPLE", "AWS access key"),
        ("aws_secret_access_key = wJalrXUtnFEMI1K7MDENGabPxRfiCYEXAMPLEKEY", "AWS secret key"),
        ("sk-proj-abcdefghij0123456789", "key of a service"),
        ("ghp_" + "a1" * 18, "key of a service"),
        ("Basic YW5uOmh1bnRlcjI=", "basic credentials"),
        ("postgres://ann:hunter2@db.test/x", "basic credentials"),
        ("https%3A%2F%2Fann%3Ahunter2%40db.test%2F", "basic credentials"),
    ],
)
def test_what_has_the_shape_of_a_secret_is_found(run: Path, capsys: pytest.CaptureFixture[str], text: str, what: str) -> None:
    (run / "guest.log").write_text(f"one\ntwo {text}\n")
    assert audited(run, capsys) == (1, [("guest.log", 2, what)])


@pytest.mark.parametrize(
    "text",
    ["basic usage of things", "Bearer of bad news and more words", "http://h.test/a:b@c", "user:***@h", "http://u:***@h.test/", "a" * 64],
)
def test_what_only_resembles_a_secret_is_not_reported(run: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (run / "guest.log").write_text(text)
    assert audited(run, capsys) == (0, [])


def test_secrets_in_pictures_and_traces_are_found(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = PngImagePlugin.PngInfo()
    shown.add_text("Comment", WORD, zip=True)
    Image.new("RGB", (9, 9)).save(run / "blobs" / "ab" / "picture", "PNG", pnginfo=shown)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("trace.network", f"a\nb {WORD}")
    (run / "t-1.zip").write_bytes(made.getvalue())
    assert audited(run, capsys) == (1, [("blobs/ab/picture", 1, "AUDIT_WORD"), ("t-1.zip!trace.network", 2, "AUDIT_WORD")])


def test_a_secret_across_two_parts_of_a_large_file_is_found_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "guest.log").write_text("x" * 99 + "\n" + "y" * ((4 << 20) - 106) + WORD + "\n" + "z" * 99)
    assert audited(run, capsys) == (1, [("guest.log", 2, "AUDIT_WORD")])


def test_secrets_of_the_configuration_and_of_a_site_file_are_known(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_WORD", "of-the-c0nfig")
    (run / "config.yaml").write_text("browser: {login: {secrets: {word: $SITE_WORD}}}")
    (tmp_path / "site.yaml").write_text("{name: s, url: 'http://s.test/', browser: {login: {headers: {X-Token: of-the-s1te-file}}}}")
    (run / "guest.log").write_text("of-the-c0nfig\nof-the-s1te-file\n")
    code, found = audited(run, capsys, "--site", str(tmp_path / "site.yaml"))
    assert code == 1 and [each[:2] for each in found] == [("guest.log", 1), ("guest.log", 2)]


def test_what_cannot_be_audited_is_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", str(run), "--secrets", "--secret-env", "NOT_SET_AT_ALL"]) == 2
    assert main(["trust", str(run / "none"), "--secrets"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
