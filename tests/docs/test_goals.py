"""The pages from a goal to an answer: their programs are those of the examples, and each does what its page says."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from exact.models.scripted import Question, ScriptedServer

ROOT = Path(__file__).parents[2]
EXAMPLES, PAGES = ROOT / "examples" / "goals", ROOT / "docs" / "goals"
MODEL = ROOT / ".bench" / "instruct" / "qwen2.5-coder-1.5b.gguf"
SERVED = ROOT / ".bench" / "venvs" / "llamacpp" / "bin" / "python"
TITLED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.S | re.M)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(*command: object, port: int) -> Iterator[str]:
    """Run a server until it is not needed any more, and yield its address."""
    process = subprocess.Popen([str(each) for each in command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            with socket.socket() as tried:
                if not tried.connect_ex(("127.0.0.1", port)):
                    break
            assert process.poll() is None, f"{command[1]} ended"
            process_wait(process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=10)


def process_wait(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.1)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    port = free_port()
    with running(sys.executable, EXAMPLES / "site.py", port, port=port) as address:
        yield address


def says(question: Question, sample: int) -> str:
    """Answer as a model that knows the way through the site."""
    system, user = question.messages[0][1], question.messages[-1][1]
    state, goal = user.rpartition("The current observation:")[2], user.partition("⟦/goal ")[0]

    def element(text: str) -> str:
        found = re.search(rf"\[(\d+)\] {text}", state)
        return f"[{found[1]}]" if found else ""

    if "put what it tells" in system:
        page = user.partition("The page, or the next part of it:")[2]
        rows = re.findall(r'"(Shoe \d+)".*?"(\d+) euros"', page, re.S)
        return json.dumps({"shoes": [{"name": name, "euros": int(price)} for name, price in rows]})
    if "put what it found" in system:
        return '{"opens": 9, "closes": 17}'
    if "Until when" in goal or "open and close" in goal:
        return 'Action: stop "It is open from 9 to 17."'
    if "Open the page to book" in goal:
        return 'Action: stop "It is open."' if "/book" in state else f"Action: click {element('link')}"
    if 'heading "Booked"' in state:
        return 'Action: stop "It is booked."'
    for name, value in (("Name", "Ann"), ("Visitors", "2")):
        if f'"{value}"' not in (re.search(rf'textbox "{name}".*', state) or [""])[0]:
            return f'Action: fill {element(f"textbox .{name}.")} "{value}"'
    return f"Action: click {element('button')}" if "Book" in state and "refused" not in user else 'Action: stop "It was not sent."'


@asynccontextmanager
async def scripted() -> AsyncIterator[str]:
    async with ScriptedServer(says) as server:
        yield server.base_url


async def run(program: str, model: str, site: str, folder: Path, answers: str = "") -> str:
    """Run a program of the examples in a folder, and return what it prints."""
    environment = os.environ | {"MODEL": model, "SITE": site}
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLES / program, cwd=folder, env=environment, stdin=-1, stdout=-1, stderr=asyncio.subprocess.STDOUT
    )
    printed = (await process.communicate(answers.encode()))[0].decode()
    assert process.returncode == 0, printed
    return printed


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_shows_the_examples_as_they_are(page: Path) -> None:
    shown = TITLED.findall(page.read_text("utf-8"))
    assert shown
    for name, text in shown:
        files = [path for path in EXAMPLES.rglob(name) if path.read_text("utf-8") == text]
        assert files, f"{page.name} shows another {name}"
        assert name == "site.py" or len([line for line in text.splitlines() if line.strip()]) < 20


async def test_a_question_is_answered(site: str, tmp_path: Path) -> None:
    async with scripted() as model:
        assert "Hours(opens=9, closes=17)" in await run("answer.py", model, site, tmp_path)


@pytest.mark.parametrize(("allowed", "booked"), [("y", True), ("n", False)])
async def test_a_form_is_sent_if_a_person_says_so(allowed: str, booked: bool, site: str, tmp_path: Path) -> None:
    async with scripted() as model:
        printed = await run("form.py", model, site, tmp_path, f"{allowed}\n" * 30)
    assert "sends POST" in printed and "{'name': 'Ann', 'visitors': '2'}" in printed
    assert ("It is booked." in printed) is booked


async def test_the_way_of_a_form_is_carried_out_again_without_a_model(site: str, tmp_path: Path) -> None:
    async with scripted() as model:
        printed = await run("next_day.py", model, site, tmp_path)
    assert f'POST {site}/book with name, visitors, by step 3: click button "Book"' in printed
    assert "It is booked. 4 actions followed, 0 calls" in printed
    assert any(b"in the name of Bob" in path.read_bytes() for path in (tmp_path / "tuesday" / "blobs").rglob("*") if path.is_file())


async def test_several_goals_are_worked_at_in_one_browser_and_returned_from_the_journal(site: str, tmp_path: Path) -> None:
    async with scripted() as model:
        printed = [await run("session.py", model, site, tmp_path) for _ in range(2)]
    assert printed[0].splitlines() == ["It is open from 9 to 17.", "It is open.", "It is booked.", "Booked "]
    assert printed[1].startswith("It is open from 9 to 17.\nIt is open.\nIt is booked.\n")
    assert "the earlier browser is gone" in printed[1]


async def test_a_table_of_twenty_pages_is_collected(site: str, tmp_path: Path) -> None:
    async with scripted() as model:
        assert "40 shoes" in await run("table.py", model, site, tmp_path)
    rows = (tmp_path / "shoes.csv").read_text().splitlines()
    assert rows[0] == "name,euros" and rows[1] == "Shoe 1,21" and rows[-1] == "Shoe 40,60" and len(rows) == 41


@pytest.mark.parametrize(("hour", "code", "failures"), [("17", 0, 0), ("18", 3, 1)])
async def test_an_application_is_checked_in_ci(hour: str, code: int, failures: int, site: str, tmp_path: Path) -> None:
    for path in (EXAMPLES / "ci").iterdir():
        if path.is_file():
            text = path.read_text().replace("http://127.0.0.1:8000", site).replace('"17"', f'"{hour}"')
            (tmp_path / path.name).write_text(text)
    async with scripted() as model:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "exact", "run", "tasks.yaml", "--model", model, "--fail-unsolved", "--junit", "results.xml",
            cwd=tmp_path, stdout=-1, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        printed = (await process.communicate())[0].decode()
    assert process.returncode == code, printed
    suite = next(ET.parse(tmp_path / "results.xml").getroot().iter("testsuite"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", str(failures))


@pytest.mark.skipif(not (MODEL.is_file() and SERVED.is_file()), reason="the 1.5B is not installed: shells/setup.sh --instruct --llamacpp")
async def test_a_real_model_works_through_the_first_page(site: str, tmp_path: Path) -> None:
    port = free_port()
    with running(SERVED, ROOT / "bench" / "_serve_llamacpp.py", port, 2, 6144, 1, MODEL, port=port) as address:
        printed = await run("answer.py", f"{address}/v1", site, tmp_path)
    found = re.match(r"Hours\(opens=\d+, closes=\d+\)|<Solution of .*: judged, ", printed.strip())
    assert found, printed  # it is not promised that a small model finds the answer, but that it is asked
