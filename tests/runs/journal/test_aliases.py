"""Files recorded under old names read as if they had been written today."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from exact.evaluation.folder import Replay
from exact.runs.journal import events as ev
from exact.runs.journal.aliases import ALIASES, RENAMED, current
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import ResultLine, read_lines
from exact.search.base import Diverged, Done, Selection, Stepped


def journal(path: Path, schema: int, *lines: str) -> Path:
    opened = f'{{"event":"opened","schema":{schema},"task":{{"id":"t","instruction":""}},"seed":0,"config":""}}'
    path.write_text("\n".join((opened, *lines, "")))
    return path


OLD = (
    '{"event":"asked","answer":{"type":"done","reason":"1 iterations"}}',
    '{"event":"asked","answer":{"type":"selection","id":1,"node":0,"needs":["value"],"contests":true}}',
    '{"event":"told","selection":1,"result":{"type":"stepped","fingerprint":"f","held":true}}',
    '{"event":"told","selection":1,"result":{"type":"diverged","node":0,"edge":1,"stepped":{"type":"stepped","fingerprint":"f","held":true}}}',
    '{"event":"arrived","node":1,"route":"onward","verdict":"exact","failed":["restore","there"],"worlds":3,'
    '"diverged":{"type":"diverged","node":0,"edge":1,"stepped":{"type":"stepped","fingerprint":"f","held":true}}}',
    '{"event":"prepared","node":1,"route":"there","verdict":"exact"}',
    '{"event":"kept","node":1,"fidelity":"world"}',
    '{"event":"resumed","mended":true}',
    '{"event":"finished","status":"failed","missing":"world"}',
)
NEW = (
    ev.Asked(answer=Done("1 iteration")),
    ev.Asked(answer=Selection(id=1, node=0, needs=("value",), reevaluates=True)),
    ev.Told(selection=1, result=Stepped(fingerprint="f", blocked=True)),
    ev.Told(selection=1, result=Diverged(node=0, edge=1, stepped=Stepped(fingerprint="f", blocked=True))),
    ev.Arrived(
        node=1,
        route="advance",
        match="exact",
        failed=("restore", "reuse"),
        environments=3,
        diverged=Diverged(node=0, edge=1, stepped=Stepped(fingerprint="f", blocked=True)),
    ),
    ev.Prepared(node=1, route="reuse", match="exact"),
    ev.SnapshotTaken(node=1, fidelity="full"),
    ev.Resumed(repaired=True),
    ev.Finished(status="failed", missing="environment"),
)


def test_old_names_in_an_old_journal_are_read_as_current_ones(tmp_path: Path) -> None:
    _, *events = read_journal(journal(tmp_path / "journal.jsonl", RENAMED - 1, *OLD))
    assert tuple(events) == NEW


def test_current_names_in_an_old_journal_that_was_resumed_are_kept(tmp_path: Path) -> None:
    lines = [msgspec.json.encode(event).decode() for event in NEW]
    _, *events = read_journal(journal(tmp_path / "journal.jsonl", RENAMED - 1, *lines))
    assert tuple(events) == NEW


def test_the_table_is_not_consulted_for_a_current_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exact.runs.journal.file.current", lambda line: pytest.fail("consulted"))
    lines = [msgspec.json.encode(event).decode() for event in NEW]
    assert len(list(read_journal(journal(tmp_path / "journal.jsonl", RENAMED, *lines)))) == 1 + len(NEW)


def test_old_values_in_results_are_read_as_current_ones(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"task":"t","seed":0,"agent":"a","status":"failed","missing":"world"}\n')
    assert [line.missing for line in read_lines(path, ResultLine)] == ["environment"]


def test_old_fields_in_results_and_replays_are_read_as_current_ones(tmp_path: Path) -> None:
    results, replays = tmp_path / "results.jsonl", tmp_path / "replays.jsonl"
    results.write_text('{"task":"t","seed":0,"agent":"a","status":"scored","oracle":true,"told":3}\n')
    replays.write_text('{"task":"t","score":1.0,"verdict":"drifted"}\n')
    assert [line.informed for line in read_lines(results, ResultLine)] == [3]
    assert [line.match for line in read_lines(replays, Replay)] == ["drifted"]


def test_data_of_users_keeps_its_keys() -> None:
    line = {"event": "arrived", "route": "fork", "info": {"worlds": "3", "route": "there"}}
    assert json.loads(current(json.dumps(line).encode())) == line


def test_every_row_leaves_current_names_as_they_are() -> None:
    """A resumed old journal holds both, so a current value must not be the old spelling of another."""
    assert not [row for row in ALIASES if set(row.values) & set(row.values.values()) or row.now == row.field.rpartition(".")[2]]
