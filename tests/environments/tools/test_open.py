"""Tools by name: of files and modules, as a configuration, the command and the library give them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import exact
from exact.config import Config, dump, parse
from exact.environments.tools.open import declared_tools, opened_tools, with_tool_names
from exact.errors import UsageError
from exact.runs.secrets import conceal, known_secrets
from exact.runs.tools import check_run_tools


@exact.tool(effect="read")
def look() -> str:
    """Look."""
    return "a box"


FILE = """
import exact

@exact.tool(effect="read")
def near(where: str) -> str: ...

@exact.tool
def send(text: str) -> str: ...

def plain(text: str) -> str: ...
"""


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ({"kind": "mine"}, "unknown value 'mine' in configuration key tools.kind"),
        ({"command": ["a"], "url": "http://a"}, "an MCP server has either a command or a url"),
        ({}, "an MCP server has either a command or a url"),
        ({"url": "file:///a"}, "invalid url 'file:///a': write http://host/mcp"),
        ({"kind": "a:b", "reads": ["c"]}, "a:b is a function, which has no keys beside kind"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused(tool: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse({"tools": [tool]})


def test_a_file_stands_for_all_that_it_declares_and_a_function_for_its_name(tmp_path: Path) -> None:
    (file := tmp_path / "tools.py").write_text(FILE)
    assert [each.kind for each in declared_tools([str(file)])] == [f"{file}:near", f"{file}:send"]
    assert [each.kind for each in declared_tools([f"{file}:plain", look])] == [f"{file}:plain", f"{__name__}:look"]


@pytest.mark.parametrize("given", [3, Path, None])
def test_what_is_no_tool_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"a tool is .*: give a function, its name as file.py:function, or a ToolConfig"):
        declared_tools([given])


async def test_a_function_is_used_as_it_is_given_and_one_that_is_named_is_loaded(tmp_path: Path) -> None:
    (file := tmp_path / "more.py").write_text(FILE)

    @exact.tool(effect="read")
    def inner() -> str:
        """Look inside."""
        return "inside"

    config = with_tool_names(Config(), [inner, f"{file}:send"])
    async with opened_tools(config.tools, [inner, f"{file}:send"]) as tools:
        assert [(each.name, each.reads) for each in tools] == [("inner", True), ("send", False)]
        assert await tools[0].call("{}") == "inside"


def test_a_program_that_is_not_there_is_named_before_anything_begins() -> None:
    config = parse({"tools": [{"command": ["no-such-program"]}], "policy": {"kind": "llm"}})
    with pytest.raises(UsageError, match="there is no program 'no-such-program'"):
        check_run_tools(config)


def test_values_for_a_server_are_secrets_which_no_run_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"TOKEN": "from-the-environment"}
    tools = [
        {"command": [sys.executable], "env": {"PIN": "literal-4711", "TOKEN": "$TOKEN"}},
        {"url": "http://a", "headers": {"X": "y-literal"}},
    ]
    config = parse({"tools": tools})
    _, stored = conceal((), config, environ)
    text = dump(stored)
    assert "literal" not in text and "<secret:tools.0.PIN>" in text and "$TOKEN" in text
    assert {"literal-4711", "from-the-environment", "y-literal"} <= {each.value for each in known_secrets((), stored, environ)}
