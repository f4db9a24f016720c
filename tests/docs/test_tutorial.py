"""The tutorial's pages, followed word for word in an empty folder: each file is written, each command is run."""

from __future__ import annotations

import math
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import exact

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs" / "tutorial").glob("*.md")), ROOT / "PACKAGE.md"]
PYTHON = os.environ.get("EXACT_TUTORIAL_PYTHON")
"""Interpreter that has the package installed: shells/wheel.sh --tutorial. None: this one, with this checkout."""
NOT_RUN = ("# needs ", "pip install ", "playwright install ")
"""Parts of a command that is not run: its comment says that it needs a server or a key, or it installs."""


class Step(NamedTuple):
    """A file to write, or a command to run."""

    file: str
    text: str


def steps(page: Path) -> Iterator[Step]:
    """Yield the steps of a page in their order."""
    for match in re.finditer(r"^```(\w+)([^\n]*)\n(.*?)^```", page.read_text("utf-8"), re.S | re.M):
        language, title, text = match.groups()
        if named := re.search(r'title="([^"]+)"', title):
            yield Step(named[1], text)
        elif language == "sh":
            yield from (Step("", line) for line in text.splitlines() if line and not any(part in line for part in NOT_RUN))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Variables in which `exact` and `python` are those of this test, and no key is set."""
    programs = tmp_path.parent / f"{tmp_path.name}-bin"
    programs.mkdir()
    for name, module in (("exact", " -m exact"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{PYTHON or sys.executable}"{module} "$@"\n')
        (programs / name).chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and name != "PYTHONPATH"}
    checkout = {} if PYTHON else {"PYTHONPATH": str(Path(exact.__file__).parents[1])}
    return {**plain, "PATH": f"{programs}:{os.environ['PATH']}", **checkout, "COLUMNS": "120"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_the_tutorial_works_word_for_word(page: Path, tmp_path: Path, environ: dict[str, str]) -> None:
    servers = []
    try:
        for step in steps(page):
            if step.file:
                (tmp_path / step.file).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / step.file).write_text(step.text, "utf-8")
            elif step.text.endswith(" &"):
                command = ["sh", "-c", f"exec {step.text.removesuffix(' &')}"]
                servers.append(subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL))
                answers(int(re.search(r"\d{4}", step.text)[0]))  # type: ignore[index]
            else:
                done = subprocess.run(["sh", "-c", step.text], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120)
                assert done.returncode == 0, f"{step.text}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    finally:
        for server in servers:
            server.terminate()
            server.wait(10)


def answers(port: int) -> None:
    """Wait until a server of the page answers."""
    for _ in range(100):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing answers at {port}")


def minutes(page: Path) -> int:
    """Return the minutes that a page takes: 100 words a minute, code among them, and 24 seconds for each command."""
    text = page.read_text("utf-8")
    commands = [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M) for line in block.splitlines() if line]
    return math.ceil(len(re.sub(r"[|#>*`]", " ", text).split()) / 100 + 0.4 * len(commands))


def test_the_index_says_of_ten_pages_what_one_learns_and_how_many_minutes_it_takes() -> None:
    index = (ROOT / "docs" / "tutorial" / "index.md").read_text("utf-8")
    rows = re.findall(r"^(\d+)\. \[[^\]]+\]\((\w+)\.md\) \*(\d+) minutes\*\n\n    (.{40,})$", index, re.M)
    assert [int(number) for number, *_ in rows] == [*range(1, 11)]
    stated = {name: int(said) for _, name, said, _ in rows}
    assert stated == {page.stem: minutes(page) for page in PAGES if page.stem not in ("index", "PACKAGE")}


def test_every_page_of_the_tutorial_has_something_to_do() -> None:
    assert [page.stem for page in PAGES if page.stem != "index" and not list(steps(page))] == []
    assert len(PAGES) >= 10
