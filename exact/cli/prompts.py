"""`exact prompts`: show the prompts that models are sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from exact.cli.init import NewFile
from exact.cli.terminal import echo

Command = Callable[..., Any]


def _folder(command: Command) -> Command:
    return click.option(
        "--folder",
        "-f",
        default="",
        metavar="DIR",
        help="Folder of templates that replace those of the package, as `prompts` of a configuration.",
    )(command)


@click.group()
def prompts() -> None:
    """Show the prompts that models are sent.

    To change a prompt: mkdir mine; exact prompts show policy > mine/policy.j2; edit it; exact run ... --set prompts=mine
    """


@prompts.command("list")
@_folder
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(folder: str, as_json: bool) -> None:
    """Print the names and inputs of the prompts.

    Each name is followed by its version and hash, and by the file of your own prompt.
    """
    import json

    from exact.prompts.library import use_folder

    with use_folder(folder) as library:
        templates = [library.prompt(name) for name in library.names()]
    if as_json:
        rows = [{"name": p.name, "version": p.version, "digest": p.digest, "inputs": p.inputs, "source": p.source} for p in templates]
        echo(json.dumps(rows))
        return
    for prompt in templates:
        echo(f"{prompt.id:32} {', '.join(prompt.inputs)}{f'   {prompt.source}' if prompt.source else ''}")


@prompts.command()
@click.argument("name")
@_folder
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(name: str, folder: str, as_json: bool) -> None:
    """Print the template NAME as in its file."""
    import json

    from exact.prompts.library import use_folder

    with use_folder(folder) as library:
        text = library.text(name)
    if as_json:
        echo(json.dumps({"name": name, "template": text}))
    else:
        echo(text, nl=False)


@prompts.command()
@click.argument("name")
@_folder
@click.option("--example", is_flag=True, help="Render for an invented state. Required.")
@click.option("--out", "-o", type=NewFile(), help="File to write to. Default: standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print or write one JSON object.")
def render(name: str, folder: str, example: bool, out: Path | None, as_json: bool) -> None:
    """Print the messages that the prompt NAME renders to."""
    import json

    from exact.errors import UsageError
    from exact.prompts.example import example_inputs
    from exact.prompts.library import use_folder

    if not example:
        raise UsageError(f"no state to render {name} for: add --example; the prompts of a run are in its report")
    with use_folder(folder) as library:
        rendered = library.render(name, **example_inputs(library.prompt(name)))
    if as_json:
        text = json.dumps({"name": rendered.id, "system": rendered.system, "user": rendered.user}) + "\n"
    else:
        text = f"=== {rendered.id}\n=== system\n{rendered.system}\n\n=== user\n{rendered.user}\n"
    if out is None:
        echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
