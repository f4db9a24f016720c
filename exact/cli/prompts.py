"""`exact prompts`: what models are asked, word for word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from exact.cli.newfile import NewFile

Command = Callable[..., Any]


def _folder(command: Command) -> Command:
    return click.option(
        "--folder", "-f", default="", metavar="DIR", help="Templates that take the place of the package's: `prompts` of a configuration."
    )(command)


@click.group()
def prompts() -> None:
    """Shows what models are asked.

    To change a prompt: mkdir mine; exact prompts show policy > mine/policy.j2; edit it; exact run ... --set prompts=mine
    """


@prompts.command("list")
@_folder
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def list_(folder: str, as_json: bool) -> None:
    """Prints each prompt's name, version, hash and inputs, and the file of one that is the user's own."""
    import json

    from exact.prompts.library import use_folder

    with use_folder(folder) as library:
        found = [library.prompt(name) for name in library.names()]
    if as_json:
        rows = [{"name": p.name, "version": p.version, "digest": p.digest, "inputs": p.inputs, "source": p.source} for p in found]
        click.echo(json.dumps(rows))
        return
    for prompt in found:
        click.echo(f"{prompt.id:32} {', '.join(prompt.inputs)}{f'   {prompt.source}' if prompt.source else ''}")


@prompts.command()
@click.argument("name")
@_folder
def show(name: str, folder: str) -> None:
    """Prints the template NAME as it stands in its file."""
    from exact.prompts.library import use_folder

    with use_folder(folder) as library:
        click.echo(library.text(name), nl=False)


@prompts.command()
@click.argument("name")
@_folder
@click.option("--example", is_flag=True, help="For a made-up state; so far there is no other.")
@click.option("--out", "-o", type=NewFile(), help="Write it there instead.")
def render(name: str, folder: str, example: bool, out: Path | None) -> None:
    """Prints what a model is sent for the prompt NAME, both turns."""
    from exact.errors import UsageError
    from exact.prompts.example import example_inputs
    from exact.prompts.library import use_folder

    if not example:
        raise UsageError(f"nothing to render {name} for: add --example; prompts of a run are in `exact show` and its report")
    with use_folder(folder) as library:
        rendered = library.render(name, **example_inputs(library.prompt(name)))
    text = f"=== {rendered.id}\n=== system\n{rendered.system}\n\n=== user\n{rendered.user}\n"
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
