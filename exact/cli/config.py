"""`exact config`: show configurations with their defaults."""

from __future__ import annotations

from pathlib import Path

import click

from exact.cli.terminal import echo


@click.group()
def config() -> None:
    """Show a configuration, the model providers or the search algorithms."""


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
def show(file: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print the configuration in FILE with the value of every key."""
    import msgspec

    from exact.config import dump, load

    resolved = load(file, overrides)
    echo(msgspec.json.encode(resolved).decode() if as_json else dump(resolved).rstrip())


@config.command("providers")
@click.option("--file", "-f", default="", metavar="FILE", help="File of further providers, as `models.providers` of a configuration.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def providers_(file: str, as_json: bool) -> None:
    """Print the providers of models.

    The columns are the name, the address, and the environment variable of the key.
    """
    import msgspec

    from exact.models.providers import providers

    known = providers(file)
    if as_json:
        echo(msgspec.json.encode(known).decode())
        return
    for name, provider in known.items():
        where = ", ".join(each.base_url for each in provider.all_endpoints) or "models.ROLE.base_url"
        echo(f"{name:14} {where}  {provider.api_key_env or provider.token or 'no key'}")


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def algorithms(as_json: bool) -> None:
    """Print the values of `search.algorithm`.

    Built-in algorithms come first, then those of installed packages.
    """
    import json

    from exact.search.registry import names

    found = names()
    echo(json.dumps(found) if as_json else "\n".join(found))
