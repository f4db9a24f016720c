import pytest

from exact.benchmarks.miniwob import MiniWob


def test_the_lists_are_those_that_results_are_published_on(suite: MiniWob) -> None:
    lists = suite.lists()
    assert (len(lists["browsergym"]), len(lists["registered"]), len(suite.ids())) == (125, 128, 133)
    assert set(lists["browsergym"]) < set(lists["registered"]) < set(suite.ids())


@pytest.mark.parametrize(("raw", "readings"), [(1.0, (1, 1)), (0.3, (1, 0)), (0.0, (0, 0)), (-1.0, (0, 0))])
def test_a_raw_reward_is_read_as_browsergym_does_and_in_full(raw: float, readings: tuple[int, int], suite: MiniWob) -> None:
    assert tuple(read(raw) for read in suite.rewards().values()) == readings
