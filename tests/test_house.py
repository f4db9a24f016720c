"""The package stays a house with few rooms, without knots, and in plain English."""

from __future__ import annotations

import re

import pytest

from exact.cli.main import RETIRED
from tests import house

LONG = 400
"""Lines above which a file is long. A short one has less than a tenth."""


def test_there_are_few_files_and_few_that_a_single_one_imports() -> None:
    assert len(house.files()) <= 600 and len(house.one_door()) <= 90


def test_few_files_are_long_or_short() -> None:
    sizes = house.lines()
    assert len([each for each, size in sizes.items() if size > LONG]) <= 9
    assert len([each for each, size in sizes.items() if size < LONG // 10]) <= 20


def test_no_modules_import_each_other_in_a_loop() -> None:
    assert house.circles() == []


def test_packages_only_pass_names_on() -> None:
    assert house.busy_packages() == []


@pytest.mark.parametrize(("phrase", "most"), [("where", 10), ("what", 6), ("is no", 3), ("of own", 2)])
def test_docstrings_comments_and_pages_are_in_plain_english(phrase: str, most: float) -> None:
    assert house.phrases()[phrase] <= most


def test_no_page_script_or_message_names_a_command_as_it_was_called_before() -> None:
    old = re.compile(rf"\bexact ({'|'.join(sorted(RETIRED, key=len, reverse=True))})\b")
    folders = (("docs", "*.md"), ("exact", "*"), ("examples", "*"), ("shells", "*"), ("bench", "*.py"), ("agents", "*.md"), (".ci", "run"))
    paths = [*house.ROOT.glob("*.md"), *(path for folder, names in folders for path in (house.ROOT / folder).rglob(names))]
    texts = {
        path: path.read_text("utf-8", "replace") for path in paths if path.is_file() and path.name not in ("CHANGELOG.md", "upgrade.md")
    }
    assert len(texts) > 700
    assert [f"{path.relative_to(house.ROOT)}: {found[0]}" for path, text in texts.items() for found in old.finditer(text)] == []


def test_sentences_of_how_tos_are_short() -> None:
    assert len(house.how_tos()) > 20 and house.long_sentences() == []
