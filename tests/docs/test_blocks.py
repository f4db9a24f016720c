"""Code blocks and commands of README and docs are right: whole programs run, fragments import, configurations parse, options exist."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
import pytest
import yaml

from exact.cli.main import COMMANDS
from exact.config import Config, parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "PACKAGE.md", *sorted((ROOT / "docs").rglob("*.md"))]
WHOLE = ("docs/library.md", "PACKAGE.md")
"""Pages whose Python blocks are whole programs."""


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```", text, re.S | re.M):
            if match[1] in languages:
                found.append(Block(str(page.relative_to(ROOT)), text.count("\n", 0, match.start()) + 1, match[1], match[2]))
    return found


def commands() -> list[tuple[str, list[str]]]:
    found = []
    for block in blocks("", "sh", "bash", "console"):
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.lstrip("$ ").startswith("exact ") and "|" not in line and "..." not in line:
                found.append((str(block), shlex.split(line.lstrip("$ "), comments=True)[1:]))
    return found


@pytest.mark.parametrize("block", [each for each in blocks("python") if each.page in WHOLE], ids=str)
def test_a_whole_program_runs(block: Block, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_what_a_fragment_imports_is_there(block: Block) -> None:
    tree = compile(block.text, str(block), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("exact"):
            try:
                module = importlib.import_module(node.module or "")
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("exact"):
                    raise
                pytest.skip(f"{error.name} is not installed: it has an environment of its own")
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_a_configuration_has_known_keys(block: Block) -> None:
    data = yaml.safe_load(block.text)
    sections = {field.name for field in msgspec.structs.fields(Config)}
    if isinstance(data, dict) and data.keys() <= sections:
        parse(data)


def settings() -> list[tuple[str, str, str]]:
    """Return the page, key and value of each setting in running text: `search.commit: plan`."""
    sections = "|".join(field.name for field in msgspec.structs.fields(Config))
    found = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
        found += [(page.name, *each) for each in re.findall(rf"`((?:{sections})(?:\.[a-z_]+)+): ([^`\n]+)`", text)]
    return found


@pytest.mark.parametrize(("page", "key", "value"), settings())
def test_a_value_that_a_page_sets_is_one_of_its_key(page: str, key: str, value: str) -> None:
    data = yaml.safe_load(value)
    for name in reversed(key.split(".")):
        data = {name: data}
    parse(data, announce=False)


@pytest.mark.parametrize(("place", "words"), commands(), ids=lambda each: each if isinstance(each, str) else " ".join(each)[:60])
def test_a_command_and_its_options_exist(place: str, words: list[str]) -> None:
    name, *arguments = words
    assert name in COMMANDS, f"{place}: exact {name}"
    module, _, function = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), function)
    while isinstance(command, click.Group) and arguments:
        child = command.get_command(click.Context(command), arguments.pop(0))
        assert child is not None, f"{place}: {' '.join(words)}"
        command = child
    command.make_parser(click.Context(command)).parse_args(list(arguments))


def test_there_are_blocks_of_each_kind() -> None:
    assert len(blocks("python")) >= 10 and len(blocks("yaml")) >= 8 and len(commands()) >= 10 and len(settings()) >= 50
