"""The page on tools: its programs are those of the examples, and each does what the page says, in a real browser."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact.models.scripted import Question, ScriptedServer
from tests.docs.test_goals import TITLED, free_port, running

ROOT = Path(__file__).parents[2]
EXAMPLES, PAGE = ROOT / "examples" / "tools", ROOT / "docs" / "tools.md"


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mail") / "box"


@pytest.fixture(scope="module")
def site(mail: Path) -> Iterator[str]:
    port = free_port()
    with running(sys.executable, EXAMPLES / "site.py", port, mail, port=port) as address:
        yield address


def element(state: str, text: str) -> str:
    found = re.search(rf"\[(\d+)\] {text}", state)
    return f"[{found[1]}]" if found else ""


def says(question: Question, sample: int) -> str:
    """Answer as a model that knows the way through the site and has no facts of its own."""
    offered, user = question.messages[0][1], question.messages[-1][1]
    state = user.rpartition("The current observation:")[2]
    if "Welcome, Ann" in state:
        return 'Action: stop "Logged in."'
    if opened := re.search(r"It is for customer (\d+)", state):
        if "write_file {" in offered and "Result of write_file" not in state:
            return f'Action: write_file {{"name": "receipt.txt", "text": "customer {opened[1]}"}}'
        return f'Action: stop "A ticket is open for {opened[1]}."'
    if "find_customer {" in offered:
        wanted, known = 'find_customer {"name": "Lee"}', re.search(r'"number":(\d+),"name":"Ann Lee"', state)
    elif "read_file {" in offered:
        wanted, known = 'read_file {"name": "order.txt"}', re.search(r"\| (\d+)", state)
    else:
        wanted, known = "newest_code", re.search(r"\| (\d{6})", state)
    field = re.search(r'\[(\d+)\] textbox "(Customer number|Name|Code from the mail)"[^\n]*', state)
    assert field, state
    if field[2] == "Name":
        value = "Ann"
    elif known is None:
        return f"Action: {wanted}"
    else:
        value = known[1]
    filled = f'"{value}"' in field[0].partition(field[2])[2]
    return f"Action: click {element(state, 'button')}" if filled else f'Action: fill [{field[1]}] "{value}"'


async def run(program: str, site: str, folder: Path, **more: str) -> str:
    """Run a program of the examples with a model that knows the way, and return what it prints."""
    async with ScriptedServer(says) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, EXAMPLES / program, cwd=folder, env=os.environ | {"MODEL": server.base_url, "SITE": site} | more,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    return printed


def test_the_page_shows_the_examples_as_they_are() -> None:
    shown = dict(TITLED.findall(PAGE.read_text("utf-8")))
    assert shown.keys() == {"customers.py", "code.py", "files.py"}
    assert [name for name, text in shown.items() if (EXAMPLES / name).read_text("utf-8") != text] == []


async def test_a_customer_is_looked_up_in_a_database(site: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "customers.sqlite") as database:
        database.execute("CREATE TABLE customers (number INTEGER, name TEXT)")
        database.executemany("INSERT INTO customers VALUES (?, ?)", [(41, "Bo Leeds"), (42, "Ann Lee")])
    assert "answer 'A ticket is open for 42.'" in await run("customers.py", site, tmp_path)


async def test_a_code_comes_from_the_mailbox(site: str, mail: Path, tmp_path: Path) -> None:
    assert "answer 'Logged in.'" in await run("code.py", site, tmp_path, MAIL=str(mail))


async def test_files_are_read_and_written_by_an_mcp_server(site: str, tmp_path: Path) -> None:
    (tmp_path / "order.txt").write_text("4711")
    assert "answer 'A ticket is open for 4711.'" in await run("files.py", site, tmp_path, FOLDER=str(tmp_path))
    assert (tmp_path / "receipt.txt").read_text() == "customer 4711"
