"""A class name stands in one module, so that a reader finds the class that a name means."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "exact"
SHARED = {
    "ActionError": "guests of other interpreters raise their own, which the host turns into exact's",
    "EnvironmentFailure": "likewise",
    "Runner": "the one of the library is that of runs, and writes reports too",
}


def test_a_class_name_is_in_one_module_with_listed_exceptions() -> None:
    found: dict[str, set[Path]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(path)
    assert {name for name, paths in found.items() if len(paths) > 1} == set(SHARED)
