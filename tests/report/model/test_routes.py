"""What a report says of the ways environments took."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from exact.environments.base import Snapshot
from exact.environments.toy.factory import ToyEnvironment
from exact.report.model.reading import Reading
from exact.report.model.routes import lines, travel
from exact.runs.journal import events as ev
from exact.runs.journal.store import RunFolder
from tests.runs.test_routes import arrivals, prepared, run, searched


def test_every_arrival_is_counted_with_its_seconds_and_what_was_wasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = searched(prefetch=1)
    events = run(monkeypatch, tmp_path, settings)
    (journal,) = tmp_path.glob("tasks/**/journal.jsonl")
    found = travel(Reading(journal, settings, RunFolder.open(tmp_path).blobs))
    assert sum(each.times for each in found.moved) == len(arrivals(events))
    assert sum(each.seconds for each in found.moved) == pytest.approx(sum(each.seconds for each in arrivals(events)))
    returns = [each for each in prepared(events) if each.ahead < 0]
    assert (found.snapshots, found.prepared) == (sum(isinstance(each, ev.SnapshotTaken) for each in events), len(returns))
    assert len(returns) < len(prepared(events)), "a step that was taken ahead is part of its return"
    said = " ".join(lines(found))
    assert "fork" in said and f"{found.used} used, {found.prepared - found.used} wasted" in said


def test_a_snapshot_that_a_return_finds_cut_off_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def connected(environment: ToyEnvironment) -> Snapshot:
        return msgspec.structs.replace(await kept(environment), fidelity="page", severed="1 WebSocket to the outside")

    kept = ToyEnvironment.snapshot
    monkeypatch.setattr(ToyEnvironment, "snapshot", connected)
    settings = searched()
    events = run(monkeypatch, tmp_path, settings)
    (journal,) = tmp_path.glob("tasks/**/journal.jsonl")
    taken = sum(isinstance(each, ev.SnapshotTaken) for each in events)
    said = list(lines(travel(Reading(journal, settings, RunFolder.open(tmp_path).blobs))))
    assert taken and f"{taken} of them of the page only: restoring would cut off 1 WebSocket to the outside" in said
