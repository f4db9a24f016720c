"""`exact serve`: serve environments to trainers over OpenEnv, a trained model, or tools to MCP clients."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exact.cli.run_folder import require_options
from exact.cli.signals import run_async
from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.origins import is_loopback
from exact.text import counted
from exact.version import set_up

if TYPE_CHECKING:
    from exact.config import Config

ASGI = Any
"""An application: a callable with a scope, and functions to receive and to send."""
_PIP = "pip install 'exact-agent[openenv]' in a virtual environment of its own"
_PIP_TRAIN = "pip install 'exact-agent[train]' in a virtual environment of its own"


@click.command()
@click.argument("environment", metavar="ENV|model|mcp")
@click.argument("folder", required=False, metavar="[MODEL]")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on. Whoever reaches it may act in the environments."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen on. 0 chooses a free one.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Further host name by which the server is asked. Repeatable.")
@click.option("--sessions", type=click.IntRange(1), default=16, show_default=True, metavar="N", help="Most sessions at once.")
@click.option("--max-steps", type=click.IntRange(0), default=0, metavar="N", help="Steps after which an episode is cut off. Default: none.")
@click.option(
    "--idle", type=click.FloatRange(0), default=600.0, show_default=True, metavar="SECONDS", help="Idle time that ends a session. 0: none."
)
@click.option(
    "--screenshots", is_flag=True, help="Put a screenshot into each observation: rows of pixels, or as a client's reset wants it."
)
@click.option("--html", is_flag=True, help="Put the page's HTML into each observation.")
@click.option(
    "--config", "-c", "path", type=click.Path(path_type=Path), help="Configuration of the browser and sandbox, or mcp: of the agent."
)
@click.option("--set", "-s", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one configuration key. Repeatable.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="mcp: folder of the runs to write and read.",
)
@click.option(
    "--origin", "origins", multiple=True, metavar="ORIGIN", help="mcp: origin that clients may have opened. Repeatable. Default: any."
)
@click.option("--stdin", "until_eof", is_flag=True, help="End when standard input does, as with the program that started this one.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def serve(
    environment: str,
    folder: str | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    sessions: int,
    max_steps: int,
    idle: float,
    screenshots: bool,
    html: bool,
    path: Path | None,
    overrides: tuple[str, ...],
    runs: Path,
    origins: tuple[str, ...],
    until_eof: bool,
    as_json: bool,
) -> None:
    """Serve the tasks of ENV as an OpenEnv server, for TRL, verifiers and others. Stop it with Ctrl-C.

    ENV is a task (miniwob/click-test), a pattern, a suite (miniwob), tasks on your own site (tasks.yaml), a toy (toy/maze) or
    module:factory. Clients choose among its tasks with reset(task_name=..., seed=...).

    `exact serve model MODEL` serves a model or an adapter that `exact train` wrote behind the Chat Completions API, one request at a time.

    `exact serve mcp` serves tools over standard input and output to the MCP client that starts it. They solve tasks, list tasks and runs,
    show search trees and states, and search memories. A client cannot change the agent, its limits and the folder of the runs.
    """
    import msgspec

    from exact.config import load

    known = {host, *hosts, *(() if is_loopback(host) else (socket.gethostname(),))}
    if folder is not None and environment != "model":
        raise UsageError(f"unexpected {folder!r}: only `exact serve model` takes a second argument")
    if environment == "mcp":
        require_options("with `exact serve mcp`", "path", "overrides", "runs", "origins")
        _mcp(load(path, overrides), runs, origins)
        return
    if environment == "model":
        require_options("with `exact serve model`", "host", "port", "hosts", "until_eof", "as_json")
        _listen(_chat(folder, known), host, port, f"the model {folder}", until_eof=until_eof, as_json=as_json)
        return
    shown = ("screenshots", "html", "path", "overrides")
    require_options("with ENV", "host", "port", "hosts", "sessions", "max_steps", "idle", *shown, "until_eof", "as_json")
    from exact.interop.openenv.catalogue import catalogue

    config = load(path, overrides)
    config = msgspec.structs.replace(config, browser=msgspec.structs.replace(config.browser, screenshots=screenshots, html=html))
    found = catalogue(environment, config, lambda text: echo(text, err=True))
    try:
        from exact.interop.openenv.server import application
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{error.name} is not installed: {set_up('--openenv', _PIP)}, then call that environment's `exact serve`"
        ) from error
    app = application(
        found,
        sessions=sessions,
        idle=idle or None,
        most=max_steps,
        screenshot=screenshots,
        name=environment.partition("/")[0],
        hosts=known,
    )
    what = f"{counted(len(found.names), 'task')}, at most {counted(sessions, 'session')}"
    _listen(app, host, port, what, sessions=sessions, until_eof=until_eof, as_json=as_json)


def _chat(folder: str | None, hosts: set[str]) -> ASGI:
    """Return the server of a model. Raises UsageError."""
    if folder is None:
        raise UsageError("name the model: `exact serve model adapters/imitation`")
    try:
        import torch  # noqa: F401

        from exact.learning.train.chat import chat_application
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{error.name} is not installed: {set_up('--train', _PIP_TRAIN)}, then call that environment's `exact serve`"
        ) from error
    from exact.learning.train.model import load_model

    return chat_application(load_model(folder), Path(folder).name, hosts)


def _mcp(config: Config, runs: Path, origins: tuple[str, ...]) -> None:
    """Serve tools over standard input and output. Raises UsageError if the package mcp is missing."""
    try:
        import mcp.server
    except ModuleNotFoundError as error:
        raise UsageError("the MCP server needs the package mcp: pip install 'exact-agent[mcp]'") from error
    if not hasattr(mcp.server, "MCPServer"):
        raise UsageError("the MCP server needs mcp 2 or newer: pip install 'exact-agent[mcp]'")
    from exact.interop.mcp.operations import Operations
    from exact.interop.mcp.server import build_server, serve
    from exact.search.registry import algorithm

    algorithm(config.search)
    run_async(serve(build_server(Operations(config, runs, origins=origins))))


def _listen(app: ASGI, host: str, port: int, what: str, *, sessions: int = 0, until_eof: bool, as_json: bool) -> None:
    """Serve an application until Ctrl-C, or until standard input ends. Raises UsageError if the address is taken."""
    from exact.cli.listening import listen, server, url_of

    with listen(host, port) as listening:
        address = url_of(host, listening)
        echo(json.dumps({"url": address, "serves": what}) if as_json else f"{address}: {what}")
        made = server(app, sessions=sessions, log_level="error")
        if until_eof:
            threading.Thread(target=_end_with_stdin, args=(made,), daemon=True).start()
        made.run(sockets=[listening])


def _end_with_stdin(server: Any) -> None:
    """Read standard input to its end, however the process at its other end ended, then tell the server to end."""
    with suppress(OSError):  # it was closed before
        while os.read(0, 1 << 16):
            pass
    server.should_exit = True
