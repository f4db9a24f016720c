"""A captcha or a second factor on a page ends an attempt as `needs_user`: result, exit code, terminal and report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from exact.cli.main import main

FRAME = '<iframe title="reCAPTCHA" src="https://captcha.test/anchor" width=300 height=74></iframe>'
PAGES = {
    "a captcha": f"<h1>One moment</h1>{FRAME}<button>Continue</button>",
    "the code of a second factor": "<h1>Check it is you</h1><form method=post><label>Enter the 6-digit code <input name=c></label>"
    "<button>Verify</button></form>",
}


@pytest.mark.parametrize("what", PAGES)
def test_a_page_that_only_a_person_can_pass_is_no_failed_action(
    what: str, httpserver: HTTPServer, executable: str, tmp_path: Path, capsys: Any
) -> None:
    httpserver.expect_request("/").respond_with_data('<h1>Shop</h1><a href="/mugs">Mugs</a>', content_type="text/html")
    httpserver.expect_request("/mugs").respond_with_data(PAGES[what], content_type="text/html")
    out, settings = (
        tmp_path / "run",
        ("browser.sandbox=never", "browser.screenshots=false", "search.iterations=4", "search.algorithm=react"),
    )
    command = ["run", "--url", httpserver.url_for("/"), "--goal", 'Open "Mugs"', "--out", str(out)]
    assert main([*command, *(part for each in settings for part in ("--set", each))]) == 4
    (line,) = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    assert line["status"] == "needs_user" and what in line["reason"] and line.get("score") is None
    assert httpserver.url_for("/mugs").removeprefix("http://localhost") in line["reason"]
    shown = capsys.readouterr().out
    assert "needs a person" in shown and what in shown and "1 that need a person" in shown
    (report,) = out.glob("tasks/*/report.html")
    assert "Needs a person" in report.read_text()
    assert "refused by the real environment" not in report.read_text()
