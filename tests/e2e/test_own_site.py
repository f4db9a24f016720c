"""`exact run --url`: a site of one's own, which looking ahead must not change and which nobody but the agent judges."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder
from exact.search.base import Proposed

PAGE = """<title>Guests</title><form method=post action=/guests><label>Name <input name=name></label><button>Sign</button></form>
<a href="/away">Partner</a>"""


def exact(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exact.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


def events(folder: Path) -> list[ev.AnyEvent]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return list(read_journal(path))


def site(server: HTTPServer, signed: list[str]) -> str:
    def sign(request: Request) -> Response:
        signed.append(request.form["name"])
        return Response(f"<title>Guests</title><p>Thank you, {signed[-1]}", content_type="text/html")

    server.expect_request("/", method="GET").respond_with_data(PAGE, content_type="text/html")
    server.expect_request("/guests", method="POST").respond_with_handler(sign)
    server.expect_request("/away").respond_with_response(Response(status=302, headers={"Location": "http://elsewhere.test/"}))
    return server.url_for("/")


SHORT = (
    "--set",
    "browser.sandbox=never",
    "--set",
    "limits.actions=3",
    "--set",
    "search.iterations=8",
    "--set",
    "search.k=4",
    "--set",
    "limits.transitions=40",
)


def test_a_form_on_a_site_outside_is_sent_at_most_once_and_only_at_a_commit(httpserver: HTTPServer, tmp_path: Path) -> None:
    signed: list[str] = []
    url, out = site(httpserver, signed), tmp_path / "run"
    done = exact("run", "--url", url, "--goal", 'Enter "Ann" as the name and click "Sign"', "--out", str(out), *SHORT)
    assert done.returncode == 0, done.stderr
    (line,) = RunFolder.open(out).results()
    assert (line.status, line.score) == ("judged", None) and line.value is not None
    steps = events(out)
    held = [event for event in steps if isinstance(event, ev.Acted) and any(effect.is_blocked for effect in event.effects)]
    assert held, "the search looked at signing, and it was held back"
    before = [event.result for event in steps[: steps.index(held[0])] if isinstance(event, ev.Told) and isinstance(event.result, Proposed)]
    presumed = [proposal.writes for result in before for proposal in result.proposals]
    assert any(presumed) and not all(presumed), "its button was presumed to write before it was seen to"
    sent = [event.action for event in steps if isinstance(event, ev.Committed) and any(effect.is_write for effect in event.effects)]
    assert len(sent) == len(signed) == 1 and signed == ["Ann"]


def test_a_redirect_to_an_origin_that_is_not_allowed_is_refused_and_recorded(httpserver: HTTPServer, tmp_path: Path) -> None:
    url, out = site(httpserver, []), tmp_path / "run"
    done = exact("run", "--url", url, "--goal", 'Click "Partner"', "--out", str(out), *SHORT)
    assert done.returncode == 0, done.stderr
    effects = [effect for event in events(out) if isinstance(event, ev.Acted | ev.Committed) for effect in event.effects]
    assert any(effect.kind == "blocked" and effect.url.startswith("http://elsewhere.test") for effect in effects)


def test_a_dry_run_touches_nothing(httpserver: HTTPServer, tmp_path: Path) -> None:
    url, out = site(httpserver, []), tmp_path / "run"
    done = exact("run", "--url", url, "--goal", "Look", "--out", str(out), "--dry-run")
    assert done.returncode == 0 and "nothing was called or written" in done.stdout
    assert not out.exists() and not httpserver.log


def test_without_a_browser_one_line_names_the_fix_and_no_run_is_made(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = exact("run", "miniwob/click-test", "--out", str(out), EXACT_BROWSER="/nowhere/chromium")
    assert done.returncode == 2 and not out.exists()
    assert "EXACT_BROWSER" in done.stderr and done.stderr.count("\n") == 1


def test_a_goal_without_a_url_says_how_to_write_both() -> None:
    done = exact("run", "--goal", "Look")
    assert done.returncode == 2 and "--url https://" in done.stderr and done.stderr.count("\n") == 1
