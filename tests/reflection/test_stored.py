"""What becomes of what is stored: use, utility, merging, eviction, forgetting, freezing. The same over every database."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.context import Context, Reflection
from exact.errors import UsageError
from exact.reflection.embed import HashedEmbedding
from exact.reflection.memory.open import SQLiteMemory, StoredMemory, open_memory
from exact.reflection.memory.table import Facts
from exact.reflection.record import content_id

_NUMBERS = itertools.count()
Look = Callable[..., Context]
Open = Callable[..., StoredMemory]


@pytest.fixture(params=["sqlite", "postgres", "pgvector"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open the same memory each time; one process may do so more than once."""
    if request.param == "sqlite":
        yield lambda **options: open_memory(tmp_path / "m.sqlite", **options)
        return
    address = request.getfixturevalue(request.param).database(f"stored{next(_NUMBERS)}")
    yield lambda **options: open_memory(address, **options)


def recall(memory: StoredMemory, context: Context, *, k: int = 9, threshold: float = -1, without: str | None = None) -> list[str]:
    return [r.text for r in memory.retrieve(context, "policy", k=k, threshold=threshold, exclude_task=without)]


def lesson(make: Any, text: str, *, task: str = "suite/a?seed=0", **fields: Any) -> Reflection:
    made = msgspec.structs.replace(make.reflection("Press Go", "[1] button Go", task, text=text), **fields)
    return msgspec.structs.replace(made, id=content_id(made))


def test_another_process_reads_what_was_written_to_the_same_memory(opened: Open, make: Any, look: Look) -> None:
    written = lesson(make, "Look first.")
    with opened() as one, opened() as other:
        one.add(written)
        one.add(written)
        assert other.retrieve(look("Press Go"), "policy", k=3, threshold=0.3, exclude_task=None) == (written,)
        assert len(other) == 1 and one.version == other.version


def test_a_reflection_that_coincides_with_failure_fades_and_a_helpful_one_does_not(opened: Open, make: Any, look: Look) -> None:
    good, bad = lesson(make, "Look up."), lesson(make, "Guess wildly.")
    with opened() as memory:
        memory.add_all([good, bad])
        assert recall(memory, look("Press Go")) == ["Guess wildly.", "Look up."], "ties go to the newer"
        for attempt in range(3):
            memory.used(f"g{attempt}", [good.id], success=True)
            memory.used(f"b{attempt}", [bad.id], success=False)
        assert recall(memory, look("Press Go")) == ["Look up.", "Guess wildly."]
        for attempt in range(3, 12):
            memory.used(f"b{attempt}", [bad.id], success=False)
        assert recall(memory, look("Press Go")) == ["Look up."]
        assert memory.entry(bad.id).hurt == 12 and memory.entry(bad.id).status == "kept"


def test_a_repeated_report_counts_once_and_an_unevaluated_attempt_does_not_count(opened: Open, make: Any) -> None:
    written = lesson(make, "Look up.")
    with opened() as memory:
        memory.add(written)
        for success in (True, True, False):
            memory.used("attempt", [written.id, written.id], success)
        memory.used("other", [written.id], None)
        entry = memory.entry(written.id)
    assert (entry.retrieved, entry.helped, entry.hurt) == (2, 1, 0)


def test_the_same_reflection_from_two_tasks_is_stored_once_and_counts_for_both(opened: Open, make: Any, look: Look) -> None:
    first = lesson(make, "Expected 0.80, came 0.10. Look before pressing.")
    again = lesson(make, "Expected 0.75, came 0.20. Look before pressing.", task="suite/b?seed=4")
    with opened() as memory:
        memory.add(first)
        memory.add(again)
        assert recall(memory, look("Press Go")) == [first.text]
        assert memory.entry(again.id).status == "merged" and memory.entry(again.id).note == first.id
        assert not recall(memory, look("Press Go"), without="suite/b?seed=9")
        assert memory.restore([again.id]) == 1
        assert recall(memory, look("Press Go"), without="suite/b?seed=9") == [first.text]
        assert memory.merge() == 1 and recall(memory, look("Press Go")) == [first.text]


def test_reflections_that_differ_in_direction_or_action_are_not_merged(opened: Open, make: Any) -> None:
    with opened() as memory:
        memory.add(lesson(make, "Look before pressing.", surprise=0.5))
        memory.add(lesson(make, "Look before pressing.", surprise=-0.5, task="b"))
        memory.add(lesson(make, "Look before pressing.", surprise=0.5, action_label="wait", task="c"))
        assert len(memory) == 3


def test_over_capacity_those_that_helped_least_are_evicted_and_can_be_restored(opened: Open, make: Any, look: Look) -> None:
    texts = ["Look up.", "Count down.", "Turn around."]
    with opened(capacity=2) as memory:
        kept = [lesson(make, text) for text in texts]
        memory.add_all(kept[:2])
        memory.used("x", [kept[0].id], success=True)
        memory.add(kept[2])
        assert {entry.reflection.text for entry in memory.entries()} == {"Look up.", "Turn around."}
        assert len(memory) == 2 and set(recall(memory, look("Press Go"))) == {"Look up.", "Turn around."}
        assert [entry.reflection.text for entry in memory.entries("evicted")] == ["Count down."]
        assert memory.restore([kept[1].id]) == 1 and len(memory) == 3


def test_over_capacity_what_was_never_shown_is_spared_before_what_was(opened: Open, make: Any) -> None:
    kept = [lesson(make, text) for text in ("Look up.", "Count down.", "Turn around.", "Wait here.")]
    with opened(capacity=2) as memory:
        memory.add_all(kept[:2])
        for attempt in range(5):
            memory.used(f"a{attempt}", [kept[0].id], success=True)
        for attempt in range(4):
            memory.used(f"a{attempt}", [kept[1].id], success=True)
        memory.add(kept[2])
        assert [entry.reflection.text for entry in memory.entries()] == ["Turn around.", "Look up."], "what helped less goes"
        memory.add(kept[3])
        assert [entry.reflection.text for entry in memory.entries()] == ["Wait here.", "Look up."], "of what was never shown the oldest"


def test_a_forgotten_reflection_is_not_found_until_it_is_restored(opened: Open, make: Any, look: Look) -> None:
    written = lesson(make, "Look up.")
    with opened() as memory, opened() as other:
        memory.add(written)
        assert recall(other, look("Press Go")) and [e.reflection for e in other.search("pressing go look")] == [written]
        assert memory.forget([written.id[:8]], "wrong") == 1
        assert not recall(other, look("Press Go")) and not other.search("look")
        assert other.entry(written.id).note == "wrong"
        memory.add(written)
        assert not recall(other, look("Press Go")), "what a person forgot does not come back by being written again"
        assert other.restore([written.id]) == 1 and recall(memory, look("Press Go"))


def test_a_frozen_memory_stays_as_it_was_and_can_be_frozen_so_again(opened: Open, make: Any, look: Look) -> None:
    one, two = lesson(make, "Look up."), lesson(make, "Count down.")
    with opened() as memory, opened() as later, opened() as current:
        memory.add(one)
        version = memory.freeze()
        memory.add(two)
        memory.used("x", [one.id], success=False)
        memory.forget([one.id])
        assert recall(memory, look("Press Go")) == ["Look up."] and memory.version == version
        assert later.freeze(version) == later.version == version and recall(later, look("Press Go")) == ["Look up."]
        assert recall(current, look("Press Go")) == ["Count down."]
        with pytest.raises(UsageError, match="no version"):
            memory.freeze("latest")


def test_reflections_of_a_template_are_left_out_with_its_tasks(opened: Open, make: Any, look: Look) -> None:
    with opened() as memory:
        memory.add(lesson(make, "Look up.", task="shop/17", template="cart-3"))
        now = look("Press Go", task="shop/18")
        other = msgspec.structs.replace(now, task=msgspec.structs.replace(now.task, metadata={"template": "cart-3"}))
        assert recall(memory, now, without="shop/18") == ["Look up."]
        assert recall(memory, other, without="shop/18") == []


def test_words_in_common_decide_between_situations_that_are_alike(opened: Open, make: Any, look: Look) -> None:
    with opened() as memory:
        memory.add(lesson(make, "The warranty is in the footer."))
        memory.add(lesson(make, "Count down."))
        assert recall(memory, look("Press Go warranty footer"), k=1) == ["The warranty is in the footer."]


def test_a_faded_reflection_stays_faded_when_it_is_learned_again(opened: Open, make: Any, look: Look) -> None:
    bad, again = lesson(make, "Expected 0.80. Guess wildly."), lesson(make, "Expected 0.70. Guess wildly.")
    with opened() as memory:
        memory.add(bad)
        memory.add(lesson(make, "Look up."))
        for attempt in range(12):
            memory.used(f"b{attempt}", [bad.id], success=False)
            memory.used(f"g{attempt}", [lesson(make, "Look up.").id], success=True)
        assert recall(memory, look("Press Go")) == ["Look up."]
        memory.add(again)
        assert recall(memory, look("Press Go")) == ["Look up."] and memory.entry(again.id).status == "merged"


def test_a_forgotten_reflection_does_not_return_in_nearly_the_same_words(opened: Open, make: Any, look: Look) -> None:
    with opened() as memory:
        memory.add(lesson(make, "Expected 0.80. Press it twice."))
        memory.forget([memory.entries()[0].reflection.id])
        memory.add(lesson(make, "Expected 0.65. Press it twice.", task="suite/b?seed=1"))
        assert not recall(memory, look("Press Go")) and len(memory.entries("forgotten")) == 2


def test_reflections_merged_in_two_steps_count_as_from_all_their_tasks_for_later_readers(opened: Open, make: Any, look: Look) -> None:
    texts = [f"Expected 0.{n}. Look before pressing." for n in (80, 70, 60)]
    first, second, third = (lesson(make, text, task=f"suite/{name}?seed=0") for text, name in zip(texts, "abc", strict=True))
    with opened() as memory:
        memory.add_all([first, second, third])
        memory.restore([second.id])
        memory.forget([third.id])
        memory.restore([third.id])
        assert len(memory) == 3
        memory.forget([first.id])
        assert memory.merge() == 1, "the third into the second"
        memory.restore([first.id])
        assert memory.merge() == 1, "the second into the first"
        with opened() as later:
            for each in (memory, later):
                assert recall(each, look("Press Go")) == [first.text]
                assert not any(recall(each, look("Press Go"), without=f"suite/{name}?seed=9") for name in "abc")


def test_a_copied_reflection_counts_as_from_all_its_tasks(opened: Open, make: Any, look: Look, tmp_path: Path) -> None:
    kept, merged = (lesson(make, f"Expected 0.{n}. Look first.", task=f"suite/{name}?seed=0") for n, name in ((80, "a"), (70, "b")))
    unsure, surer = (lesson(make, "Look twice.", task=f"suite/{name}?seed=0", outcome=v) for v, name in ((0.7, "c"), (1.0, "d")))
    dropped = lesson(make, "Never mind.")
    with opened() as memory, SQLiteMemory(tmp_path / "other.sqlite") as other:
        memory.add_all([kept, unsure, merged, surer, dropped])
        memory.forget([dropped.id])
        assert other.add_all(memory.reflections()) == 4
        assert [entry.reflection for entry in other.entries()] == [entry.reflection for entry in memory.entries()]
        for name in "abcd":
            assert recall(other, look("Press Go"), without=f"suite/{name}?seed=9") == recall(
                memory, look("Press Go"), without=f"suite/{name}?seed=9"
            )
            assert len(recall(other, look("Press Go"), without=f"suite/{name}?seed=9")) == 1


def test_a_merge_is_completed_although_another_process_changed_its_target(
    opened: Open, make: Any, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, merged = (lesson(make, f"Expected 0.{n}. Look first.", task=f"suite/{name}?seed=0") for n, name in ((80, "a"), (70, "b")))
    with opened() as other, opened() as reader:
        other.add_all([kept, merged])
        facts = reader._table.facts

        def read_before_it_was_used() -> Facts:
            found = facts()
            monkeypatch.undo()
            other.used("attempt", [kept.id], True)
            return found

        monkeypatch.setattr(reader._table, "facts", read_before_it_was_used)
        assert not recall(reader, look("Press Go")), "it has read what was merged alone"
        assert recall(reader, look("Press Go")) == [kept.text]
        assert not recall(reader, look("Press Go"), without="suite/b?seed=9")


def test_each_of_many_reflections_of_one_situation_is_recognised_again(opened: Open, make: Any) -> None:
    with opened() as memory:
        for round in range(2):
            memory.add_all([lesson(make, f"Expected {round}. {word * 3} alone.") for word in "abcdefghijklmnopqrstuvwxy"])
        assert len(memory) == 25 and len(memory.entries("merged")) == 25


def test_an_uncertain_reflection_does_not_replace_a_certain_one(opened: Open, make: Any, look: Look) -> None:
    with opened() as memory:
        memory.add(lesson(make, "Look up.", outcome=0.95))
        memory.add_all([lesson(make, f"Perhaps {word * 4}.", outcome=0.5) for word in "abcdefghijklmnopqrst"])
        found = memory.retrieve(look("Press Go"), "policy", k=1, threshold=0.1, exclude_task=None, confidence=0.2)
        assert [each.text for each in found] == ["Look up."]


def test_a_frozen_memory_is_unaffected_by_later_removals_and_restores(opened: Open, make: Any, look: Look) -> None:
    one, two = lesson(make, "Look up."), lesson(make, "Count down.")
    with opened() as memory:
        memory.add_all([one, two])
        memory.forget([one.id])
        version = memory.version
        memory.restore([one.id])
        memory.forget([two.id])
        memory.restore([two.id])
        assert memory.freeze(version) == version and recall(memory, look("Press Go")) == ["Count down."]
        with pytest.raises(UsageError, match="not come to version"):
            memory.freeze("9:999")


def test_merged_reflections_crowd_out_no_active_ones_in_a_search(opened: Open, make: Any) -> None:
    same = [lesson(make, f"Expected 0.{n}. Look before the stars.", task=f"suite/{n}?seed=0") for n in range(20, 40)]
    long = (
        "When there are many stars, count the stars one after the other until none is left to count.",
        "When the list of stars is long, scroll to its end before the stars are counted.",
    )
    others = [lesson(make, text) for text in long]
    with opened() as memory:
        memory.add_all([*same, *others])
        assert memory.entry(same[5].id).status == "merged"
        assert {entry.reflection.id for entry in memory.search("stars", k=3)} == {same[0].id, *(other.id for other in others)}


def test_it_says_in_which_attempts_a_reflection_was_shown(opened: Open, make: Any) -> None:
    with opened() as memory:
        memory.add(lesson(make, "Look up."))
        (entry,) = memory.entries()
        for attempt, success in (("a", True), ("b", None), ("c", False)):
            memory.used(attempt, [entry.reflection.id, "of another memory"], success)
        assert [(use.attempt, use.success) for use in memory.uses(entry.reflection.id)] == [("a", True), ("b", None), ("c", False)]
        assert not memory.uses("of another memory")


def test_an_unknown_id_and_one_that_fits_several_are_the_users_mistake(opened: Open, make: Any) -> None:
    with opened() as memory:
        for text in ("a", "b", "c"):
            memory.add(lesson(make, text))
        with pytest.raises(UsageError, match="no reflection"):
            memory.entry("zz")
        with pytest.raises(UsageError, match="more than one"):
            memory.entry("")


def test_reflections_of_an_earlier_version_without_stored_words_are_found_as_before(opened: Open, make: Any, look: Look) -> None:
    with opened() as memory:
        for text in ("Look up.", "Press Go twice.", "Never press Stop."):
            memory.add(lesson(make, text))
        before = memory.retrieve(look("Press Go twice"), "policy", k=3, threshold=0.1, exclude_task=None)
        memory._database.execute("DROP TABLE vocabulary")
    with opened() as memory:
        assert memory.retrieve(look("Press Go twice"), "policy", k=3, threshold=0.1, exclude_task=None) == before
        assert len(before) == 3 and before[0].text == "Press Go twice."
        memory.add(lesson(make, "Wait for the page."))
        assert memory._database.execute("SELECT count(*) FROM vocabulary") == [(1,)]


def test_a_file_of_the_first_schema_is_brought_up_to_date(tmp_path: Path, make: Any, look: Look) -> None:
    path, written = tmp_path / "old.sqlite", lesson(make, "Look up.")
    old = sqlite3.connect(path)
    old.executescript(
        "CREATE TABLE reflections (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, task TEXT NOT NULL,"
        "record TEXT NOT NULL, vector BLOB NOT NULL); CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
        "INSERT INTO facts VALUES ('embedding', 'hashed-1:1024'); PRAGMA application_id = 1702391089; PRAGMA user_version = 1;"
    )
    record = {key: value for key, value in msgspec.to_builtins(written).items() if key != "template"}
    row = (written.id, "policy", "suite/a", msgspec.json.encode(record).decode(), b"\0" * 4096)
    old.execute("INSERT INTO reflections (id, kind, task, record, vector) VALUES (?, ?, ?, ?, ?)", row)
    old.commit()
    old.close()
    for _ in range(2):
        with SQLiteMemory(path, embedding=HashedEmbedding()) as memory:
            assert memory.retrieve(look("Press Go"), "policy", k=1, threshold=0.3, exclude_task=None) == (written,)
            assert [entry.reflection for entry in memory.search("look up")] == [written]


def sure(memory: StoredMemory, context: Context) -> list[tuple[str, float | None]]:
    """Retrieve with a minimum certainty of the outcome."""
    found = memory.retrieve(context, "policy", k=9, threshold=0.1, exclude_task=None, confidence=0.2)
    return [(each.text, each.outcome) for each in found]


def test_the_more_certain_of_two_duplicates_is_kept_in_either_order(opened: Open, make: Any, look: Look) -> None:
    unsure = lesson(make, "Expected 0.80. Look before pressing.", outcome=0.5)
    told = lesson(make, "Expected 0.70. Look before pressing.", task="suite/b?seed=1", outcome=0.0, outcome_source="evaluator")
    with opened() as memory, opened() as other:
        memory.add(unsure)
        memory.used("before", [unsure.id], False)
        before = memory.version
        assert not sure(other, look("Press Go"))
        memory.add(told)
        for each in (memory, other):
            assert sure(each, look("Press Go")) == [(told.text, 0.0)] and len(each) == 1
            assert not recall(each, look("Press Go"), without="suite/a?seed=9"), "it counts as learned on the tasks of both"
        assert (memory.entry(unsure.id).status, memory.entry(unsure.id).note) == ("merged", told.id)
        assert memory.uses(told.id) == memory.uses(unsure.id) and memory.entry(told.id).hurt == 1, "what is known of it is known of both"
        assert memory.freeze(before) == before and recall(memory, look("Press Go")) == [unsure.text]
        other.restore([unsure.id])
        assert len(other) == 2 and other.merge() == 1 and sure(other, look("Press Go")) == [(told.text, 0.0)]


def test_merging_what_was_restored_keeps_the_surest_also_where_it_is_the_oldest(opened: Open, make: Any) -> None:
    sure_one = lesson(make, "Expected 0.80. Look before pressing.", outcome=1.0)
    others = [lesson(make, f"Expected 0.{n}. Look before pressing.", outcome=0.5) for n in (70, 60)]
    with opened() as memory:
        memory.add_all([others[0], sure_one, others[1]])
        memory.restore(each.id for each in others)
        assert len(memory) == 3 and memory.merge() == 2
        assert [entry.reflection for entry in memory.entries()] == [sure_one]
        assert {entry.note for entry in memory.entries("merged")} == {sure_one.id}


def test_the_same_reflection_from_a_more_certain_outcome_replaces_the_first(opened: Open, make: Any, look: Look) -> None:
    first = lesson(make, "Look before pressing.", outcome=0.5)
    told = msgspec.structs.replace(first, outcome=0.0, outcome_source="evaluator")
    with opened() as memory:
        memory.add(first)
        before = memory.freeze()
        with opened() as current:
            assert current.add_all([told, told]) == 1 and current.add_all([told, first]) == 0, "once, and what is less sure adds nothing"
            assert sure(current, look("Press Go")) == [(told.text, 0.0)] and len(current) == 1
            (kept,) = current.entries()
            assert kept.reflection.id != first.id and current.entry(first.id).note == kept.reflection.id
        assert memory.version == before and memory.entry(first.id).reflection == first
        assert not sure(memory, look("Press Go")), "a frozen version has what was known then"


def test_a_more_certain_outcome_restores_nothing_that_a_person_forgot(opened: Open, make: Any, look: Look) -> None:
    first = lesson(make, "Look before pressing.", outcome=0.5)
    with opened() as memory:
        memory.add(first)
        memory.forget([first.id])
        memory.add(msgspec.structs.replace(first, outcome=0.0, outcome_source="evaluator"))
        assert not recall(memory, look("Press Go")) and len(memory.entries("forgotten")) == 2
