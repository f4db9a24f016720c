"""The public API changes on purpose only."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import exact
from exact.deprecated import renamed_arguments
from tests.api_snapshot import PAGE, snapshot

ROOT = Path(__file__).parents[1]


def facts(text: str) -> set[str]:
    """Return what users rely on in a snapshot: classes, bases, members by class, and parameters by function. More of each harms nobody."""
    found, owner = set[str](), ""
    for line in text.splitlines():
        name, _, rest = line.strip().partition("(")
        owner = owner if line.startswith("    ") else name
        place = name if name == owner else f"{owner}.{name}"
        found |= {place, *(f"{place}({each}" for each in rest.removesuffix(")").split(", "))}
    return found


def test_nothing_public_goes_away_or_changes_unnoticed() -> None:
    gone = sorted(facts(PAGE.read_text("utf-8")) - facts(snapshot()))
    assert gone == [], "if that is meant, deprecate the old form, note it in CHANGELOG.md, and run python -m tests.api_snapshot"


@pytest.mark.parametrize(
    ("change", "harms"),
    [(("name\n", "title\n"), True), (("(a, *, b=...)", "(a)"), True), (("(a, *, b=...)", "(a, *, b=..., c=...)"), False)],
)
def test_what_goes_away_is_told_and_what_comes_is_not(change: tuple[str, str], harms: bool) -> None:
    before = "class Lamp(Struct)\n    name\nlight(a, *, b=...)\n"
    assert bool(facts(before) - facts(before.replace(*change))) == harms


@pytest.mark.parametrize("line", ["class Task(Struct)", "    instruction", "solve_sync(task, **arguments)"])
def test_a_snapshot_has_classes_members_and_functions(line: str) -> None:
    assert line in snapshot().splitlines()


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(exact.__file__).parent / "py.typed").is_file()


def test_the_version_is_semantic() -> None:
    major, minor, patch = exact.__version__.split(".")
    assert all(part.isdigit() and str(int(part)) == part for part in (major, minor, patch))


@pytest.mark.parametrize(("given", "expected"), [({"colour": "red"}, "red"), ({"color": "blue"}, "blue")])
def test_an_earlier_argument_works_and_says_the_new_name(given: dict[str, str], expected: str) -> None:
    @renamed_arguments(colour="color")
    class Lamp:
        def __init__(self, *, color: str) -> None:
            self.color = color

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert Lamp(**given).color == expected
    assert [str(each.message) for each in seen] == ([] if "color" in given else ["'colour' is now 'color'"])
    assert all(each.category is DeprecationWarning and each.filename == __file__ for each in seen)


def test_the_release_files_name_this_package_and_version() -> None:
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["title"] == "exact" and citation["version"] == exact.__version__ and citation["cff-version"] == "1.2.0"
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    assert {"build", "publish"} <= workflow["jobs"].keys()
    assert f"\n## [{exact.__version__}] - 20" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert (ROOT / ".github" / "notes" / f"v{exact.__version__}.md").read_text("utf-8").startswith(f"exact {exact.__version__}\n")
