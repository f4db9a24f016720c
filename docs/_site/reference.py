"""The reference, made from the code: prints the pages as JSON, by their paths."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

import click
import msgspec

import exact
from exact.cli.main import COMMANDS, GROUPS
from exact.runs.journal import events

TOPICS = {
    "Front door": ("library",),
    "Tasks, observations, actions": ("task", "observation", "action"),
    "Agents": ("agents", "context", "models", "reflection"),
    "Environments": ("environments", "benchmarks"),
    "Configuration": ("config",),
    "Search": ("search",),
    "Errors": ("errors",),
}
"""Headings of the API's page, with the first parts of the modules below them."""


def api() -> str:
    """Return the page of the public names, each with its docstring."""
    lines = [
        "# API",
        "",
        f"Everything that `import exact` exports, version {exact.__version__}. What is not here is private, and may change.",
        "",
    ]
    known = {name: home for name, home in exact._HOME.items() if name != "__version__"}
    for topic, parts in TOPICS.items():
        lines += [f"## {topic}", ""]
        for name in [name for name in known if known[name].partition(".")[0] in parts]:
            lines += [f"::: exact.{known.pop(name)}.{name}", ""]
    assert not known, f"without a topic: {known}"
    return "\n".join(lines)


def cli() -> str:
    """Return the page of the commands, as click knows them."""
    lines = ["# Command line", "", "`exact COMMAND --help` prints the same. `python -m exact` is the same command.", ""]
    codes = "0 done, 1 an infrastructure failure, 2 wrong usage, 3 unsolved with `--fail-unsolved`, 4 a person is needed, 130 interrupted"
    codes += ", 143 and 129 ended by SIGTERM and SIGHUP"
    lines += [f"Exit codes: {codes}.", ""]
    for heading, group in GROUPS.items():
        lines += [f"{heading}: {', '.join(f'[`{name}`](#exact-{name})' for name in group)}.", ""]
    for name, (place, help) in COMMANDS.items():
        module, _, function = place.partition(":")
        lines += [f"## `exact {name}`", "", *_command(getattr(importlib.import_module(module), function), f"exact {name}", help)]
    return "\n".join(lines)


def _command(command: click.Command, name: str, help: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    text = inspect.cleandoc(command.help or help).replace("\b\n", "")
    yield from (f"`{name} {' '.join(command.collect_usage_pieces(context))}`", "", _escaped(text), "")
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield from ("| option | meaning |", "|---|---|")
        for option in options:
            record = option.get_help_record(context)
            assert record is not None, f"{name}: {option.name} has no help"
            yield f"| `{record[0]}` | {_escaped(record[1])} |"
        yield ""
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            each = command.get_command(context, child)
            assert each is not None
            yield from (f"### `{name} {child}`", "", *_command(each, f"{name} {child}", each.help or ""))


def _escaped(text: str) -> str:
    return re.sub(r"([<>*_|])", r"\\\1", text)


def journal() -> str:
    """Return the page of the events, each with its fields."""
    lines = ["# Journal", "", inspect.cleandoc(events.__doc__ or ""), "", f"The present schema is {events.SCHEMA}.", ""]
    source = inspect.getsource(events)
    for kind in get_args(events.AnyEvent):
        lines += [f"## `{kind.__struct_config__.tag}`", "", _escaped(re.sub(r"^`[^`]*`: ", "", inspect.cleandoc(kind.__doc__ or ""))), ""]
        rows = [
            f"| `{field.name}` | {_kind(field)} | {_meaning(source, kind.__name__, field.name)} |" for field in msgspec.structs.fields(kind)
        ]
        lines += ["| field | type | meaning |", "|---|---|---|", *[row for row in rows if not row.startswith("| `t` ")], ""]
    return "\n".join(lines)


def _kind(field: msgspec.structs.FieldInfo) -> str:
    text = getattr(field.type, "__name__", "") if not get_args(field.type) else str(field.type)
    plain = re.sub(r"\b(?:[a-z_]+\.)+([A-Za-z])", r"\1", text or str(field.type))
    return f"`{plain}`"


def _meaning(source: str, kind: str, field: str) -> str:
    """Return the docstring below a field, from the source of its class."""
    body = re.split(rf"\nclass {kind}\(", source)[-1].partition("\nclass ")[0]
    found = re.search(rf"\n    {field}: [^\n]*\n    \"\"\"(.*?)\"\"\"", body, re.S)
    return _escaped(" ".join(found[1].split())) if found else ""


if __name__ == "__main__":
    print(json.dumps({"reference/api.md": api(), "reference/cli.md": cli(), "reference/journal.md": journal()}))
