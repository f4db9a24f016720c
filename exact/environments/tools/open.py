"""Tools by name: functions of files and modules, and MCP servers, as a configuration or an argument of the library names them."""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from exact.config import Config, ToolConfig
from exact.config.environments import MCP, TOOL_GROUP
from exact.environments.tools.server import served_tools
from exact.environments.tools.tool import Tool, function_tool, is_declared
from exact.errors import UsageError
from exact.parts import shown
from exact.plugins import FILE_MODULE, attribute, load_file

AnyTool = Callable[..., Any] | ToolConfig | str
"""A function, async or not; `module:function`, `file.py:function`, or `file.py` for all that it declares; or a ToolConfig."""


def declared_tools(given: Sequence[AnyTool]) -> tuple[ToolConfig, ...]:
    """Return tools by their names, as a configuration has them. Raises UsageError."""
    return tuple(found for each in given for found in _declared(each))


def _declared(given: AnyTool) -> Iterable[ToolConfig]:
    if isinstance(given, ToolConfig):
        return (given,)
    if isinstance(given, str):
        return (ToolConfig(kind=given),) if not given.endswith(".py") else tools_in(Path(given))
    if not callable(given) or inspect.isclass(given):
        raise UsageError(f"a tool is {shown(given)}: give a function, its name as file.py:function, or a ToolConfig")
    return (ToolConfig(kind=_place(given)),)


def _place(function: Callable[..., Any]) -> str:
    """Return the name by which another process finds a function. One in another function is found by none, and fails there."""
    name, module = getattr(function, "__qualname__", type(function).__name__), getattr(function, "__module__", "") or ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file and (module == "__main__" or module.startswith(FILE_MODULE)):
        return f"{Path(file).absolute()}:{name}"
    return f"{module}:{name}"


def tools_in(path: Path) -> tuple[ToolConfig, ...]:
    """Return the tools that a file declares by `exact.tool`, in the order of the file. Raises UsageError if there are none."""
    module = load_file("tools", path.absolute())
    found = [name for name, each in vars(module).items() if is_declared(each) and each.__module__ == module.__name__]
    if not found:
        raise UsageError(f"tools: {path} declares no tool: write @exact.tool above a function, or name one: {path}:function")
    return tuple(ToolConfig(kind=f"{path}:{name}") for name in found)


def check_tools(tools: Sequence[ToolConfig], given: Sequence[AnyTool] = ()) -> None:
    """Raise UsageError for functions that cannot be tools, and for MCP servers whose program is not there. Nothing is started.

    `given`: functions among those that `tools` names, which are used as they are.
    """
    functions = {_place(each): each for each in given if not isinstance(each, ToolConfig | str)}
    named = [each.kind for each in tools if each.kind != MCP]
    _distinct([function_tool(functions.get(kind) or attribute("tools", kind, TOOL_GROUP)) for kind in named])
    for each in tools:
        if each.command and shutil.which(each.command[0]) is None:
            raise UsageError(f"tools: there is no program {each.command[0]!r}: install it, or write its path")


def with_tool_names(config: Config, tools: Sequence[AnyTool]) -> Config:
    """Return the configuration with the names of further tools, by which a resumed run finds them. Raises UsageError."""
    return msgspec.structs.replace(config, tools=(*config.tools, *declared_tools(tools))) if tools else config


@asynccontextmanager
async def opened_tools(tools: Sequence[ToolConfig], given: Sequence[AnyTool] = ()) -> AsyncIterator[tuple[Tool, ...]]:
    """Connect to the servers among some tools, and yield all tools.

    `given`: further ones, each unless `tools` names it; functions among them are used as they are. Raises UsageError, and
    EnvironmentFailure if a server does not answer.
    """
    functions = {_place(each): each for each in given if not isinstance(each, ToolConfig | str)}
    named, found = list(tools), list[Tool]()
    named += (each for each in declared_tools(given) if each not in named)
    async with AsyncExitStack() as stack:
        for each in named:
            if each.kind == MCP:
                found += await stack.enter_async_context(served_tools(each))
            else:
                found.append(function_tool(functions.get(each.kind) or attribute("tools", each.kind, TOOL_GROUP)))
        yield _distinct(found)


def _distinct(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    names = [each.name for each in tools]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"there are two tools of the name {name}: rename one, or give its MCP server a prefix")
    return tuple(tools)
