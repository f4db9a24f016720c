import pytest

from exact.models.load_balancer import FIRST, REFUSED, LoadBalancer


class FakeEndpoint:
    def __init__(self, name: str, weight: float = 1.0) -> None:
        self.name, self.weight, self.healthy, self.checks = name, weight, True, 0

    async def alive(self) -> bool:
        self.checks += 1
        return self.healthy


@pytest.fixture
def time() -> list[float]:
    return [0.0]


async def test_calls_are_shared_out_by_weight(time):
    heavy, light = FakeEndpoint("heavy", 3.0), FakeEndpoint("light")
    balancer = LoadBalancer([heavy, light], lambda: time[0])
    chosen = [(await balancer.choose()).name for _ in range(40)]
    assert chosen.count("heavy") == 30


async def test_one_that_failed_is_left_alone_then_checked_then_asked_again(time):
    a, b = FakeEndpoint("a"), FakeEndpoint("b")
    balancer = LoadBalancer([a, b], lambda: time[0])
    balancer.failed(a, permanent=False)
    assert {(await balancer.choose()).name for _ in range(4)} == {"b"} and a.checks == 0
    time[0] += FIRST
    assert {(await balancer.choose()).name for _ in range(4)} == {"a", "b"} and a.checks == 1


async def test_one_that_is_still_ill_when_checked_is_left_alone_for_longer(time):
    a, b = FakeEndpoint("a"), FakeEndpoint("b")
    a.healthy = False
    balancer = LoadBalancer([a, b], lambda: time[0])
    balancer.failed(a, permanent=False)
    time[0] += FIRST
    assert (await balancer.choose()) is b and a.checks == 1
    time[0] += FIRST
    assert (await balancer.choose()) is b and a.checks == 1
    time[0] += FIRST
    await balancer.choose()
    assert a.checks == 2


async def test_one_that_refuses_the_key_is_left_alone_for_long(time):
    a, b = FakeEndpoint("a"), FakeEndpoint("b")
    balancer = LoadBalancer([a, b], lambda: time[0])
    balancer.failed(a, permanent=True)
    time[0] += REFUSED - 1
    assert (await balancer.choose()) is b
    assert a.checks == 0


async def test_the_only_one_is_asked_however_it_is(time):
    only = FakeEndpoint("only")
    balancer = LoadBalancer([only], lambda: time[0])
    balancer.failed(only, permanent=True)
    assert (await balancer.choose()) is only and only.checks == 0
    assert not balancer.others([only])


async def test_one_that_comes_back_is_not_flooded(time):
    a, b = FakeEndpoint("a"), FakeEndpoint("b")
    balancer = LoadBalancer([a, b], lambda: time[0])
    balancer.failed(a, permanent=False)
    for _ in range(100):
        await balancer.choose()
        time[0] = 0.5
    time[0] = FIRST
    chosen = [(await balancer.choose()).name for _ in range(10)]
    assert chosen.count("a") == 5
