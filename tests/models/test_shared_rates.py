"""Rate limits of several processes together, and endpoints that were measured to take less."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from exact.errors import UsageError
from exact.models.load_balancer import LoadBalancer
from exact.models.rate_limiter import BURST, RateFile, RateLimiter, RateTable


class Clock:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def limiter(path: Path, clock: Clock, **limits: float) -> RateLimiter:
    return RateLimiter(clock=clock, sleep=clock.sleep, shared=RateFile(path, clock=clock), name="endpoint", **limits)  # type: ignore[arg-type]


async def times(limiters: list[RateLimiter], requests: int, tokens: float = 0.0) -> list[float]:
    """Return when requests may be sent, which the limiters ask for by turns."""
    found = []
    for number in range(requests):
        async with limiters[number % len(limiters)].slot(tokens) as sent:
            found.append(sent)
    return found


async def test_two_processes_together_send_no_more_than_one_may(tmp_path: Path) -> None:
    alone, both = Clock(), Clock()
    one = await times([limiter(tmp_path / "a", alone, requests_per_minute=60)], 20)
    two = await times([limiter(tmp_path / "b", both, requests_per_minute=60) for _ in range(2)], 20)
    assert one == two and two[-1] - two[0] == pytest.approx(19 - BURST)


async def test_tokens_that_were_not_used_are_given_back_with_the_next_request(tmp_path: Path) -> None:
    clock = Clock()
    each = limiter(tmp_path / "a", clock, tokens_per_minute=60)
    async with each.slot(100.0):
        each.succeeded(100.0, 1.0)
    first = clock.now
    await times([each], 2, tokens=1.0)
    assert clock.now - first < 101, "what was reserved and not used still counts"


async def test_a_429_of_one_process_makes_all_wait_once_it_asks_again(tmp_path: Path) -> None:
    clock = Clock()
    one, other = (limiter(tmp_path / "a", clock) for _ in range(2))
    one.limited(clock.now, 30.0)
    table = RateFile(tmp_path / "a", clock=clock)
    assert await table.take("endpoint", (None, None), 0.0, 0.0, 30.0) == 30.0
    assert await times([other], 1) == [1030.0]
    assert await table.take("another", (None, None), 1.0, 0.0, 0.0) == 0.0


def test_processes_that_count_at_once_lose_no_request(tmp_path: Path) -> None:
    program = f"""import asyncio, pathlib
from exact.models.rate_limiter import RateFile
rates = RateFile(pathlib.Path({str(tmp_path / "a")!r}), clock=lambda: 0.0)
async def main():
    for _ in range(25):
        await rates.take("endpoint", (60.0, None), 1.0, 0.0, 0.0)
asyncio.run(main())"""
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert json.loads((tmp_path / "a").read_text())["endpoint"][0] == pytest.approx(75 - BURST)


async def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("notes of mine")
    with pytest.raises(UsageError, match="holds something else: name another file"):
        await RateFile(tmp_path / "a").take("endpoint", (60.0, None), 1.0, 0.0, 0.0)
    assert (tmp_path / "a").read_text() == "notes of mine"


def test_a_request_that_was_given_up_is_not_counted() -> None:
    table = RateTable()
    for _ in range(10):
        table.take("endpoint", (60.0, None), 1.0, 0.0, 0.0, now=0.0)
        table.take("endpoint", (60.0, None), -1.0, 0.0, 0.0, now=0.0)
    assert table.take("endpoint", (60.0, None), 1.0, 0.0, 0.0, now=0.0) == 0.0


async def test_an_endpoint_that_answers_429_gets_as_much_less_as_it_takes() -> None:
    class Endpoint:
        """An endpoint of weight 1 whose limiter says what it takes."""

        def __init__(self) -> None:
            self.limiter = RateLimiter(concurrency=8, clock=lambda: 0.0)

        @property
        def weight(self) -> float:
            return self.limiter.health

        async def alive(self) -> bool:
            return True

    slow, fast = Endpoint(), Endpoint()
    slow.limiter.limited(0.0, None)
    slow.limiter.limited(1.0, None)
    balancer = LoadBalancer([slow, fast], lambda: 0.0)
    chosen = [await balancer.choose() for _ in range(50)]
    assert chosen.count(slow) == 10, "two 429s leave a quarter of the concurrency"
