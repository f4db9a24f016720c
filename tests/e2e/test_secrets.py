"""A site that repeats every secret that it gets, in many forms: no file of the run holds one."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

PASSWORD, TOKEN, BASIC, SESSION, STORED = "Tr0ub4dor&3!", "tok-9f8e7d6c5b4a", "basic-Pa55w0rd", "sess77a8b9c0d1e2", "jwt0a1b2c3d4e5f6a7b8c9"
VALUES = (PASSWORD, TOKEN, BASIC, SESSION, STORED)
FORM = "<title>In</title><form method=post action=/in><input name=word aria-label=Password type=password><button>Go</button></form>"


def forms(value: str) -> Iterator[str]:
    """Yield a value as a site may write it."""
    yield from (value, value.upper(), quote(value, safe=""), quote(quote(value, safe=""), safe=""), escape(value), json.dumps(value))
    yield from (value.encode().hex(), "".join(f"&#{ord(each)};" for each in value))
    yield from (base64.b64encode(b"x" * before + value.encode() + b"yz").decode() for before in range(3))


def remains(value: str) -> Iterator[bytes]:
    """Yield what must stand in no file. The middle of base64 has nothing of what is around."""
    for each in (value, value.upper(), quote(value, safe=""), quote(quote(value, safe=""), safe=""), value.encode().hex()):
        yield each.encode()
        yield escape(each).encode()
    for before in range(3):
        yield base64.b64encode(b"x" * before + value.encode() + b"yz")[4 + before : 14]


def leaks(folder: Path) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found += [f"{path.relative_to(folder)}: {value}: {each!r}" for value in VALUES for each in remains(value) if each in data]
    return found


def shop(server: HTTPServer) -> str:
    def page(request: Request) -> Response:
        if request.headers.get("X-Token") != TOKEN or "session" not in request.cookies:
            return Response(FORM, content_type="text/html")
        whole = "".join(f"<p>{each if '&#' in each else escape(each)}</p>" for value in VALUES for each in forms(value))
        split = "".join(f"<p><b>{escape(value[:5])}</b><i>{escape(value[5:])}</i></p>" for value in VALUES)
        home = "<a href='/'>Home</a>"
        link = f"{home}<a href='/?q={quote(PASSWORD)}'>Again {escape(PASSWORD)}</a><input aria-label=Echo value='{escape(TOKEN)}'>"
        return Response(f"<title>Hello {escape(PASSWORD)}</title>{link}{whole}{split}", content_type="text/html")

    def enter(request: Request) -> Response:
        assert request.form["word"] == PASSWORD
        return Response(status=302, headers={"Location": "/", "Set-Cookie": f"session={SESSION}; Path=/"})

    server.expect_request("/in", method="POST").respond_with_handler(enter)
    server.expect_request("/").respond_with_handler(page)
    return f"http://localhost:{server.port}/"


def exact(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exact.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, env={**os.environ, **environment})


@pytest.fixture
def site(httpserver: HTTPServer, tmp_path: Path) -> Path:
    url = shop(httpserver)
    entries = [{"name": "jwt", "value": STORED}]
    cookies = [{"name": "session", "value": SESSION, "domain": "localhost", "path": "/"}]
    (tmp_path / "state.json").write_text(
        json.dumps({"cookies": cookies, "origins": [{"origin": url.rstrip("/"), "localStorage": entries}]})
    )
    login = {
        "secrets": {"word": PASSWORD},
        "headers": {"X-Token": TOKEN},
        "user": "ann",
        "password": BASIC,
        "script": ['fill [textbox "Password"] "<secret:word>"', 'click [button "Go"]'],
        "proof": '[link "Home"]',
        "state": "state.json",
    }
    file = {"name": "shop", "url": url, "browser": {"html": True, "login": login}}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(file))
    return tmp_path / "site.yaml"


def test_no_file_of_a_run_holds_a_secret_and_a_resumed_run_asks_for_it(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    goal = f'Click "Again" with {PASSWORD}'
    settings = (
        "browser.sandbox=never",
        "limits.actions=2",
        "search.iterations=4",
        "limits.transitions=12",
        "browser.traces=" + str(out / "t"),
    )
    done = exact("run", "--site", str(site), "--goal", goal, "--out", str(out), *(part for each in settings for part in ("--set", each)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert exact("report", str(out), "--share").returncode == 0
    assert not leaks(out), "\n".join(leaks(out)[:20])
    assert b"<secret:word>" in b"".join(path.read_bytes() for path in (out / "blobs").rglob("*") if path.is_file())
    stored = json.loads((out / "run.json").read_text())["tasks"][0]
    assert "<secret:shop.word>" in stored["metadata"]["browser"] and "<secret:word>" in stored["instruction"]

    again = exact("resume", str(out))
    assert again.returncode == 2 and "export EXACT_SECRET_SHOP_" in again.stderr and "Traceback" not in again.stderr
    (tmp_path / "secrets.yaml").write_text(
        f"EXACT_SECRET_SHOP_WORD: {PASSWORD}\nEXACT_SECRET_SHOP_HEADER_X_TOKEN: {TOKEN}\nEXACT_SECRET_SHOP_BASIC_PASSWORD: {BASIC}\n"
    )
    again = exact("resume", str(out), "--secrets", str(tmp_path / "secrets.yaml"))
    assert again.returncode == 0, again.stdout + again.stderr
    (out / "results.jsonl").unlink()
    values = {"EXACT_SECRET_SHOP_WORD": PASSWORD, "EXACT_SECRET_SHOP_HEADER_X_TOKEN": TOKEN, "EXACT_SECRET_SHOP_BASIC_PASSWORD": BASIC}
    assert exact("resume", str(out), **values).returncode == 0
    assert not leaks(out)
