"""Garbage collection while many objects are made."""

from __future__ import annotations

import gc

import pytest

from exact.environments.browser.page.cdp import no_collection


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


def test_objects_made_in_the_block_are_not_searched_right_after_it() -> None:
    gc.collect()
    before = [each["collections"] for each in gc.get_stats()]
    with no_collection():
        made = [[] for _ in range(5_000)]
    assert [each["collections"] for each in gc.get_stats()] == before
    assert made


def test_objects_that_a_program_froze_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with no_collection():
            pass
        assert gc.get_freeze_count() > frozen / 2 > 0, "some of them may be freed meanwhile"
    finally:
        gc.unfreeze()
