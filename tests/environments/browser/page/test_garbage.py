"""Garbage collection while many objects are made."""

from __future__ import annotations

import gc

import pytest

from exact.environments.browser.page.garbage import no_collection


def test_collection_rests_during_the_block_and_goes_on_after_it_whatever_happens() -> None:
    with pytest.raises(LookupError), no_collection(), no_collection():
        assert not gc.isenabled()
        raise LookupError
    assert gc.isenabled()


def test_collection_that_a_program_has_turned_off_stays_off() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
