"""The reference of all configuration keys, docs/configuration.md, made from the docstrings in exact/config.

`python -m tests.configuration_page` writes it; tests/test_configuration_page.py checks it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from exact import config as package
from exact.config import Config, ModelConfig, PolicyConfig, ScopeLimits, ValueConfig

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"

SHARED = {
    "arms": (PolicyConfig, "policy"),
    "value.members": (ValueConfig, "value"),
    "search.iteration": (ScopeLimits, "search.limits"),
    "models.value": (ModelConfig, "models.policy"),
    "models.reflection": (ModelConfig, "models.policy"),
    "models.embedding": (ModelConfig, "models.policy"),
    "models.parts": (ModelConfig, "models.policy"),
}
"""Sections with the keys of another one, which is written once."""

HEAD = """# Configuration

A configuration is a YAML file with these sections. `exact run --config FILE` reads it, `--set search.iterations=32` overrides one key, and
`exact list configs FILE` prints it with all defaults. An unknown key is an error that names the nearest one. A renamed key is read and
reported on stderr. A removed key is an error that says what to write in its place.

`null` means that a key is not set. Words before a colon, such as `llm:`, name the kinds that use a key. The other
[pages](index.md) say when to change which key.

`python -m tests.configuration_page` writes this page from the docstrings in [exact/config](../exact/config).
"""


def docstrings() -> dict[str, dict[str, str]]:
    """Return the docstring of each section under the empty name, and of its keys, by the section's class name."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(Path(package.__file__ or "").parent.glob("*.py")):
        for section in ast.parse(file.read_text("utf-8")).body:
            if isinstance(section, ast.ClassDef):
                own = found.setdefault(section.name, {"": ast.get_docstring(section) or ""})
                for key, text in zip(section.body, section.body[1:], strict=False):
                    if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                        own[ast.unparse(key.target)] = " ".join(str(text.value.value).split())
    return found


def section_of(kind: Any) -> type[msgspec.Struct] | None:
    """Return the section that a key holds: itself, as one of a list, or by name; None for a plain value."""
    for part in (kind, *get_args(kind)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None


def sections(kind: type[msgspec.Struct] = Config, path: str = "") -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield each section with its path, the outer ones first."""
    yield path, kind
    for field in msgspec.structs.fields(kind):
        inner, name = section_of(field.type), f"{path}.{field.name}".lstrip(".")
        if inner is not None and name not in SHARED:
            yield from sections(inner, name)


def values(kind: Any) -> str:
    """Return the values that a key takes, in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = parts[1]
        low, high, above = bounds.ge, bounds.le, bounds.gt
        name = "integer" if parts[0] is int else "number"
        if high is not None:
            return f"{name}, {low if low is not None else f'above {above}'} to {high}"
        return f"{name}, at least {low}"
    if origin in (Union, UnionType):
        return " or ".join(values(part) for part in parts if part is not type(None))
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is tuple:
        return f"list of {values(parts[0])}" if get_origin(parts[0]) is not Literal else f"list of: {values(parts[0])}"
    if origin is dict:
        return "mapping"
    return {str: "text", bool: "`true`, `false`", int: "integer", float: "number"}.get(kind, "section")


def default(field: Any) -> str:
    """Return the default of a key as YAML writes it; a dash where the key must be given."""
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return "-"
    plain = msgspec.to_builtins(field.default if field.default is not msgspec.NODEFAULT else field.default_factory())
    return f"`{msgspec.json.encode(plain).decode()}`" if plain != "" else "empty"


def page() -> str:
    """Return the whole page."""
    texts, lines = docstrings(), [HEAD]
    for path, kind in sections():
        if path:
            lines.append(f"{'#' * min(4, 2 + path.count('.'))} `{path}`\n\n{' '.join(texts[kind.__name__][''].split())}\n")
            same = [name for name, (_, shown) in SHARED.items() if shown == path]
            if same:
                lines.append(f"The same keys: {', '.join(f'`{name}`' for name in same)}.\n")
        rows = ["| key | values | default | meaning |", "|---|---|---|---|"]
        hints = get_type_hints(kind, include_extras=True)
        for field in msgspec.structs.fields(kind):
            inner, name = section_of(field.type), f"{path}.{field.name}".lstrip(".")
            meaning = texts[kind.__name__].get(field.name, "")
            if inner is not None and not meaning:
                meaning = " ".join(texts[inner.__name__][""].split())
            if inner is not None:
                what, start = "list of sections" if get_origin(field.type) is tuple else "section", ""
                if get_origin(field.type) is dict:
                    what = "sections by name"
            else:
                what, start = values(hints[field.name]), default(field)
            meaning = meaning.replace("|", r"\|").replace("None: ", "`null`: ")
            rows.append(f"| `{name}` | {what} | {start} | {meaning} |")
        lines.append("\n".join(rows) + "\n")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
