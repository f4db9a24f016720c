"""Tools of MCP servers, by the official client. All of them write, unless the user says that one only reads."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from exact.action import canonical_object
from exact.config import ToolConfig
from exact.environments.sites.accounts import value_of
from exact.environments.tools.schema import fault_in, one_line
from exact.environments.tools.tool import Tool, ToolSettings, help_of
from exact.errors import ActionError, EnvironmentFailure, UsageError, unknown
from exact.parts import described
from exact.text import injections

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import CallToolResult
    from mcp_types import Tool as ServedTool

MOST_TOOLS = 200
"""Tools of one server that are offered."""
START_SECONDS = 60.0
"""Seconds that a server has to start and to name its tools."""
_MOST_PAGES = 20


@asynccontextmanager
async def served_tools(server: ToolConfig) -> AsyncIterator[tuple[Tool, ...]]:
    """Connect to a server, and yield its tools.

    The client is a task of its own, so that its end does not cancel an attempt: further calls then fail as those of a tool that raises.
    Raises UsageError if the package mcp is missing, or `reads` names a tool that is not there; EnvironmentFailure if the server does not
    answer.
    """
    _require_client()
    ready, over = asyncio.get_running_loop().create_future(), asyncio.Event()
    with tempfile.TemporaryFile("w+") as file:
        log = cast(TextIO, file)
        task = asyncio.create_task(_connection(server, log, ready, over))
        try:
            await asyncio.wait({task, ready}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise EnvironmentFailure(f"the MCP server {_named(server)} does not answer{_why(task, log)}")
            client, found = ready.result()
            yield _tools(server, client, found)
        finally:
            over.set()
            if not ready.done():
                task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # after a server has ended by itself; its calls have failed


async def _connection(server: ToolConfig, log: TextIO, ready: asyncio.Future[Any], over: asyncio.Event) -> None:
    """Hold the connection to a server until it is over. Sets `ready` to the client and the tools that the server names."""
    from mcp.client import Client

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(await _transport(server, log, stack)))
        found, cursor = list[Any](), None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found, cursor = [*found, *page.tools], page.next_cursor
            if not cursor:
                break
        if not ready.done():
            ready.set_result((client, found[:MOST_TOOLS]))
        await over.wait()


async def _transport(server: ToolConfig, log: TextIO, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
    """Return the way to a server: its standard input and output, or an address."""
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    if server.command:
        env = {name: value_of(f"env.{name} of an MCP server", text, os.environ) for name, text in server.env.items()}
        program, *arguments = server.command
        return stdio_client(StdioServerParameters(command=program, args=arguments, env=env), errlog=log)
    headers = {name: value_of(f"headers.{name} of an MCP server", text, os.environ) for name, text in server.headers.items()}
    http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
    return streamable_http_client(server.url, http_client=http)


def _require_client() -> None:
    try:
        import mcp.client  # noqa: F401
    except ImportError as error:
        raise UsageError("tools of MCP servers need the package mcp: run `pip install 'exact-agent[mcp]'`") from error


def _named(server: ToolConfig) -> str:
    return one_line(" ".join(server.command) or server.url, 120)


def _why(task: asyncio.Task[None], log: TextIO) -> str:
    """Return why a server cannot be used: the error of the client, and the last line that the server wrote."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 2000))
    said = one_line((log.read().strip().splitlines() or [""])[-1], 200)
    error = task.exception() if task.done() and not task.cancelled() else None
    parts = (described(error) if error is not None else f"in {START_SECONDS:g} s", f"it wrote: {said}" if said else "")
    return ": " + "; ".join(filter(None, parts))


def _tools(server: ToolConfig, client: Client, found: list[ServedTool]) -> tuple[Tool, ...]:
    """Return a server's tools. Raises UsageError if `reads` names another one."""
    names = [each.name for each in found]
    for name in server.reads:
        if name not in names:
            raise unknown("tool", name, names, where=f"reads of the MCP server {_named(server)}")
    return tuple(_tool(server, client, each) for each in found)


def _tool(server: ToolConfig, client: Client, served: ServedTool) -> Tool:
    schema = served.input_schema if isinstance(served.input_schema, Mapping) else {}
    said = help_of(served.description or "", schema)
    hint = served.annotations is not None and bool(served.annotations.read_only_hint)
    reads = served.name in server.reads
    settings = ToolSettings(effect="read" if reads else "write", confirm=server.confirm and not reads, seconds=server.seconds)
    return Tool(
        name=re.sub(r"\W", "_", f"{server.prefix}{served.name}")[:64], help="" if injections(said) else said, schema=schema,
        call=partial(_call, client, served.name), canonical=partial(_canonical, schema), settings=settings,
        hint=f"the server says that {one_line(served.name, 64)} only reads" if hint and not reads else "",
    )  # fmt: skip


def _canonical(schema: Mapping[str, Any], text: str) -> str:
    try:
        found = json.loads(text)
        canonical = canonical_object(found)
    except (ValueError, RecursionError) as error:
        raise ActionError(one_line(str(error), 300)) from error
    if fault := fault_in(schema, found):
        raise ActionError(fault)
    return canonical


async def _call(client: Client, name: str, text: str) -> str:
    result = await client.call_tool(name, json.loads(text))
    said = _text(result)
    return f"error: {said}" if result.is_error else said


def _text(result: CallToolResult) -> str:
    """Return a result in words: its texts, and what else it holds by kind. Without texts, its data."""
    texts = [each.text if each.type == "text" else f"({each.type})" for each in result.content]
    if not texts and result.structured_content is not None:
        with suppress(TypeError, ValueError, RecursionError):
            return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(texts) or "done, without a result"
