"""Time is that of a machine at rest, and limits of time are as much longer as the machine is slower."""

import asyncio
import math
from pathlib import Path

import pytest

from exact import slowness
from exact.slowness import MOST, Limit, RestClock, Timer, threads_for_each_processor


class Bench:
    """A machine whose load and clock a test sets."""

    def __init__(self) -> None:
        self.load, self.now = 0.0, 100.0
        self.machine = RestClock(lambda: self.load, lambda: self.now)

    def pass_(self, seconds: float) -> float:
        """Let time pass in small steps. Return the seconds of a machine at rest."""
        before = self.machine.time()
        for _ in range(round(10 * seconds)):
            self.now += 0.1
            self.machine.time()
            self.now += 0.1
            self.machine.time()
        return self.machine.time() - before


@pytest.mark.parametrize("load", [0.0, 0.5, 1.9])
def test_a_machine_at_rest_counts_each_second(load: float) -> None:
    bench = Bench()
    bench.load = load
    assert bench.pass_(10) == pytest.approx(20) and bench.machine.slowness == 1


@pytest.mark.parametrize("load", [2.5, 5.0, 100.0])
def test_a_busy_machine_counts_half(load: float) -> None:
    bench = Bench()
    bench.load = load
    bench.pass_(5)  # the mean gets there
    assert bench.pass_(10) == pytest.approx(20 / MOST, rel=0.05)


def test_a_clock_that_begins_elsewhere_is_followed() -> None:
    bench = Bench()
    bench.pass_(5)
    bench.now -= 3600
    assert bench.pass_(5) == pytest.approx(10)


def test_a_burst_is_no_slowness() -> None:
    bench = Bench()
    bench.load = 6.0
    bench.now += 0.2
    bench.machine.time()
    assert bench.machine.slowness == 1


def test_a_machine_that_was_busy_is_at_rest_soon() -> None:
    bench = Bench()
    bench.load = 8.0
    bench.pass_(5)
    bench.load = 0.0
    bench.pass_(2)
    assert bench.machine.slowness == 1


@pytest.mark.parametrize("text", ["", "0.1", "0.1 0.2 0.3 x/9 3", "0.00 0.00 0.00 0/0 0"])
def test_a_system_that_does_not_say_counts_as_at_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "loadavg").write_text(text)
    monkeypatch.setattr(slowness, "_LOAD", tmp_path / "loadavg")
    assert RestClock(threads_for_each_processor).slowness == 1
    assert threads_for_each_processor() <= 0


async def test_a_limit_ends_its_block_at_rest_as_asyncio_does() -> None:
    machine = RestClock(lambda: 0.0)
    with pytest.raises(TimeoutError):
        async with Limit(0.05, machine) as limit:
            await asyncio.sleep(30)
    assert limit.expired and limit.left == 0


async def test_a_limit_is_longer_on_a_busy_machine() -> None:
    """It is twice as long, which the machine remembers."""
    bench = Bench()
    bench.load = 8.0
    bench.pass_(8)
    ends = asyncio.Event()

    async def work() -> None:
        async with Limit(1.0, bench.machine):
            await ends.wait()

    waiting = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    bench.now += 1.7
    for _ in range(3):
        await asyncio.sleep(0.3)  # the limit looks again
    assert not waiting.done()
    bench.now += 0.5
    with pytest.raises(TimeoutError):
        await waiting
    assert bench.machine.stretched() == pytest.approx(MOST, rel=0.1)


async def test_a_limit_can_be_set_again_and_suspended() -> None:
    machine = RestClock(lambda: 0.0)
    async with Limit(0.05, machine) as limit:
        limit.set(math.inf)
        await asyncio.sleep(0.1)
        assert not limit.expired and limit.left == math.inf
        limit.set(5.0)
        assert 4 < limit.left <= 5
    assert 4 < limit.left <= 5


async def test_a_limit_that_is_set_to_nothing_ends_its_block() -> None:
    with pytest.raises(TimeoutError):
        async with Limit(30.0, RestClock(lambda: 0.0)) as limit:
            limit.set(0.0)
            await asyncio.sleep(30)


async def test_a_limit_leaves_other_errors_and_cancellation_alone() -> None:
    with pytest.raises(KeyError):
        async with Limit(5.0, RestClock(lambda: 0.0)):
            raise KeyError
    task = asyncio.ensure_future(_within())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _within() -> None:
    async with Limit(5.0, RestClock(lambda: 0.0)):
        await asyncio.sleep(30)


async def test_a_cancelled_timer_does_not_call() -> None:
    calls = list[int]()
    timer = Timer(0.02, lambda: calls.append(1), RestClock(lambda: 0.0))
    timer.cancel()
    other = Timer(0.02, lambda: calls.append(2), RestClock(lambda: 0.0))
    await asyncio.sleep(0.1)
    assert calls == [2] and other.left == 0
