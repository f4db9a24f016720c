import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.models.retry import FIRST_WAIT, LONGEST_WAIT, RequestError, retried, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"retry-after": "2"}, 2), ({"retry-after-ms": "150", "retry-after": "9"}, 0.15), ({}, None)]
)
def test_the_wait_is_read_in_each_of_its_forms(headers, seconds):
    assert retry_after(headers) == (pytest.approx(seconds) if seconds else None)


def test_a_date_to_come_back_at_is_seconds_from_now():
    wait = retry_after({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert wait and 90 < wait <= 100


@given(st.text())
def test_a_wait_that_makes_no_sense_is_none(text):
    wait = retry_after({"retry-after": text})
    assert wait is None or 0 <= wait < float("inf")


async def test_waits_grow_to_the_longest_and_no_further():
    waits: list[float] = []

    async def attempt() -> str:
        if len(waits) < 8:
            raise RequestError("busy", "come back", retry=True)
        return "done"

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    assert await retried(attempt, retries=8, deadline=float("inf"), sleep=sleep) == "done"
    assert waits[0] <= FIRST_WAIT and all(LONGEST_WAIT / 2 <= wait <= LONGEST_WAIT for wait in waits[5:])


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30.5s"}, 90.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms", "x-ratelimit-remaining-requests": "9"}, 0.12),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s", "retry-after": "2"}, 2.0),
        ({"x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "6m0s"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
        ({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2001-01-01T00:00:00Z"}, 0.0),
    ],
)
def test_an_exhausted_limit_tells_when_it_is_full_again(headers, seconds):
    assert retry_after(headers) == (None if seconds is None else pytest.approx(seconds))
