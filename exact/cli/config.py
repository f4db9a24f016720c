"""`exact config`: what a configuration means once its defaults are filled in."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def config() -> None:
    """Shows what a configuration means."""


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Overrides one key; may be given more than once.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of YAML.")
def show(file: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Prints the configuration in FILE with every key written out."""
    import msgspec

    from exact.config import dump, load

    resolved = load(file, overrides)
    click.echo(msgspec.json.encode(resolved).decode() if as_json else dump(resolved).rstrip())


@config.command("providers")
@click.option("--file", "-f", default="", metavar="FILE", help="Further providers: `models.providers` of a configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of one provider a line.")
def providers_(file: str, as_json: bool) -> None:
    """Prints who may serve models: name, address, and the environment variable of the key."""
    import msgspec

    from exact.models.providers import providers

    found = providers(file)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    for name, provider in found.items():
        where = ", ".join(place.base_url for place in provider.places) or "models.ROLE.base_url"
        click.echo(f"{name:14} {where}  {provider.api_key_env or provider.token or 'no key'}")


@config.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON array instead of one name a line.")
def algorithms(as_json: bool) -> None:
    """Prints the names that `search.algorithm` may have: built in, then registered by installed packages."""
    import json

    from exact.search.registry import names

    found = names()
    click.echo(json.dumps(found) if as_json else "\n".join(found))
