"""The journal: what was written is read, whatever cut the writing short."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.action import Action
from exact.context import Evaluation, Proposal, Reflection
from exact.environments.base import PersonQuestion, SideEffect
from exact.errors import JournalError
from exact.models.base import Sampling, Usage
from exact.runs.journal import events as ev
from exact.runs.journal import file as journal_module
from exact.runs.journal.file import Journal, read_journal
from exact.search.base import Alternative, Decision, Done, Failure, Proposed, Selection, Stepped, Valued, Wait
from exact.task import Score, Task

NASTY = 'quote " backslash \\ newline \n tab \t nul \0 separator \u2028 漢 🙂'
TASK = Task(id="toy/a?seed=1", instruction=NASTY, origins=("http://a",), metadata={"n": 1, "x": 0.5, "b": True, "none": None})
EFFECTS = (SideEffect(kind="request", method="POST", url="http://a/?q=" + NASTY, status=200), SideEffect(kind="dialog", detail=NASTY))
REFLECTION = Reflection(id="r", kind="policy", text=NASTY, instruction="i", state="s", action="a", surprise=-0.5, outcome=0.0)
DECISION = Decision(
    edges=(1,), reason="most visits", value=None, alternatives=(Alternative(edge=0, action="go", prior=1.0, visits=0, value=None),)
)
SAMPLES: tuple[ev.AnyEvent, ...] = (
    ev.Opened(schema=ev.SCHEMA, task=TASK, seed=3, config="ab", versions={"exact": "1"}, memory="m"),
    ev.Reset(instruction=NASTY, fingerprint="f", observation="o", screenshot="s", effects=EFFECTS),
    ev.Asked(answer=Selection(id=0, node=0, needs=("value",))),
    ev.Asked(answer=Selection(id=1, node=0, edge=2, needs=("step", "value"), k=3)),
    ev.Asked(answer=Wait()),
    ev.Asked(answer=Done("16 iterations")),
    ev.Arrived(node=1, route="replay", match="drifted", transitions=2, resets=1, effects=EFFECTS, reason=NASTY),
    ev.Arrived(node=1, route="fork+replay", match="exact", failed=("restore",), environments=3, prepared=True),
    ev.SnapshotTaken(node=1, fidelity="full", bytes=80_000_000, seconds=0.5),
    ev.Prepared(node=1, route="fork", match="drifted", reason=NASTY, seconds=0.5),
    ev.Acted(node=0, edge=2, action='fill [1] "x"', fingerprint="f", effects=EFFECTS, seconds=0.25),
    ev.Acted(node=0, edge=3, action="wait", terminated=True, refused=NASTY),
    ev.RolledStep(node=1, draw=2, policy=1, index=0, action="go", rationale=NASTY, fingerprint="f", effects=EFFECTS, selection=4),
    ev.Called(
        key="k", role="value", node=1, attempt=2, prompt="value@1:ab", model="m", sampling=Sampling(n=2, seed=7),
        request="r", answer="a", usage=Usage(input_tokens=3, output_tokens=4, cost=None),
    ),
    ev.Unaccounted(role="value", node=1, model="m", lost=(NASTY,), usage=Usage(input_tokens=3, cost=0.5), selection=4),
    ev.Failed(what="model", node=0, reason=NASTY),
    ev.Recalled(node=0, kind="policy", memory="v", reflections=(REFLECTION,)),
    ev.Told(selection=0, result=Stepped(fingerprint="f", blocked=True)),
    ev.Commanded(id="c1", command="prune", node=3, by=NASTY, refused="there is no state 3"),
    ev.Told(selection=0, result=Valued(evaluation=Evaluation(value=0.1 + 0.2, samples=(0.0, 1.0), rationale=NASTY))),
    ev.Told(selection=0, result=Proposed(proposals=(Proposal(action=Action("go", ("x", 1.5), "go x", ("4",)), prior=1 / 3),))),
    ev.Told(selection=0, result=Failure(kind="drifted", reason=NASTY)),
    ev.Late(selection=3, result=Valued(evaluation=Evaluation(value=0.5, rationale=NASTY)), key="q"),
    ev.Released(selection=4),
    ev.PersonAsked(id="p1", question=PersonQuestion(kind="write", text=NASTY, method="POST", url="http://a/", fields={"a": NASTY})),
    ev.PersonAnswered(id="p1", answer="no", by=NASTY, touched=True, seconds=1.5),
    ev.Guided(match="alike", step=2, action=Action("fill", ("3", NASTY), "fill", ("3",)), reason=NASTY),
    ev.Guided(match="left"),
    ev.Decided(step=0, action="go", decision=DECISION, stopped="done"),
    ev.Committed(step=0, edge=1, action="go", fingerprint="f", effects=EFFECTS, agrees=False),
    ev.Rebuilt(transitions=3),
    ev.Judged(evaluation=Evaluation(value=1.0)),
    ev.Ended(reason=NASTY, answer=""),
    ev.Scored(score=Score(value=1.0, success=True, raw=-1.0)),
    ev.Reflected(reflection=REFLECTION),
    ev.Extracted(data=NASTY, partial=True, error=NASTY),
    ev.Resumed(versions={"exact": "2"}),
    ev.Marked(node=0, observation="o", rules=(NASTY,), model=()),
    ev.Finished(status="scored"),
)  # fmt: skip


def sample(kind: type[ev.AnyEvent]) -> ev.AnyEvent:
    return next(each for each in SAMPLES if isinstance(each, kind))


def ticking() -> Any:
    ticks = iter(range(10_000))
    return lambda: float(next(ticks))


def written(path: Path, *events: ev.AnyEvent) -> list[ev.AnyEvent]:
    journal = Journal(path, clock=ticking())
    stamped = [journal.write(event) for event in events]
    journal.close()
    return stamped


def test_every_event_has_a_sample() -> None:
    assert {type(sample) for sample in SAMPLES} == set(get_args(ev.AnyEvent))


def test_written_events_are_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "journal.jsonl"
    stamped = written(path, *SAMPLES)
    assert list(read_journal(path)) == stamped
    assert [msgspec.structs.replace(event, t=0.0) for event in stamped] == list(SAMPLES)
    assert path.read_bytes().count(b"\n") == len(SAMPLES)


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5), st.floats(0, 1))
def test_any_text_and_any_value_come_back_exactly(texts: list[str], value: float) -> None:
    event = ev.Told(selection=0, result=Valued(evaluation=Evaluation(value=value, rationale="".join(texts))))
    line = msgspec.json.encode(event)
    assert b"\n" not in line
    assert msgspec.json.decode(line, type=ev.AnyEvent) == event


def test_events_are_appended_to_existing_ones(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = written(path, *SAMPLES[:3])
    then = written(path, *SAMPLES[3:5])
    assert list(read_journal(path)) == first + then


def test_time_continues_from_the_given_start(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", clock=lambda: 107.25)
    journal.since(100.0)
    assert journal.write(ev.Released(selection=0)).t == 7.25
    journal.close()


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_last_line_is_left_out_and_cut_off_on_opening(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    stamped = written(path, *SAMPLES[:4])
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(read_journal(path)) == stamped[:3]
    (again,) = written(path, SAMPLES[4])
    assert list(read_journal(path)) == [*stamped[:3], again]


@pytest.mark.parametrize(
    "damage", [b"{}", b"", b"\xff\xfe", b'{"event":"asked"}', b'{"event":"none"}', b"[" * 100_000, b'{"event":"released","selection":"x"}']
)
def test_damage_in_the_middle_is_an_error_that_names_the_line(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    stamped = written(path, *SAMPLES[:4])
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], damage, *lines[3:]]))
    with pytest.raises(JournalError, match=r"journal\.jsonl:3 does not read") as error:
        list(read_journal(path))
    assert "\n" not in str(error.value)
    reading = read_journal(path)
    assert [next(reading), next(reading)] == stamped[:2]


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_one_damaged_byte_never_ends_in_another_error(at: int, byte: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damaged") / "journal.jsonl"
    written(path, *SAMPLES)
    data = bytearray(path.read_bytes())
    data[at % len(data)] = byte
    path.write_bytes(data)
    try:
        events = list(read_journal(path))
    except JournalError:
        return
    assert len(events) >= len(SAMPLES) - 1


def test_a_newer_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, ev.Opened(schema=ev.SCHEMA + 1, task=TASK, seed=0, config=""))
    with pytest.raises(JournalError, match=r"newer exact .* upgrade"):
        list(read_journal(path))


def test_an_older_schema_that_lacks_nothing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, ev.Opened(schema=ev.OLDEST, task=TASK, seed=0, config=""))
    assert len(list(read_journal(path))) == 1


def test_an_older_schema_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, ev.Opened(schema=ev.OLDEST - 1, task=TASK, seed=0, config="", versions={"exact": "0.1.0"}))
    with pytest.raises(JournalError, match=r"older exact .* read it with exact 0\.1\.0"):
        list(read_journal(path))


def test_a_missing_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read"):
        list(read_journal(tmp_path / "none.jsonl"))


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Journal(path)
    first.write(SAMPLES[0])
    with pytest.raises(JournalError, match="being written by another process"):
        Journal(path)
    assert len(list(read_journal(path))) == 1
    first.close()
    first.close()
    Journal(path).close()


def test_a_writer_in_another_process_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    code = f"from exact.runs.journal.file import Journal; from pathlib import Path; Journal(Path({str(path)!r}))"
    journal = Journal(path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    journal.close()
    assert "JournalError" in done.stderr and "another process" in done.stderr


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "journal.jsonl", tmp_path):
        with pytest.raises(JournalError, match="choose another output folder"):
            Journal(path)


def test_a_fact_is_on_the_disk_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    journal = Journal(tmp_path / "journal.jsonl")
    journal.listen(lambda event: order.append(f"used {type(event).__name__}"))
    monkeypatch.setattr(os, "fsync", lambda fd: order.append(f"synced {len(journal.path.read_bytes().splitlines())}"))
    for event in (SAMPLES[0], ev.Asked(answer=Wait()), sample(ev.Called), sample(ev.Committed)):
        journal.write(event)
    journal.close()
    assert order == ["synced 1", "used Opened", "used Asked", "synced 3", "used Called", "synced 4", "used Committed"]


FACTS = (
    ev.Opened,
    ev.Reset,
    ev.Arrived,
    ev.Acted,
    ev.RolledStep,
    ev.Called,
    ev.Unaccounted,
    ev.Recalled,
    ev.Late,
    ev.Commanded,
    ev.Decided,
    ev.Committed,
    ev.Ended,
    ev.Scored,
    ev.Reflected,
    ev.Finished,
)


def test_costly_or_irreversible_events_are_facts() -> None:
    assert {kind.__struct_config__.tag for kind in FACTS} == journal_module._FACTS


def test_a_full_disk_is_one_line_and_the_journal_stays_readable(tmp_path: Path) -> None:
    """A file may not grow beyond 600 bytes: the write that would pass it is cut short, as on a full disk."""
    path = tmp_path / "journal.jsonl"
    code = "\n".join(
        (
            "import sys, resource; from pathlib import Path; from exact.runs.journal.file import Journal",
            "from exact.runs.journal import events as ev",
            "from exact.errors import JournalError",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)); journal = Journal(Path(sys.argv[1])); n = 0",
            "try:",
            "    while True: journal.write(ev.Failed(what='model', node=n, reason='x' * 50)); n += 1",
            "except JournalError as error: print(n, error)",
        )
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, _, says = done.stdout.partition(" ")
    assert "cannot write" in says and "`exact resume`" in says and says.count("\n") == 1
    assert len(list(read_journal(path))) == int(count) > 2


def test_an_event_after_a_torn_write_is_on_its_own_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", clock=ticking())
    journal.write(SAMPLES[0])
    real = journal._file

    class Full:
        def write(self, data: bytes) -> int:
            real.write(data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    journal._file = Full()  # type: ignore[assignment]
    with pytest.raises(JournalError, match="No space left on device: free some space"):
        journal.write(SAMPLES[1])
    journal._file = real
    journal.write(SAMPLES[2])
    journal.close()
    assert [type(event) for event in read_journal(journal.path)] == [ev.Opened, ev.Asked]


def test_an_event_that_could_not_be_written_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[ev.AnyEvent] = []
    journal = Journal(tmp_path / "journal.jsonl")
    journal.listen(told.append)

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(JournalError, match="Input/output error"):
        journal.write(SAMPLES[0])
    journal.close()
    assert told == []
