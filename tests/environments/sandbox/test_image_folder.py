"""The folder of images. Needs no runsc."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from exact.environments.sandbox import sandboxes
from tests.test_scratch import left_by_a_dead_process


class Usage(NamedTuple):
    free: int


def test_memory_is_used_where_it_is_large_enough_else_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_SHM", tmp_path)
    for free, chosen in ((sandboxes.SHM_NEEDED, tmp_path), (sandboxes.SHM_NEEDED - 1, None)):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: Usage(free))
        assert sandboxes._image_folder() == chosen


def test_images_left_by_a_crash_are_removed_before_memory_is_found_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_by_a_dead_process(tmp_path)
    monkeypatch.setattr(sandboxes, "_SHM", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0 if left.exists() else sandboxes.SHM_NEEDED))
    assert sandboxes._image_folder() == tmp_path and not left.exists()
