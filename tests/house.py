"""Figures of the package's structure and of its language, from the source alone: `python -m tests.house`."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
PHRASES = {
    "where": r"\bwhere (it|there|they|that|this|the|a|an|one|no|none|nothing|its|what|several|some)\b",
    "what": r"\b(return|returns|say|says|of|by|with|from|for|to|and) (what|why)\b",
    "is no": r"\b(is|are|was|were) no (?!longer|more|other|such)[a-z]+|\b(has|have|had) not[.,;:]|\b(needs|need) not\b|\bhas none\b",
    "of own": r"\bthat which\b|\bof (one's|the user's|its|their|his|a user's) own\b",
}
"""Turns of phrase that are rare in technical English: a condition as a place, a question as an object, a negated noun, a long genitive."""


@functools.cache
def files() -> dict[str, Path]:
    """Return the package's files by the names of their modules."""
    return {name(path): path for path in sorted((ROOT / "exact").rglob("*.py"))}


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported(path: Path, *, typing: bool) -> set[str]:
    """Return the modules of the package that a file imports, in functions too; with `typing` also those for types alone."""
    found, todo = set[str](), list[ast.AST]([parsed(path)])
    while todo:
        node = todo.pop()
        if is_typing(node) and not typing:
            continue
        if isinstance(node, ast.ImportFrom) and node.module in files() and not node.level:
            found |= {inner if (inner := f"{node.module}.{each.name}") in files() else str(node.module) for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names} & files().keys()
        todo.extend(ast.iter_child_nodes(node))
    return found - {name(path)}


def circles() -> list[set[str]]:
    """Return the sets of modules that import each other in a loop, imports for types apart."""
    graph = networkx.DiGraph((one, other) for one, path in files().items() for other in imported(path, typing=False))
    return [each for each in networkx.strongly_connected_components(graph) if len(each) > 1]


def one_door() -> list[str]:
    """Return the modules, packages apart, that exactly one other module imports."""
    doors = Counter(other for path in files().values() for other in imported(path, typing=True))
    return [each for each, path in files().items() if path.name != "__init__.py" and doors[each] == 1]


def busy_packages() -> list[str]:
    """Return the packages whose `__init__` holds more than imports, a docstring and `__all__`. The facade `exact` is not counted."""

    def is_plain(node: ast.stmt) -> bool:
        named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__getattr__")  # which passes names on later
        return named or isinstance(node, ast.Import | ast.ImportFrom) or is_typing(node) or is_text(node)

    packages = {each: path for each, path in files().items() if path.name == "__init__.py" and each != "exact"}
    return [each for each, path in packages.items() if not all(map(is_plain, parsed(path).body))]


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def lines() -> dict[str, int]:
    """Return the number of lines of each module, packages apart."""
    return {each: path.read_text("utf-8").count("\n") for each, path in files().items() if path.name != "__init__.py"}


def texts() -> Iterator[str]:
    """Yield the docstrings of modules, classes, functions and attributes, the comments, and the prose of the pages."""
    for path in files().values():
        for node in ast.walk(parsed(path)):
            yield from (node.value.value for node in ast.iter_child_nodes(node) if is_text(node))  # type: ignore[attr-defined]
        with tokenize.open(path) as file:
            yield from (each.string for each in tokenize.generate_tokens(file.readline) if each.type == tokenize.COMMENT)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "results" not in page.parts:
            yield re.sub(r"```.*?```|`[^`]*`", " ", page.read_text("utf-8"), flags=re.S)


LONGEST = 30
"""Most words of a sentence in a page that tells how to do something. A piece of code is one word."""


def how_tos() -> list[Path]:
    """Return the pages below Tutorial and How-to in the navigation of the site."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    parts = [part for part in navigation.split("\n  - ") if part.startswith(("Tutorial:", "How-to:"))]
    return [ROOT / "docs" / page for part in parts for page in re.findall(r"[\w/]+\.md", part)]


def long_sentences() -> list[str]:
    """Return the sentences of the how-tos with more than LONGEST words. List items and cells of tables are sentences too."""
    found = []
    for page in how_tos():
        text = re.sub(r"`[^`]*`", "code", re.sub(r"```.*?```", "\n\n", page.read_text("utf-8"), flags=re.S))
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)|\|", text):
            sentences = re.split(r"(?<=[.!?])[)\"*_]*\s+", " ".join(block.split()))
            found += [f"{page.name}: {each}" for each in sentences if len(re.findall(r"\w[\w'./-]*", each)) > LONGEST]
    return found


@functools.cache
def phrases() -> dict[str, float]:
    """Return how often each turn of phrase stands in 10,000 words."""
    found = [" ".join(text.split()) for text in texts()]
    words = sum(len(text.split()) for text in found)
    return {each: 10_000 * sum(len(re.findall(pattern, text, re.I)) for text in found) / words for each, pattern in PHRASES.items()}


if __name__ == "__main__":
    sizes = lines().values()
    short, long = sum(size < 40 for size in sizes), sum(size > 400 for size in sizes)
    figures: dict[str, float] = {"files": len(files()), "one door": len(one_door()), "short": short, "long": long}
    figures |= {"circles": len(circles()), "busy packages": len(busy_packages()), **phrases()}
    sys.stdout.write("".join(f"{each}: {value:.3g}\n" for each, value in figures.items()))
