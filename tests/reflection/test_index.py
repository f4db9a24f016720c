"""The index against the plainest way to say what it finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exact.reflection.memory.index import Index, common_rate, fade, utility
from exact.reflection.memory.table import Row

SIZE = 4
tasks = st.sampled_from(["a", "b", "c"])
rows = st.lists(
    st.builds(
        lambda numbers, kind, task, template, about, confidence, status, helped, hurt: Row(
            0, "", kind, task, template, about, confidence, status, "", helped, hurt, 1, unit(numbers).astype("<f4").tobytes()
        ),
        st.lists(st.integers(-3, 3), min_size=SIZE, max_size=SIZE), st.sampled_from(["policy", "value"]), tasks, st.sampled_from(["", "t"]),
        st.sampled_from(["x", "y"]), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from(["kept", "kept", "forgotten", "evicted"]),
        st.integers(0, 5), st.integers(0, 5),
    ),
    max_size=40,
).map(lambda found: [row._replace(seq=n, id=f"{n}") for n, row in enumerate(found, 1)])  # fmt: skip


def unit(numbers: list[int]) -> np.ndarray:
    vector = np.array(numbers, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


def filled(found: list[Row]) -> tuple[Index, float]:
    made = Index(SIZE)
    made.take(found)
    return made, common_rate(sum(row.helped for row in found), sum(row.hurt for row in found))


def vector(row: Row) -> np.ndarray:
    return np.frombuffer(row.vector, dtype="<f4")


@given(
    rows,
    st.lists(st.integers(-3, 3), min_size=SIZE, max_size=SIZE),
    st.floats(-1, 1),
    tasks,
    st.sampled_from([0.0, 0.5]),
    st.integers(1, 6),
)
def test_the_nearest_are_those_that_pass_all_filters_in_falling_order(
    found: list[Row], query: list[int], threshold: float, without: str, confidence: float, most: int
) -> None:
    made, rate = filled(found)
    hits = made.nearest(unit(query), "policy", threshold, without=frozenset({without, "t"}), confidence=confidence, most=most)
    passing = [
        (round(float(np.round(cosine, 5) * share) * 1e5), row.seq)
        for row in found
        if row.kind == "policy" and row.status == "kept" and row.task != without and row.template != "t" and row.confidence >= confidence
        and (cosine := np.float32(vector(row) @ unit(query))) >= threshold + 2e-5
        and (share := float(fade(float(row.helped), float(row.hurt), rate))) > 0
    ]  # fmt: skip
    said = [hit.seq for hit in hits]
    wanted = [seq for _, seq in sorted(passing, reverse=True)][:most]
    near_the_threshold = {row.seq for row in found if abs(float(vector(row) @ unit(query)) - threshold) < 4e-5}
    if not near_the_threshold:
        assert said == wanted


@given(rows, st.integers(0, 50))
def test_the_least_useful_are_those_that_helped_least_and_of_equal_ones_the_oldest(found: list[Row], count: int) -> None:
    made, rate = filled(found)
    kept = sorted((float(utility(float(row.helped), float(row.hurt), rate)), row.seq) for row in found if row.status == "kept")
    assert len(made) == len(kept)
    count = min(count, len(kept))
    assert sorted(made.least_useful(count), key=int) == sorted((f"{seq}" for _, seq in kept[:count]), key=int)


@given(rows, st.sampled_from(["kept", "forgotten"]))
def test_duplicates_are_searched_among_reflections_about_the_same_with_any_usage_record(found: list[Row], status: str) -> None:
    made, _ = filled(found)
    query = unit([1, 2, 0, -1])
    said = made.alike(query, "value", "x", 0.5, status)  # type: ignore[arg-type]
    wanted = {
        row.seq
        for row in found
        if row.kind == "value" and row.about == "x" and row.status == status and round(float(vector(row) @ query), 5) >= 0.5
    }
    assert set(said) == wanted
