"""A solved task, exported, is a Playwright test that passes on the same site and fails on another."""

import subprocess
import sys
from pathlib import Path

from pytest_httpserver import HTTPServer

from exact.cli.main import main

PAGE = """<title>Form</title><button onclick="document.body.innerHTML='<h1>Sent</h1>'">Send</button><button>Cancel</button>"""
RUN = """
import importlib.util, sys
from playwright.sync_api import sync_playwright
spec = importlib.util.spec_from_file_location("test_path", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
[test] = [value for name, value in vars(module).items() if name.startswith("test_")]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[2])
    page = browser.new_page()
    page.set_default_timeout(3000)
    test(page)
    browser.close()
"""


def replayed(path: Path, executable: str) -> int:
    return subprocess.run([sys.executable, "-c", RUN, str(path), executable], capture_output=True, timeout=60, check=False).returncode


def test_it_passes_where_it_was_made_and_fails_elsewhere(tmp_path: Path, httpserver: HTTPServer, executable: str) -> None:
    httpserver.expect_request("/").respond_with_data(PAGE, content_type="text/html")
    goal = ["--url", httpserver.url_for("/"), "--goal", 'Click on the "Send" button.']
    settings = ["--set", "search.algorithm=react", "--set", "limits.actions=1", "--out", str(tmp_path / "run")]
    assert main(["run", *goal, *settings]) == 0
    assert main(["export", "playwright", str(tmp_path / "run"), "--out", str(tmp_path / "test_path.py")]) == 0
    assert "expect(page.get_by_role('heading', name='Sent', exact=True).first)" in (tmp_path / "test_path.py").read_text()
    assert replayed(tmp_path / "test_path.py", executable) == 0
    httpserver.clear()
    httpserver.expect_request("/").respond_with_data(PAGE.replace("Sent", "Failed"), content_type="text/html")
    assert replayed(tmp_path / "test_path.py", executable) != 0
