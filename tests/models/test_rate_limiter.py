"""How fast a server is asked. Time is the test's own."""

import asyncio
import contextlib

import pytest

from exact.models.rate_limiter import BURST, Rate, RateLimiter


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def limited(**settings) -> tuple[RateLimiter, Clock]:
    clock = Clock()
    return RateLimiter(clock=clock, sleep=clock.sleep, **settings), clock


async def test_no_more_requests_are_under_way_than_allowed():
    limiter, _ = limited(concurrency=3)
    most, active = 0, 0

    async def one() -> None:
        nonlocal most, active
        async with limiter.slot(1):
            active += 1
            most = max(most, active)
            await asyncio.sleep(0)
            active -= 1

    await asyncio.gather(*(one() for _ in range(20)))
    assert (most, active) == (3, 0)


async def test_a_rate_of_requests_is_kept_over_time():
    limiter, clock = limited(requests_per_minute=60)
    for _ in range(100):
        async with limiter.slot(1):
            pass
    assert 100 - 1 - BURST <= clock.time <= 100


async def test_a_rate_of_tokens_is_kept_and_what_was_not_used_is_given_back():
    limiter, clock = limited(tokens_per_minute=6000)
    for _ in range(10):
        async with limiter.slot(1000):
            limiter.succeeded(1000, 100)
    assert clock.time == pytest.approx(10 * 1 - BURST, abs=11)
    slow, slow_clock = limited(tokens_per_minute=6000)
    for _ in range(10):
        async with slow.slot(1000):
            slow.succeeded(1000, 1000)
    assert slow_clock.time > clock.time + 60


def test_a_rate_that_is_not_limited_never_waits():
    rate = Rate(None)
    assert [rate.take(1e9, 0.0) for _ in range(3)] == [0.0] * 3


async def test_a_429_halves_what_may_be_under_way_once_for_all_that_were():
    limiter, clock = limited(concurrency=16)
    async with limiter.slot(1) as sent:
        clock.time += 1
        limiter.limited(sent, None)
        limiter.limited(sent, None)
    assert limiter.allowed == 8
    async with limiter.slot(1) as sent:
        limiter.limited(sent, None)
    assert limiter.allowed == 4


async def test_success_after_a_429_allows_more_again_up_to_the_limit():
    limiter, _ = limited(concurrency=4)
    limiter.limited(0.0, None)
    assert limiter.allowed == 2
    for _ in range(20):
        limiter.succeeded(1, 1)
    assert limiter.allowed == 4


async def test_a_429_holds_everybody_back_as_long_as_the_server_asks():
    limiter, _ = limited()
    limiter.limited(0.0, 7.0)
    async with limiter.slot(1) as sent:
        assert sent == 7.0


@pytest.mark.parametrize("rates", [{"tokens_per_minute": 6000}, {"requests_per_minute": 6}])
async def test_a_cancelled_wait_for_a_rate_limit_uses_nothing_of_it(rates):
    waits = []

    async def for_ever(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.Event().wait()

    limiter = RateLimiter(clock=lambda: 100.0, sleep=for_ever, **rates)
    async with limiter.slot(1000):
        pass
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0), limiter.slot(1000):
                pass
    assert waits == [pytest.approx(10 - BURST)] * 3


async def test_a_429_holds_back_also_who_waits_already():
    clock = Clock()

    async def sleep(seconds: float) -> None:
        if not clock.time:
            limiter.limited(0.0, 7.0)
        clock.time += seconds

    limiter = RateLimiter(tokens_per_minute=6000, clock=clock, sleep=sleep)
    async with limiter.slot(1000):
        pass
    async with limiter.slot(1) as sent:
        assert sent == 7.0


async def test_a_cancelled_wait_gives_its_turn_to_the_next():
    limiter, _ = limited(concurrency=1)
    async with limiter.slot(1):
        first, second = (asyncio.create_task(_once(limiter)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
    await second
    with contextlib.suppress(asyncio.CancelledError):
        await first
    async with limiter.slot(1):
        pass


async def test_a_turn_that_came_with_the_cancellation_is_not_lost():
    limiter, _ = limited(concurrency=1)
    slot = limiter.slot(1)
    await slot.__aenter__()
    waiting = asyncio.create_task(_once(limiter))
    await asyncio.sleep(0)
    await slot.__aexit__(None, None, None)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5), limiter.slot(1):
        pass


async def _once(limiter: RateLimiter) -> None:
    async with limiter.slot(1):
        pass
