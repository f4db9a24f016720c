"""Regular expressions that users write and strangers give."""

from __future__ import annotations

import functools
import re

from exact.errors import UsageError

_LONGEST = 10_000
"""Characters of the longest pattern."""


@functools.lru_cache(maxsize=256)
def compiled(pattern: str, where: str, way_out: str = "write a regular expression of Python") -> re.Pattern[str]:
    """Return a pattern. `where`: the key that holds it. Raises UsageError where it is none, or too large or deep for one."""
    try:
        if len(pattern) > _LONGEST:
            raise OverflowError(f"it has {len(pattern):,} characters, and may have {_LONGEST:,}")
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        shown = pattern if len(pattern) <= 100 else f"{pattern[:100]}..."
        raise UsageError(f"invalid pattern {shown!r} in {where}: {error}: {way_out}") from error
