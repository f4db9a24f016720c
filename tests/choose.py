"""Choose the tests of the files that changed since the last whole run: `python -m tests.choose` prints their files.

`choose.toml` maps files and folders to tests. Tests that import or name a changed file, directly or through others, are added.
`whole.json` has the commit at which all tests passed last: `shells/test.sh --whole` writes it. All tests are chosen if this clone
does not have that commit.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MAP = Path(__file__).with_suffix(".toml")
WHOLE = Path(__file__).with_name("whole.json")
MOST_ALONE = 5
"""Most tests of a whole run that may fail beside others and pass alone."""
_WRITTEN = {"tests/seconds.json", "tests/whole.json"}
"""Files that a whole run writes."""
EVERYTHING = ("tests",)


def choose(changed: Iterable[str]) -> list[str]:
    """Return the files, or `EVERYTHING`, of the tests that a change of these files, relative to the root, can fail."""
    rules = tomllib.loads(MAP.read_text("utf-8"))
    names, chosen = set[str](), set[str](_expand(rules, rules["always"]))
    for path in changed:
        tests = _entry(rules, path)
        if tests is None and path.startswith("tests/"):
            tests = _of_tests(path)
        if tests is None:
            return list(EVERYTHING)
        chosen.update(tests)
        names.add(_module(Path(path)))
    importing = (file for file in _importing(names) if file.startswith("tests/"))
    return sorted(chosen | {file for file in importing if Path(file).name.startswith("test_")})


def _entry(rules: dict[str, dict[str, list[str]]], path: str) -> set[str] | None:
    fits = [key for key in rules["tests"] if path == key or (key.endswith("/") and path.startswith(key))]
    return _expand(rules, rules["tests"][max(fits, key=len)]) if fits else None


def _expand(rules: dict, entries: Iterable[str]) -> set[str]:  # type: ignore[type-arg]
    """Return the test files that entries of the map stand for: files, folders with a slash, patterns, and names of lists with an @."""
    files = set[str]()
    for entry in entries:
        if entry.startswith("@"):
            files |= _expand(rules, rules[entry[1:]])
        elif entry.endswith("/"):
            files |= _tests_in(entry)
        else:
            files |= {_relative(each) for each in ROOT.glob(entry)}
    return files


def _of_tests(path: str) -> set[str] | None:
    """Return the tests that a changed file of the tests concerns: itself, or those of its folder. At the top, that is everything."""
    folder = ROOT / path
    if folder.name.startswith("test_"):
        return {path} & _tests_in("tests/")
    while not any((folder := folder.parent).glob("test_*.py")):
        pass
    return None if folder == ROOT / "tests" else _tests_in(_relative(folder))


@functools.cache
def _tests_in(folder: str) -> set[str]:
    return {_relative(each) for each in (ROOT / folder).rglob("test_*.py")}


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _importing(names: set[str]) -> set[str]:
    """Return the files that import these modules, directly or through others. A module may be gone: a file that imports it still counts."""
    users, found, todo = _users(), set[str](), list(names)
    while todo:
        for file in users[todo.pop()] - found:
            found.add(file)
            todo.append(_module(Path(file)))
    return found


@functools.cache
def _users() -> dict[str, set[str]]:
    """Return by the name of each module the files that import it, or name it. A user of a fixture imports its conftest."""
    users, fixtures = defaultdict[str, set[str]](set), dict[Path, set[str]]()
    files = [path for folder in ("exact", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = {path: path.read_text("utf-8") for path in files}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    facade = dict(_facade(trees[ROOT / "exact" / "__init__.py"]))
    for path, tree in trees.items():
        if path.name == "conftest.py":
            fixtures[path.parent] = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    for path, tree in trees.items():
        file = _relative(path)
        for name in (*_imported(tree, file), *_named(sources[path], started=file.startswith("tests/"))):
            users[facade.get(name, name)].add(file)
        wanted = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)} if path.name.startswith("test_") else set()
        for folder in path.parents:
            if wanted & fixtures.get(folder, set()):
                users[_module((folder / "conftest.py").relative_to(ROOT))].add(file)
    return users


def _imported(tree: ast.Module, file: str) -> Iterator[str]:
    """Yield the names of imported modules, and `exact.a.b` for a name `b` of `exact.a`, which may be a module too; not those for types."""
    package, todo = file.split("/")[:-1], list[ast.AST]([tree])
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "exact":
            yield f"exact.{node.attr}"
        todo.extend(ast.iter_child_nodes(node))


def _named(source: str, *, started: bool) -> Iterator[str]:
    """Yield modules that texts name, as `"exact.cli.show:show"`. With `started` also `"-m", "exact"` and files as `"bench" / "a.py"`."""
    yield from re.findall(r"""["'](exact(?:\.\w+)+)(?::\w+)?["']""", source)
    if started:
        yield from (f"{name}.__main__" for name in re.findall(r"""-m(?:["'], ["']| )(exact(?:\.\w+)*)""", source))
        paths = re.findall(r"(?:bench|docs|examples|shells)/[\w./-]*\w", source.replace('" / "', "/"))
        yield from map(_module, map(Path, paths))


def _facade(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names of the package `exact` with the modules that they are imported from when they are used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((f"exact.{each.name}", node.module or "") for each in node.names)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def changed_since(commit: str) -> set[str]:
    """Return the files that differ from a commit, those not yet added too. Raises CalledProcessError if git does not know the commit."""
    differing = git("diff", "--name-only", "--no-renames", "-z", commit) + git("ls-files", "--others", "--exclude-standard", "-z")
    return set(filter(None, differing.split("\0")))


def last_whole() -> dict[str, Any]:
    """Return the commit and the date of the last whole run, or nothing if none is recorded."""
    return json.loads(WHOLE.read_text("utf-8")) if WHOLE.exists() else {}


class Recorder:
    """Writes the commit of a whole run when it has passed. A run whose files differ from the commit is not recorded.

    `alone`: whether the tests are those that failed beside others. If they are few, pass now, and all others passed, they are named.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._alone, self._ids = alone, list[str]()
        self._commit, self._clean = git("rev-parse", "HEAD").strip(), changed_since("HEAD") <= _WRITTEN

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._ids = [item.nodeid for item in session.items]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus != pytest.ExitCode.OK or not self._clean or not changed_since(self._commit) <= _WRITTEN:
            return
        if self._alone and not 0 < len(self._ids) <= MOST_ALONE:
            return
        found = {"commit": self._commit, "date": time.strftime("%Y-%m-%d", time.gmtime()), **({"alone": self._ids} if self._alone else {})}
        WHOLE.write_text(json.dumps(found) + "\n", "utf-8")


def main() -> None:
    whole = last_whole()
    try:
        changed = changed_since(whole["commit"])
    except (KeyError, OSError, subprocess.CalledProcessError):
        chosen, reason = list(EVERYTHING), "the commit of the last whole run is not known here"
    else:
        chosen, reason = choose(changed), f"files that differ from the last whole run: {len(changed)}"
    extent = "everything" if chosen == list(EVERYTHING) else f"{len(chosen)} files of tests"
    sys.stderr.write(f"choose: {extent}: {reason}\n")
    sys.stdout.write("\n".join(chosen) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--last"]:
        last = last_whole()
        alone = f", {len(last['alone'])} tests passed alone" if last.get("alone") else ""
        sys.stdout.write(f"last whole run: {last['date']}, commit {last['commit'][:12]}{alone}\n" if last else "no whole run is recorded\n")
    else:
        main()
