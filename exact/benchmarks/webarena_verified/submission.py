"""Files of an attempt as webarena-verified names them, to be scored again or handed in."""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

import exact
from exact.benchmarks.webarena_verified.evaluate import RecordedAttempt
from exact.environments.browser.network.har_entry import har
from exact.errors import UsageError
from exact.secrecy import NOTHING, Scrubber


def save(folder: str, attempt: RecordedAttempt, scrubber: Scrubber = NOTHING) -> Path:
    """Write `agent_response.json` and `network.har`, readable by this user only, and return their folder: `webarena_verified-1/310`.

    `scrubber` removes secrets by their values; credentials are left out by their names before.
    The first folder `webarena_verified-*` without an attempt at that task is taken. Raises UsageError where it cannot be written.
    """
    try:
        place = _new(Path(folder).expanduser(), str(attempt.task_id))
        _write(place / "agent_response.json", scrubber.text(attempt.answer or ""))
        _write(place / "network.har", json.dumps(scrubber.value(har(attempt.entries, exact.__version__)), ensure_ascii=False))
    except OSError as error:
        raise UsageError(f"no HAR can be written to {folder} ({error.strerror}): name another folder at browser.traces") from error
    return place


def _new(folder: Path, name: str) -> Path:
    for number in count(1):
        place = folder / f"webarena_verified-{number}" / name
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            continue
        return place
    raise AssertionError("the numbers do not end")


def _write(path: Path, text: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    path.write_text(text, "utf-8")
