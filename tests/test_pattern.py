"""Regular expressions of strangers."""

import re
import signal
import time

import pytest

from exact.environments.browser.network.harmless import HarmlessRequests
from exact.environments.browser.observe.describe import Masks
from exact.errors import EnvironmentFailure, UsageError
from exact.untrusted import BoundedPattern, compiled


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 5000 + ")" * 5000, "a" * 20_000])
def test_a_pattern_that_cannot_be_compiled_is_an_error_in_one_line(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"invalid pattern .* in reads: ") as raised:
        compiled(pattern, "reads")
    assert len(str(raised.value)) < 400


SLOW = ["(?x) (a+) # more\n +$", ".*.*.*.*.*.*.*.*b", "(a+)+$", "(a|a)*$", "(a*)*$", "(.*a){30}$", "(a|aa)+$", "([a-z]+)*$", r"(\w+\s?)*$"]
TEXT = "a" * 60 + "!"


@pytest.mark.parametrize("pattern", SLOW)
@pytest.mark.parametrize("otherwise", [True, False])
def test_a_pattern_that_takes_for_ever_is_given_up_once(pattern: str, otherwise: bool) -> None:
    slow, began = BoundedPattern(re.compile(pattern), "reads"), time.monotonic()
    assert [slow.found_in(TEXT, otherwise=otherwise) for _ in range(50)] == [otherwise] * 50
    assert time.monotonic() - began < 5


def test_a_mask_that_takes_for_ever_is_a_failure_that_names_it() -> None:
    masks = Masks(["(a+)+$"])
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match=r"the pattern '\(a\+\)\+\$' in browser.masks takes more than 1 s") as raised:
            masks.address(f"http://shop.test/{TEXT}")
        assert not raised.value.resumable


def test_requests_count_as_writes_where_their_patterns_take_for_ever() -> None:
    url = f"http://shop.test/{TEXT}"
    assert HarmlessRequests(writes=["(a+)+$"]).nature("GET", url) == "write"
    assert HarmlessRequests(harmless=["(a+)+$"], reads=["(a*)*$"]).nature("POST", url) == "write"


def test_a_timer_of_others_goes_on() -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        assert compiled("(a+)+!?$", "reads").found_in(TEXT + "?", otherwise=True)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 1 and not rung
        time.sleep(0.7)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
