"""Output in a terminal: what pages, servers and task files say has no effect on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from exact.cli import terminal
from exact.cli.main import main
from exact.cli.terminal import columns, echo, plain, width
from exact.errors import ActionError, BudgetExceeded, EnvironmentFailure, ModelError, unknown

HOSTILE = "a\x1b[2J\x1b[8mb\x9b31mc\x07\u202ed\rE"


def test_control_characters_are_written_out_and_our_own_marks_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE, mark="\x1b[32m✓\x1b[0m ")
    echo(HOSTILE.encode(), err=True)
    for text in capsys.readouterr():
        assert not set(text.removeprefix("\x1b[32m✓\x1b[0m ")) & set("\x1b\x9b\x07\u202e\r") and "␛[2J" in text


def test_an_error_shows_no_control_character_of_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "miniwob/" + HOSTILE]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        ModelError(HOSTILE),
        EnvironmentFailure(HOSTILE),
        ActionError(HOSTILE),
        BudgetExceeded(HOSTILE, HOSTILE, 1),
        unknown("role", HOSTILE, []),
    ],
)
def test_an_error_of_the_package_is_inert_wherever_it_is_printed(error: Exception) -> None:
    assert not set(str(error) + repr(error)) & set("\x1b\x9b\x07\u202e\r")


FAILS = {
    "an unexpected error": "raise KeyError(T) from ValueError(T)",
    "several": "raise ExceptionGroup(T, [OSError(T), RuntimeError(T)])",
    "a thread's": "import threading; t = threading.Thread(target=lambda: (_ for _ in ()).throw(Exception(T))); t.start(); t.join()",
    "a task's": "import asyncio\nasync def fail(): raise Exception(T)\nasync def main():\n t = asyncio.create_task(fail())\n"
    " await asyncio.sleep(0)\n del t\nasyncio.run(main())",
    "a warning": "import logging; logging.getLogger('exact.guest').warning(T)",
}


@pytest.mark.parametrize("code", FAILS.values(), ids=FAILS)
def test_a_traceback_or_a_warning_has_no_effect_on_a_terminal(code: str) -> None:
    script = f"from exact.cli import main\nmain.main(['list', 'algorithms'])\nT = {HOSTILE!r}\n{code}"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False).stderr.decode("utf-8")
    assert "␛[2J" in said and not set(said) & set("\x1b\x9b\x07\u202e")


def test_names_of_tasks_of_a_strangers_file_are_inert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([{"id": "x[bold]y", "goal": HOSTILE, "url": "http://127.0.0.1:9/"}]))
    for command in (["list", "tasks", str(file)], ["list", "tasks", f"{file}#x[bold]y", "--fields"]):
        main(command)
        out = capsys.readouterr()
        assert not set(out.out + out.err) & set("\x1b\x9b\x07\u202e\r")


ROWS = [["日本語の店", "0.62 [0.50, 0.72]", "3"], ["ann\x1b[2J", "1.00", "-"]]


def test_columns_align_by_what_a_terminal_shows() -> None:
    head, wide, other = columns(ROWS, head=("agent", "success", "left")).splitlines()
    assert width(head) == width(wide) == width(other), "a wide character takes two columns, a control character the one of its sign"
    assert wide.endswith("0.62 [0.50, 0.72]     3") and other.endswith("              1.00     -") and "\x1b" not in other


def test_a_row_that_is_too_wide_for_the_terminal_becomes_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_room", lambda: 28)
    block = columns(ROWS[:1], head=("agent", "success", "left")).splitlines()
    assert block == ["日本語の店", "  success  0.62 [0.50, 0.72]", "  left     3"]


def test_markdown_is_shown_without_its_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "# Suite\n\n**Unfinished: 1.** One two three four five.\n\n| a | b |\n| --- | --- |\n| x \\| y | [here](http://a) |\n"
    assert plain(page) == "Suite\n\nUnfinished: 1. One two three four five.\n\na      b\nx | y  here (http://a)"
    monkeypatch.setattr(terminal, "_room", lambda: 20)
    assert "Unfinished: 1. One\ntwo three four five." in plain(page)
