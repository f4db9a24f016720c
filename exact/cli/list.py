"""`exact list`: tasks, configurations, prompts, providers and algorithms by name, or one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from exact.cli.init import NewFile
from exact.cli.run_folder import require_options
from exact.cli.task_files import is_task_file, read_task_files
from exact.cli.terminal import complete_configurations, complete_tasks, echo
from exact.errors import UsageError

if TYPE_CHECKING:
    from exact.prompts.library import Library
    from exact.task import Task

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON array, or one object.")


@click.command()
@click.argument("suite", required=False, shell_complete=complete_tasks)
@click.option("--fields", is_flag=True, help="Print all fields of the one task that SUITE names.")
@_JSON
def tasks(suite: str | None, fields: bool, as_json: bool) -> None:
    """Print the ids of all tasks, one on a line, or the fields of one task.

    SUITE selects a suite (miniwob) or a pattern ('miniwob/click-*?seed=1..3'). It may also be a file with your own tasks: tasks.yaml for
    all of them, 'tasks.yaml#open-*' for some.
    """
    if fields:
        values = msgspec.to_builtins(_task(suite))
        echo(json.dumps(values) if as_json else "\n".join(f"{name}: {_line(value)}" for name, value in values.items()))
        return
    ids = _ids(suite)
    echo(json.dumps(ids) if as_json else "\n".join(ids))


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path), shell_complete=complete_configurations)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="FILE: override one key. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an array of names, or one object.")
def configs(file: Path | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print the names of the shipped configurations, or the configuration in FILE with the value of every key.

    FILE is a YAML file, or the name of a shipped configuration.
    """
    from exact.config import dump, load, shipped

    if file is None:
        require_options("without FILE", "as_json")
        names = sorted(shipped())
        echo(json.dumps(names) if as_json else "\n".join(names))
        return
    resolved = load(file, overrides)
    echo(msgspec.json.encode(resolved).decode() if as_json else dump(resolved).rstrip())


@click.command()
@click.argument("name", required=False)
@click.option(
    "--folder",
    "-f",
    default="",
    metavar="DIR",
    help="Folder of templates that replace those of the package, as `prompts` of a configuration.",
)
@click.option("--example", is_flag=True, help="NAME: print the messages that the template renders to for an invented state.")
@click.option("--out", "-o", type=NewFile(), help="NAME: file to write to. Default: standard output.")
@_JSON
def prompts(name: str | None, folder: str, example: bool, out: Path | None, as_json: bool) -> None:
    """Print the names and inputs of the prompts that models are sent, or the template NAME as in its file.

    In the list, each name is followed by its version and hash, and by the file of your own prompt.

    To change a prompt: mkdir mine; exact list prompts policy > mine/policy.j2; edit it; exact run ... --set prompts=mine
    """
    from exact.prompts.library import use_folder

    if name is None:
        require_options("without NAME", "folder", "as_json")
    with use_folder(folder) as library:
        text = _all_prompts(library, as_json) if name is None else _one_prompt(library, name, example, as_json)
    if out is None:
        echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


@click.command()
@click.option("--file", "-f", default="", metavar="FILE", help="File of further providers, as `models.providers` of a configuration.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def providers(file: str, as_json: bool) -> None:
    """Print the providers of models.

    The columns are the name, the address, and the environment variable of the key.
    """
    from exact.models.providers import providers

    known = providers(file)
    if as_json:
        echo(msgspec.json.encode(known).decode())
        return
    for name, provider in known.items():
        where = ", ".join(each.base_url for each in provider.all_endpoints) or "models.ROLE.base_url"
        echo(f"{name:14} {where}  {provider.api_key_env or provider.token or 'no key'}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def algorithms(as_json: bool) -> None:
    """Print the values of `search.algorithm`.

    Built-in algorithms come first, then those of installed packages.
    """
    from exact.search.registry import names

    found = names()
    echo(json.dumps(found) if as_json else "\n".join(found))


def _ids(suite: str | None) -> list[str]:
    from exact.benchmarks import registry

    if suite is not None and is_task_file(suite):
        return [task.id for task in read_task_files([suite])]
    [suite] = registry.own_suites([suite]) if suite else [None]
    if suite is None:
        return [id for each in registry.suites().values() for id in each.ids()]
    if "/" in suite:
        return [task.id for task in registry.expand([suite])]
    return list(registry.ids(registry.suite(suite)))


def _task(pattern: str | None) -> Task:
    """Return the task of an id, or the one task of a file that a pattern names. Raises UsageError if it names several."""
    from exact.benchmarks import registry

    if pattern is None:
        raise UsageError("--fields shows one task: name it, e.g. `exact list tasks miniwob/click-test --fields`")
    if not is_task_file(pattern):
        return registry.task(*registry.own_suites([pattern]))
    found = read_task_files([pattern])
    if len(found) != 1:
        raise UsageError(
            f"{pattern} names {len(found)} tasks: name one, such as {pattern.partition('#')[0]}#{found[0].id.rpartition('/')[2]}"
        )
    return found[0]


def _line(value: object) -> str:
    return (value or "-") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _all_prompts(library: Library, as_json: bool) -> str:
    found = [library.prompt(name) for name in library.names()]
    if as_json:
        rows = [{"name": p.name, "version": p.version, "digest": p.digest, "inputs": p.inputs, "source": p.source} for p in found]
        return json.dumps(rows) + "\n"
    return "".join(f"{p.id:32} {', '.join(p.inputs)}{f'   {p.source}' if p.source else ''}\n" for p in found)


def _one_prompt(library: Library, name: str, example: bool, as_json: bool) -> str:
    """Return a template, or the messages that it renders to."""
    from exact.prompts.example import example_inputs

    if not example:
        text = library.text(name)
        return json.dumps({"name": name, "template": text}) + "\n" if as_json else text
    rendered = library.render(name, **example_inputs(library.prompt(name)))
    if as_json:
        return json.dumps({"name": rendered.id, "system": rendered.system, "user": rendered.user}) + "\n"
    return f"=== {rendered.id}\n=== system\n{rendered.system}\n\n=== user\n{rendered.user}\n"
