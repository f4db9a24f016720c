"""Tools of MCP servers, by the official client over standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from exact.action import ActionSpace
from exact.config import ToolConfig
from exact.environments.tools.open import opened_tools
from exact.environments.tools.tool import CHARACTERS, Tool, called
from exact.errors import ActionError, EnvironmentFailure, ToolError, UsageError
from tests.docs.test_goals import free_port, running

FILES = Path(__file__).parents[3] / "examples" / "tools" / "file_server.py"
ODD = Path(__file__).with_name("odd_server.py")


def config(server: Path, *arguments: object, **more: Any) -> ToolConfig:
    return ToolConfig(command=(sys.executable, str(server), *map(str, arguments)), **more)


async def call(tools: tuple[Tool, ...], text: str) -> str:
    action = ActionSpace([each.verb for each in tools]).parse(text)
    (tool,) = (each for each in tools if each.name == action.name)
    return await called(tool, str(action.args[0]), lambda text: text)


async def test_all_tools_write_but_those_that_the_user_names_and_the_servers_word_is_a_hint(tmp_path: Path) -> None:
    async with opened_tools([config(FILES, tmp_path, reads=("read_file",))]) as tools:
        assert {each.name: each.reads for each in tools} == {"list_files": False, "read_file": True, "write_file": False}
        assert {each.name: each.hint for each in tools if each.hint} == {"list_files": "the server says that list_files only reads"}
        assert tools[2].verb.usage == 'write_file {"name": text, "text": text}' and tools[2].help == "Write a file."


async def test_a_call_has_its_result_and_an_error_of_the_tool_is_one_too(tmp_path: Path) -> None:
    async with opened_tools([config(FILES, tmp_path, prefix="my_")]) as tools:
        assert await call(tools, 'my_write_file {"name": "a.txt", "text": "hello"}') == "a.txt has 5 characters"
        assert await call(tools, "my_list_files") == "a.txt"
        assert (await call(tools, 'my_read_file {"name": "../b"}')).startswith("error: ")
        with pytest.raises(ActionError, match="'name' is a required property: it takes a JSON object in which name is text"):
            await call(tools, "my_read_file")


async def test_a_name_in_reads_that_the_server_lacks_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown tool 'red_file' in reads of the MCP server .* did you mean 'read_file'"):
        async with opened_tools([config(FILES, tmp_path, reads=("red_file",))]):
            pass


async def test_two_servers_with_one_name_need_a_prefix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"two tools of the name list_files: .*prefix"):
        async with opened_tools([config(FILES, tmp_path), config(FILES, tmp_path)]):
            pass


@pytest.mark.parametrize("code", ["raise SystemExit('no licence')", "print('hello')", ""])
async def test_a_program_that_is_no_server_is_an_environment_failure_of_one_line(code: str) -> None:
    broken = ToolConfig(command=(sys.executable, "-c", code))
    with pytest.raises(EnvironmentFailure, match=r"the MCP server .* does not answer: ") as raised:
        async with opened_tools([broken]):
            pass
    assert "\n" not in str(raised.value) and ("no licence" in str(raised.value)) == ("licence" in code)


async def test_a_server_that_dies_hangs_or_floods_is_a_failed_call_and_nothing_more() -> None:
    reads = ("flood", "hang", "die")
    async with opened_tools([config(ODD, seconds=60.0, reads=reads)]) as tools:
        text = await call(tools, "flood")
        assert text.endswith("(... 4,994,000 characters left out)") and len(text) < CHARACTERS + 100
    async with opened_tools([config(ODD, seconds=0.5, reads=reads)]) as tools:
        with pytest.raises(ToolError, match=r"hang gave no answer within 0.5 s"):
            await call(tools, "hang")
        for _ in range(2):
            with pytest.raises(ToolError):
                await call(tools, "die")


async def test_a_description_that_speaks_to_the_model_is_left_out_and_odd_names_become_verbs() -> None:
    async with opened_tools([config(ODD)]) as tools:
        found = {each.name: each.help for each in tools}
        assert found["evil_tool"] == "" and "\n" not in found["flood"] and "⟦" not in found["flood"]
        assert len(found["flood"]) <= 400


async def test_a_server_that_runs_elsewhere_is_reached_by_its_address_and_gets_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "key-4711")
    port = free_port()
    with running(sys.executable, ODD, port, port=port) as address:
        far = ToolConfig(url=f"{address}/mcp", headers={"Authorization": "$TOKEN_OF_TEST"}, reads=("whoami",))
        async with opened_tools([far]) as tools:
            assert await call(tools, "whoami") == "key-4711"
