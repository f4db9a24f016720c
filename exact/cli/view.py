"""`exact view`: show running searches in a browser, and steer them."""

from __future__ import annotations

import json
import secrets
import socket
from pathlib import Path

import click

from exact.cli.terminal import echo


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("runs"), metavar="[RUN|DIR]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on. Other machines need the token to look too.")
@click.option("--port", type=click.IntRange(0, 65535), default=7575, show_default=True, help="Port to listen on. 0 chooses a free one.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Further host name by which browsers may reach the server. Repeatable."
)
@click.option(
    "--token",
    envvar="EXACT_VIEW_TOKEN",
    help="Token that browsers must send. Default: a new one, which a loopback address asks for commands only.",
)
@click.option("--look-only", is_flag=True, help="Accept no commands that pause or steer a search.")
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def view(
    path: Path, host: str, port: int, hosts: tuple[str, ...], token: str | None, look_only: bool, show: bool, as_json: bool
) -> None:  # fmt: skip
    """Show running searches in a browser, and steer them.

    The command serves the reports of RUN, or of all runs in DIR (default: runs) or of a benchmark, and updates them. Stop it with Ctrl-C;
    searches continue.
    Prometheus finds the figures of `exact show --progress` at /metrics.
    """
    from exact.errors import UsageError

    try:
        from exact.cli.listening import listen, server, url_of
        from exact.report.live.serve import application
    except ModuleNotFoundError as error:
        raise UsageError("the live view needs starlette and uvicorn: pip install 'exact-agent[live]'") from error
    from exact.evaluation.status import exposition
    from exact.origins import is_loopback

    if not path.is_dir():
        raise UsageError(f"no run and no folder of runs at {path}: give one, e.g. `exact view runs`")
    local = is_loopback(host)
    look_freely = local and token is None
    token = token if token is not None else secrets.token_urlsafe(24)
    if not local and len(token) < 16:
        raise UsageError("a token for other machines needs at least 16 characters: omit --token to get a new one")
    with listen(host, port) as listening:
        known = {*hosts, *(() if local else (host, socket.gethostname(), *_addresses(host)))}
        address = f"{url_of(host, listening)}/{f'?token={token}' if token else ''}"
        echo(json.dumps({"url": address}) if as_json else address)
        if show:
            click.launch(address)
        app = application(path, hosts=known, token=token, look_freely=look_freely, orders=not look_only, metrics=exposition)
        server(app, log_level="critical", ws="none", lifespan="off").run(sockets=[listening])


def _addresses(host: str) -> set[str]:
    """Return the addresses of this machine if `host` stands for all of them."""
    if host not in ("0.0.0.0", "::"):
        return set()
    found = socket.getaddrinfo(socket.gethostname(), None)
    return {str(each[4][0]) for each in found}
