"""The configuration page documents every key, and the page of the search algorithms' options every option."""

from __future__ import annotations

import re

import msgspec
import pytest

from exact.config import SearchConfig
from exact.config.search import OPTIONS
from exact.search.registry import BUILTIN
from tests.configuration_page import (
    OPTIONS_PAGE,
    PAGE,
    SECTIONS,
    docstrings,
    option_rows,
    options_page,
    pages,
    readers,
    section_of,
    sections,
)
from tests.search.test_settings import BASE, EFFECTS, trace


def test_the_configuration_pages_are_up_to_date() -> None:
    written = {path: path.read_text("utf-8") for path in (PAGE, *SECTIONS.glob("*.md"))}
    assert written == pages(), "run: python -m tests.configuration_page"


def test_a_link_to_a_section_of_the_one_page_of_old_leads_to_its_page() -> None:
    index = PAGE.read_text("utf-8")
    for path, _ in sections():
        if path:
            assert f'<a id="{path.replace(".", "")}"></a>[`{path}`](configuration/{path.partition(".")[0]}.md' in index, path


def test_the_page_of_the_search_options_is_up_to_date() -> None:
    assert OPTIONS_PAGE.read_text("utf-8") == options_page(), "run: python -m tests.configuration_page"


def test_every_configuration_key_states_its_effect() -> None:
    texts = docstrings()
    keys = [(path, kind.__name__, field) for path, kind in sections() for field in msgspec.structs.fields(kind)]
    silent = [f"{path}.{field.name}" for path, kind, field in keys if section_of(field.type) is None and field.name not in texts[kind]]
    assert not silent and len(keys) > 150


@pytest.mark.parametrize("kind", [SearchConfig, *OPTIONS.values()], ids=lambda kind: kind.__name__)
def test_every_search_option_has_an_effect_sentence_a_default_and_a_range(kind: type[msgspec.Struct]) -> None:
    for name, what, start, effect in option_rows(kind):
        assert re.fullmatch(r"[\w`,].{20,}\.", effect), name
        if what != "see configuration.md" and name not in ("algorithm", "options"):
            assert start.startswith("`") and re.match(r"`\w+`, `|(integer|number), (at least |above )?[\d.]+", what), name


@pytest.mark.parametrize("key", [key for key in EFFECTS if key not in ("algorithm", "options", "batch")])
def test_an_algorithm_ignores_a_key_that_it_is_not_listed_for(key: str) -> None:
    more, one, other = EFFECTS[key]
    for name in sorted(set(BUILTIN) - {*readers(key), "explorer"}):
        settings = {**BASE, **more, "algorithm": name}
        assert all(trace({**settings, key: one}, seed) == trace({**settings, key: other}, seed) for seed in range(4)), name
