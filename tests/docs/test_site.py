"""The documentation site: every page is in its navigation, dead links are found, the reference covers the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import exact
from exact.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
GENERATED = {"reference/api.md", "reference/cli.md", "reference/journal.md"}


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "_site" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    named = re.findall(r"[\w/]+\.md\b", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2])
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} | GENERATED
    assert sorted(named) == sorted(pages), "add the page to nav in mkdocs.yml"


def test_the_changelog_has_one_line_a_change_and_results_have_no_plans() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    assert len(lines) <= 200 and [line for line in lines if line.startswith("  ") or len(line) > 160] == []
    for page in (ROOT / "docs" / "results").glob("*.md"):
        assert not re.search("^#.*plan", page.read_text("utf-8"), re.M | re.I), "plans are in bench/plans/"


def test_every_file_and_folder_that_a_page_names_is_there() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "tests").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages if page.name != "CHANGELOG.md")
    place = r"(?<![\w/.-])(?:exact|tests|bench|shells|docs|examples)/(?:[\w-]+/)*(?:[\w-]+\.(?:py|md|sh|toml|ya?ml|json|npz)\b|(?=`))"
    named = [each for each in re.findall(place, text) if "NAME" not in each]
    assert len(named) > 500 and sorted({each for each in named if not (ROOT / each).exists()}) == []


@pytest.mark.parametrize(
    ("page", "dead"),
    [
        ('<a href="other.html#here">', []),
        ('<a href="other.html#gone">', ["index.html: other.html#gone"]),
        ('<a href="missing.html">', ["index.html: missing.html"]),
        ('<img src="pictures/none.png">', ["index.html: pictures/none.png"]),
        ('<a href="https://example.org/x">', []),
        ('<script src="https://example.org/x.js">', ["index.html: (loaded from elsewhere) https://example.org/x.js"]),
    ],
)
def test_a_link_that_leads_nowhere_is_found(page: str, dead: list[str], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "other.html").write_text('<h1 id="here">Here</h1>')
    assert module("links").dead(tmp_path) == dead


def test_the_reference_has_every_command_event_and_public_name() -> None:
    reference = module("reference")
    assert [name for name in COMMANDS if f"## `exact {name}`\n" not in reference.cli()] == []
    api = reference.api()
    assert [name for name in exact._HOME if name != "__version__" and f".{name}\n" not in api] == []
    assert "## `committed`" in reference.journal() and "| `schema` | `int` |" in reference.journal()


def test_the_pictures_are_those_that_their_program_draws() -> None:
    pictures = module("pictures")
    for name in ("rmcts", "restoring", "debate", "contrast"):
        assert (ROOT / "docs" / "images" / f"{name}.svg").read_text("utf-8") == getattr(pictures, name)()
