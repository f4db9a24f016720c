"""Regular expressions that users write and strangers give.

Python's engine tries all ways to match: `(a+)+$` takes years for a text of 60 letters. A linear engine would refuse patterns that it cannot
run (lookarounds, references), so time is bounded instead: the engine lets signals through.
"""

from __future__ import annotations

import functools
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from exact.errors import EnvironmentFailure, UsageError

_LONGEST = 10_000
"""Characters of the longest pattern."""
_SECONDS = 1.0
"""Most seconds that a pattern is looked for in one text."""
_REPEATED_GROUP, _REPEAT = re.compile(r"\)\s*[*+{]|\(\?[a-zA-Z-]*x"), re.compile("[*+{]")
"""Match where a pattern repeats a group, or may do so in its verbose form; and each repeat."""
_FEW, _SHORT = 3, 200
"""Repeats that are looked for in milliseconds in a text of so many characters, where none is in another: no clock is set for them."""


T = TypeVar("T")


class BoundedPattern:
    """Regular expression that is looked for within a second; one that takes longer is not tried again.

    Time is bounded in a process's main thread, where searches run, on systems with POSIX timers.
    """

    def __init__(self, pattern: re.Pattern[str], where: str) -> None:
        """Wrap a pattern. `where`: the key that holds it."""
        self.pattern, self._where, self._pattern = pattern.pattern, where, pattern
        self._is_slow, self._may_be_slow = False, bool(_REPEATED_GROUP.search(self.pattern)) or len(_REPEAT.findall(self.pattern)) > _FEW

    def found_in(self, text: str, *, otherwise: bool) -> bool:
        """Return whether the pattern is found in a text; `otherwise` where that takes too long."""
        found = self._within(lambda: self._pattern.search(text) is not None, len(text))
        return otherwise if found is None else found

    def replaced(self, by: str, text: str) -> str:
        """Return a text with all that the pattern matches replaced. Raises EnvironmentFailure where that takes too long."""
        found = self._within(lambda: self._pattern.sub(by, text), len(text))
        if found is None:
            fact = f"the pattern {_shown(self.pattern)} in {self._where} takes more than {_SECONDS:g} s on a text"
            raise EnvironmentFailure(f"{fact}: write it without repeats in repeats, such as (a+)+").final()
        return found

    def _within(self, work: Callable[[], T], length: int) -> T | None:
        """Return the result of a search; None where it takes too long, or did before."""
        if self._is_slow:
            return None
        try:
            with _alarm(_SECONDS) if self._may_be_slow or length > _SHORT else nullcontext():
                return work()
        except _TooSlow:
            self._is_slow = True
            return None


class _TooSlow(BaseException):
    """Raised where the time is up. It is no Exception, so that nothing in between takes it for one."""


@functools.lru_cache(maxsize=256)
def compiled(pattern: str, where: str, way_out: str = "write a regular expression of Python") -> BoundedPattern:
    """Return a pattern. `where`: the key that holds it. Raises UsageError where it is none, or too large or deep for one."""
    try:
        if len(pattern) > _LONGEST:
            raise OverflowError(f"it has {len(pattern):,} characters, and may have {_LONGEST:,}")
        return BoundedPattern(re.compile(pattern), where)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"invalid pattern {_shown(pattern)} in {where}: {error}: {way_out}") from error


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 100 else f"{pattern[:100]}...")


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _TooSlow after some seconds of the block. A timer that others have set goes on afterwards."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    is_over = False

    def ring(number: int, frame: object) -> None:
        if not is_over:
            raise _TooSlow

    began, before = time.monotonic(), signal.signal(signal.SIGALRM, ring)
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001), every)
