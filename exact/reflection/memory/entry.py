"""Reflections with their status and use in the memory."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from exact.context import Reflection

Status = Literal["kept", "forgotten", "evicted", "merged", "quarantined"]
STATUSES: tuple[Status, ...] = get_args(Status)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored reflection. Only one with the status `kept` is retrieved; the others can be restored."""

    seq: int
    """Number in order of writing, from 1."""
    reflection: Reflection
    status: Status = "kept"
    note: str = ""
    """Reason of its status, or the id that it was merged into."""
    born: int = 0
    """Revision of the memory in which it was written."""
    retrieved: int = 0
    """Number of attempts that it was shown in."""
    helped: int = 0
    """Number of those attempts that succeeded."""
    hurt: int = 0
    """Number of those attempts that failed. The outcome of the others is unknown."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that a reflection was shown in."""

    attempt: str
    """Run, task and a digest of the journal's path."""
    success: bool | None
    """Success of the attempt; None: unknown."""


class Damaged(Exception):
    """Raised when data is not that of a memory."""
