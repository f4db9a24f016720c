"""The split of tasks and seeds."""

from __future__ import annotations

import hashlib

import pytest

from exact.errors import UsageError
from exact.learning.builtin.split import digest, load_split

PARTS = ("training", "validation", "test_seen", "test_held_out", "transfer")


def test_the_split_is_the_one_that_was_fixed_before_training() -> None:
    split = load_split()
    assert {part: digest(split.ids(part)) for part in PARTS} == split.sha256


def test_no_id_is_in_two_parts() -> None:
    split = load_split()
    ids = [id for part in PARTS for id in split.ids(part)]
    assert len(ids) == len(set(ids))
    assert not set(split.training) & set(split.held_out)


def test_halves_are_told_apart_by_the_hash_of_the_name() -> None:
    split = load_split()
    for tasks, odd in ((split.training, 0), (split.held_out, 1)):
        assert {int(hashlib.sha256(task.removeprefix("miniwob/").encode()).hexdigest()[0], 16) % 2 for task in tasks} == {odd}


@pytest.mark.parametrize("id", ["miniwob/click-tab-2?seed=10000", "miniwob/click-tab?seed=30000", "miniwob/click-tab", "trac/x?seed=10000"])
def test_a_task_of_a_test_gives_no_rewards(id: str) -> None:
    with pytest.raises(UsageError, match="is no training task"):
        load_split().check_training(id)


def test_a_training_task_gives_rewards() -> None:
    load_split().check_training("miniwob/click-tab?seed=10000")
