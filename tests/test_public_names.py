"""Public names, and names of modules and classes in prose: all are there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import exact

from . import house

NO_MODULES = {"algorithms", "attempts", "cost", "guest", "memories", "policies", "size", "suites", "tools", "values"}
"""Names after `exact.` that are groups of entry points, loggers, figures of telemetry, or of the script in a page."""
LATER = {"exact.environments.base.NOTES"}
"""Names that are gone and still stand somewhere: none should."""
EXAMPLES = {"exact/cli/NAME.py", "shop/site.yaml", "shop/tasks.yaml", "core/core.js", "tests/whole.json"}
"""Paths of other folders than this repository's, and one that a whole run writes."""


def prose() -> Iterator[tuple[Path, str]]:
    """Yield the pages, and the docstrings of the package."""
    for page in (*house.ROOT.glob("*.md"), house.ROOT / "tests" / "README.md", *(house.ROOT / "docs").rglob("*.md")):
        if page.name != "CHANGELOG.md":
            yield page, page.read_text("utf-8")
    for path in house.files().values():
        for node in ast.walk(house.parsed(path)):
            yield from ((path, each.value.value) for each in ast.iter_child_nodes(node) if house.is_text(each))  # type: ignore[attr-defined]


def members(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Return the names that statements define, each with the statements of a class."""
    found = dict[str, list[ast.stmt]]()
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = node.body if isinstance(node, ast.ClassDef) else []
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name: [] for each in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found |= {each.id: [] for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return found


def resolves(name: str) -> bool:
    """Return whether a dotted name is a module, or leads to something that one defines."""
    module = max((each for each in house.files() if f"{name}.".startswith(f"{each}.")), key=len)
    parts, body = name.removeprefix(module).split(".")[1:], house.parsed(house.files()[module]).body
    if module == "exact":
        return all(part in exact.__all__ for part in parts[:1])
    for part in parts:
        if part not in (known := members(body)):
            return False
        body = known[part]
    return True


def test_every_public_name_is_there() -> None:
    assert [name for name in exact.__all__ if getattr(exact, name, None) is None] == []


def test_every_lazy_name_is_public() -> None:
    assert set(exact._HOME) == set(exact.__all__)


def test_public_names_are_sorted() -> None:
    assert exact.__all__ == sorted(exact.__all__)


def test_a_public_name_is_the_one_of_its_module() -> None:
    from exact.task import Task

    assert exact.Task is Task


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Tusk"):
        exact.Tusk  # noqa: B018


def test_a_dotted_name_in_prose_is_there() -> None:
    names = {(path.name, each) for path, text in prose() for each in re.findall(r"(?<![\w./\"'-])exact(?:\.\w+)+", text)}
    assert [
        each for each in sorted(names) if each[1].split(".")[1] not in NO_MODULES and each[1] not in LATER and not resolves(each[1])
    ] == []


def test_a_path_in_prose_is_there() -> None:
    folders = (".github", "bench", "docs", "examples", "exact", "shells", "tests")
    known = {f"/{each.relative_to(house.ROOT).as_posix()}" for folder in folders for each in (house.ROOT / folder).rglob("*.*")}
    named = re.compile(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|js|j2|md|json|sh|yaml))`")
    paths = {(path.name, each) for path, text in prose() for each in named.findall(text) if each not in EXAMPLES}
    assert [each for each in sorted(paths) if not any(one.endswith(f"/{each[1]}") for one in known)] == []
