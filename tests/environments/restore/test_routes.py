"""The cheapest faithful route."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exact.environments.restore.costs import Costs, Operation
from exact.environments.restore.routes import RestoreRoute, Start, find_routes


def costs(**seconds: float) -> Costs:
    found = Costs()
    for operation, each in seconds.items():
        found.add(operation, each)  # type: ignore[arg-type]
    return found


def names(found: list[RestoreRoute[str]]) -> list[str]:
    return [route.name for route in found]


RESET: Start[str] = Start("reset", 0)


def test_an_environment_already_at_the_state_is_the_cheapest_route() -> None:
    assert names(find_routes([RESET, Start("restore", 3, "s"), Start("reuse", 3)], 3, costs(step=1)))[0] == "reuse"


def test_deep_down_a_restore_is_cheaper_and_near_the_start_a_replay() -> None:
    measured = costs(reset=0.1, step=0.1, restore=0.6)
    assert [names(find_routes([RESET, Start("restore", depth, "s")], depth, measured))[0] for depth in (1, 4, 6, 20)] == [
        "replay",
        "replay",
        "restore",
        "restore",
    ]


def test_from_the_nearest_snapshot_the_rest_is_replayed() -> None:
    best = find_routes([RESET, Start("fork", 6, "near"), Start("fork", 2, "far")], 8, costs(step=1, fork=0.5))[0]
    assert (best.name, best.start.snapshot, best.steps, best.seconds) == ("fork+replay", "near", 2, 2.5)


def test_an_environment_on_the_way_continues_from_where_it_is() -> None:
    assert names(find_routes([RESET, Start("reuse", 2)], 3, costs(reset=1, step=1))) == ["advance", "replay"]


def test_where_steps_may_not_be_repeated_only_the_state_itself_will_do() -> None:
    starts = [RESET, Start("reuse", 2), Start("restore", 2, "above"), Start("fork", 3, "at")]
    assert names(find_routes(starts, 3, costs(step=1), since=3)) == ["fork"]
    assert find_routes([RESET], 3, costs(), since=1) == []


def test_the_start_itself_repeats_nothing() -> None:
    assert names(find_routes([RESET], 0, costs(), since=0)) == ["replay"]


means = st.sampled_from(["reuse", "restore", "fork", "reset", "open"])
starts = st.lists(
    st.builds(lambda kind, at: Start(kind, 0 if kind in ("reset", "open") else at, "k"), means, st.integers(0, 12)), max_size=6
)
operations: list[Operation] = ["open", "reset", "step", "restore", "fork"]


@given(starts, st.integers(0, 10), st.lists(st.floats(0, 100), min_size=5, max_size=5), st.integers(0, 12))
def test_routes_end_at_the_state_are_in_order_and_cost_what_their_parts_do(
    begin: list[Start[str]], end: int, seconds: list[float], since: int
) -> None:
    measured = costs(**dict(zip(operations, seconds, strict=True)))
    found = find_routes(begin, end, measured, since=since)
    assert [route.seconds for route in found] == sorted(route.seconds for route in found)
    for route in found:
        first = 0.0 if route.start.means == "reuse" else measured.of(route.start.means)
        assert route.start.at + route.steps == end and (route.start.at >= since or route.steps == 0)
        assert route.seconds == first + route.steps * measured.of("step")
    assert len(found) == sum(start.at == end or since <= start.at < end for start in begin)


def test_a_way_that_writes_again_comes_after_all_that_do_not() -> None:
    starts = [RESET, Start("reuse", 1), Start("fork", 2, "written")]
    assert names(find_routes(starts, 3, costs(step=0.1, fork=5), wrote=2)) == ["fork+replay", "advance", "replay"]
    assert names(find_routes(starts, 3, costs(step=0.1, reset=1, fork=5))) == ["advance", "replay", "fork+replay"]
