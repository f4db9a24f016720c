import pytest

from exact.models.route import FIRST, REFUSED, Route


class Place:
    def __init__(self, name: str, weight: float = 1.0) -> None:
        self.name, self.weight, self.well, self.checks = name, weight, True, 0

    async def alive(self) -> bool:
        self.checks += 1
        return self.well


@pytest.fixture
def time() -> list[float]:
    return [0.0]


async def test_calls_are_shared_out_by_weight(time):
    heavy, light = Place("heavy", 3.0), Place("light")
    route = Route([heavy, light], lambda: time[0])
    chosen = [(await route.choose()).name for _ in range(40)]
    assert chosen.count("heavy") == 30


async def test_one_that_failed_is_left_alone_then_checked_then_asked_again(time):
    a, b = Place("a"), Place("b")
    route = Route([a, b], lambda: time[0])
    route.failed(a, for_good=False)
    assert {(await route.choose()).name for _ in range(4)} == {"b"} and a.checks == 0
    time[0] += FIRST
    assert {(await route.choose()).name for _ in range(4)} == {"a", "b"} and a.checks == 1


async def test_one_that_is_still_ill_when_checked_is_left_alone_for_longer(time):
    a, b = Place("a"), Place("b")
    a.well = False
    route = Route([a, b], lambda: time[0])
    route.failed(a, for_good=False)
    time[0] += FIRST
    assert (await route.choose()) is b and a.checks == 1
    time[0] += FIRST
    assert (await route.choose()) is b and a.checks == 1
    time[0] += FIRST
    await route.choose()
    assert a.checks == 2


async def test_one_that_refuses_the_key_is_left_alone_for_long(time):
    a, b = Place("a"), Place("b")
    route = Route([a, b], lambda: time[0])
    route.failed(a, for_good=True)
    time[0] += REFUSED - 1
    assert (await route.choose()) is b
    assert a.checks == 0


async def test_the_only_one_is_asked_however_it_is(time):
    only = Place("only")
    route = Route([only], lambda: time[0])
    route.failed(only, for_good=True)
    assert (await route.choose()) is only and only.checks == 0
    assert not route.others([only])


async def test_one_that_comes_back_is_not_flooded(time):
    a, b = Place("a"), Place("b")
    route = Route([a, b], lambda: time[0])
    route.failed(a, for_good=False)
    for _ in range(100):
        await route.choose()
        time[0] = 0.5
    time[0] = FIRST
    chosen = [(await route.choose()).name for _ in range(10)]
    assert chosen.count("a") == 5
