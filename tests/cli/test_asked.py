"""A person is asked at a real terminal: `exact run` on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.cli.person import shown
from exact.environments.base import PersonQuestion

PAGE = "<h1>Mugs</h1><form method=post action=/order><input type=hidden name=mug value=blue><button>Order</button></form>"


def run_at_terminal(command: list[str], wait_for: str, typed: str) -> str:
    """Run a command on a terminal, type once it has printed a text, and return all that it prints."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, close_fds=True)
    os.close(inside)
    said, until = b"", time.monotonic() + 90
    while time.monotonic() < until and (select.select([terminal], [], [], 1.0)[0] or process.poll() is None):
        try:
            said += os.read(terminal, 4096) if select.select([terminal], [], [], 0)[0] else b""
        except OSError:  # the other side is closed
            break
        if typed and wait_for in said.decode(errors="replace"):
            os.write(terminal, typed.encode())
            typed = ""
    process.kill()
    process.wait()
    os.close(terminal)
    return said.decode(errors="replace")


@pytest.mark.parametrize(("typed", "orders"), [("y\n", 1), ("n\n", 0), ("", 0)], ids=["yes", "no", "no answer"])
def test_a_terminal_shows_the_request_and_sends_it_after_a_yes_alone(
    typed: str, orders: int, httpserver: HTTPServer, executable: str, tmp_path: Path
) -> None:
    sent: list[dict[str, str]] = []

    def order(request: Request) -> Response:
        sent.append(request.form.to_dict())
        return Response("<h1>Ordered</h1>", content_type="text/html")

    httpserver.expect_request("/").respond_with_data(PAGE, content_type="text/html")
    httpserver.expect_request("/order", method="POST").respond_with_handler(order)
    settings = {
        "browser.sandbox": "never", "browser.screenshots": "false", "browser.confirm": "writes", "search.algorithm": "react",
        "browser.person_seconds": "60" if typed else "1", "limits.actions": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "exact", "run", "--url", httpserver.url_for("/"), "--goal", 'Click the button "Order"']
    command += ["--out", str(tmp_path / "run"), *(part for each in settings.items() for part in ("--set", "=".join(each)))]
    said = run_at_terminal(command, "[y/N]", typed)
    assert f"It sends POST {httpserver.url_for('/order')}" in said and "mug: blue" in said and "Do it? [y/N]" in said, said
    assert sent == [{"mug": "blue"}] * orders
    assert ("No answer is taken any more" in said) is not typed


def test_a_question_of_the_agent_is_shown_with_its_time() -> None:
    lines = shown(PersonQuestion(kind="question", text="Which size?"), 30)
    assert lines == ["The agent asks: Which size?", "Type an answer and press Enter, within 30 s."]
