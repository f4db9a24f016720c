"""The references of all configuration keys and of the search algorithms' options, made from the docstrings in exact/config.

`python -m tests.configuration_page` writes docs/configuration.md, a page for each section beside it, and docs/search_options.md;
tests/test_configuration_page.py checks them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from exact import config as package
from exact.config import Config, ModelConfig, PolicyConfig, ScopeLimits, SearchConfig, ValueConfig
from exact.config.ranges import words
from exact.config.search import OPTIONS
from exact.search.registry import BUILTIN

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
OPTIONS_PAGE = PAGE.with_name("search_options.md")
SECTIONS = PAGE.with_suffix("")
"""Folder of the pages of the sections."""

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

`python -m tests.configuration_page` writes these pages from the docstrings in [exact/config](../exact/config).
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


def default(field: Any) -> str:
    """Return the default of a key as YAML writes it; a dash where the key must be given."""
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return "-"
    plain = msgspec.to_builtins(field.default if field.default is not msgspec.NODEFAULT else field.default_factory())
    return f"`{msgspec.json.encode(plain).decode()}`" if plain != "" else "empty"


def pages() -> dict[Path, str]:
    """Return the text of each page: the index, and one for each outer section with the sections in it."""
    texts = docstrings()
    found = {PAGE: [HEAD, *table("", Config, [each for each in msgspec.structs.fields(Config) if not is_section(each)]), "## Sections\n"]}
    for path, kind in sections():
        if path:
            outer, about = path.partition(".")[0], " ".join(texts[kind.__name__][""].split())
            page = SECTIONS / f"{outer}.md"
            found.setdefault(page, []).append(f"{'#' * (1 + path.count('.'))} `{path}`\n\n{linked(about, '../')}\n")
            same = [name for name, (_, shown) in SHARED.items() if shown == path]
            if same:
                found[page].append(f"The same keys: {', '.join(f'`{name}`' for name in same)}.\n")
            found[page] += table(path, kind, list(msgspec.structs.fields(kind)))
            found[PAGE].append(entry(path, about))
    return {page: "\n".join(lines).rstrip("\n") + "\n" for page, lines in found.items()}


def entry(path: str, about: str) -> str:
    """Return the line of a section in the index, with the anchor that it had when all sections were on one page."""
    link = f'<a id="{path.replace(".", "")}"></a>[`{path}`](configuration/{path.partition(".")[0]}.md#{path.replace(".", "")})'
    return f"{'    ' * path.count('.')}- {link}: {linked(about.partition('. ')[0].rstrip('.'), '')}."


def linked(text: str, up: str) -> str:
    """Return a docstring whose names of pages are links."""
    return re.sub(r"docs/((?:\w+/)*(\w+)\.md)", lambda match: f"[{match[2].replace('_', ' ').capitalize()}]({up}{match[1]})", text)


def is_section(field: Any) -> bool:
    return section_of(field.type) is not None and field.name not in SHARED


def table(path: str, kind: type[msgspec.Struct], fields: list[Any]) -> Iterator[str]:
    """Yield the table of a section's keys."""
    texts, hints = docstrings(), get_type_hints(kind, include_extras=True)
    rows = ["| key | values | default | meaning |", "|---|---|---|---|"]
    for field in fields:
        inner, name = section_of(field.type), f"{path}.{field.name}".lstrip(".")
        meaning = texts[kind.__name__].get(field.name, "")
        if inner is not None and not meaning:
            meaning = " ".join(texts[inner.__name__][""].split())
        if inner is not None:
            what, start = "list of sections" if get_origin(field.type) is tuple else "section", ""
            if get_origin(field.type) is dict:
                what = "sections by name"
        else:
            what, start = words(hints[field.name], "`"), default(field)
        rows.append(f"| `{name}` | {what} | {start} | {linked(as_cell(meaning), '../' if path else '')} |")
    yield "\n".join(rows) + "\n"


OPTIONS_HEAD = """# Options of the search algorithms

Every option of every search algorithm, with its effect, its default and its range. [algorithms.md](algorithms.md) compares the algorithms;
[configuration.md](configuration.md) has the other keys of a configuration. A value outside of its range is an error that names the key, the
value and the range.

```yaml
search: {algorithm: gumbel, iterations: 32, options: {considered: 8, sigma: visits}}
```

In Python, `settings` takes the keys of `search`:

```python
tree = exact.search_sync(environment, policy=policy, value=value, algorithm="gumbel", settings={"depth": 4, "options": {"considered": 8}})
```

On the command line it is `--set search.options.considered=8`.

`python -m tests.configuration_page` writes this page from the types and docstrings in [exact/config/search.py](../exact/config/search.py).

## Keys of `search`

The second column lists the algorithms that read a key. The others ignore it. `explorer` reads the keys of `react`. These two simulate
nothing, so workers and spare environments stay unused.

| key | algorithms | values | default | effect |
|---|---|---|---|---|"""
RUNNER = ("algorithm", "workers", "order", "commit_by", "prefetch", "environments", "limits", "iteration")
"""Keys of `search` that the runner reads for all algorithms."""


def readers(key: str) -> list[str]:
    """Return the names of the built-in algorithms that read a key of `search`."""

    class Recording:
        def __getattr__(self, name: str) -> Any:
            read.append(name)
            return 5 if name == "k" else getattr(given, name)

    found = []
    for name, build in BUILTIN.items():
        read, given = list[str](), SearchConfig(algorithm=name)
        made = build(Recording())  # type: ignore[arg-type]
        if key in read and (key != "k" or made.k == 5):  # type: ignore[attr-defined]
            found.append(name)
    return found


def algorithms_of(key: str) -> str:
    """Return the second column of a key of `search`."""
    named = list(BUILTIN) if key in RUNNER else readers(key)
    left = [name for name in BUILTIN if name not in named]
    if len(left) <= 3:
        return f"all but {', '.join(left)}" if left else "all"
    return ", ".join(name for name in named if name != "explorer")


def as_cell(meaning: str) -> str:
    """Return a docstring as a cell of a table, with YAML's word for None."""
    return meaning.replace("|", r"\|").replace("None: ", "`null`: ")


def option_rows(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, values, default and effect of each option."""
    texts, hints = docstrings()[kind.__name__], get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        section = section_of(field.type) is not None
        what, start = ("see configuration.md", "") if section else (words(hints[field.name], "`"), default(field))
        yield field.name, what, start, as_cell(texts.get(field.name, ""))


def options_page() -> str:
    """Return the whole page of the search algorithms' options."""
    lines = [OPTIONS_HEAD]
    for name, what, start, effect in option_rows(SearchConfig):
        column = algorithms_of(name)
        effect = effect.removeprefix(f"{column}: ").replace("docs/search_options.md", "the tables below")
        lines.append(f"| `{name}` | {column} | {what} | {start} | {effect[0].upper()}{effect[1:]} |")
    for algorithm, kind in OPTIONS.items():
        lines += [f"\n## `search.options` of {algorithm}\n", "| option | values | default | effect |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {' | '.join(cells)} |" for name, *cells in option_rows(kind)]
    none = [name for name in BUILTIN if name not in OPTIONS]
    return "\n".join([*lines, f"\n{', '.join(none[:-1])} and {none[-1]} take no `search.options`.\n"])


if __name__ == "__main__":
    SECTIONS.mkdir(exist_ok=True)
    for path in {*SECTIONS.glob("*.md")} - {*(found := pages())}:
        path.unlink()
    for path, text in found.items():
        path.write_text(text, "utf-8")
    OPTIONS_PAGE.write_text(options_page(), "utf-8")
