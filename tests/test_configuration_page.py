"""The configuration page documents every key."""

from __future__ import annotations

import msgspec

from tests.configuration_page import PAGE, docstrings, page, section_of, sections


def test_the_configuration_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.configuration_page"


def test_every_configuration_key_states_its_effect() -> None:
    texts = docstrings()
    keys = [(path, kind.__name__, field) for path, kind in sections() for field in msgspec.structs.fields(kind)]
    silent = [f"{path}.{field.name}" for path, kind, field in keys if section_of(field.type) is None and field.name not in texts[kind]]
    assert not silent and len(keys) > 150
