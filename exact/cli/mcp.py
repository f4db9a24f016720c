"""`exact mcp`: serve exact to MCP clients over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from exact.cli.signals import run_async
from exact.errors import UsageError


@click.command()
@click.option(
    "--config",
    "-c",
    "path",
    type=click.Path(path_type=Path),
    help="YAML file of the agent, its search, models and limits. Default: the built-in agent.",
)
@click.option(
    "--set", "-s", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one configuration key: search.iterations=32. Repeatable."
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs to write and read.",
)
@click.option(
    "--origin", "origins", multiple=True, metavar="ORIGIN", help="Origin that clients may have opened. Repeatable. Default: any address."
)
def mcp(path: Path | None, overrides: tuple[str, ...], runs: Path, origins: tuple[str, ...]) -> int:
    """Serve exact to MCP clients over standard input and output.

    A client starts this command. Its tools solve tasks, list tasks and runs, show search trees and states, and search memories. The agent,
    its limits and the folder are those of the command line: a client cannot change them.
    """
    try:
        import mcp.server
    except ModuleNotFoundError as error:
        raise UsageError("the MCP server needs the package mcp: pip install 'exact-agent[mcp]'") from error
    if not hasattr(mcp.server, "MCPServer"):
        raise UsageError("the MCP server needs mcp 2 or newer: pip install 'exact-agent[mcp]'")
    from exact.config import load
    from exact.interop.mcp.operations import Operations
    from exact.interop.mcp.server import build_server, serve
    from exact.search.registry import algorithm

    config = load(path, overrides)
    algorithm(config.search)
    server = build_server(Operations(config, runs, origins=origins))
    run_async(serve(server))
    return 0
