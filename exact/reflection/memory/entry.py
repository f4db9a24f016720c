"""A reflection with what the memory knows of it."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from exact.context import Reflection

Status = Literal["kept", "forgotten", "evicted", "merged", "quarantined"]
STATUSES: tuple[Status, ...] = get_args(Status)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored. Only what is `kept` is retrieved; the rest can be restored."""

    seq: int
    """In order of writing, from 1."""
    reflection: Reflection
    status: Status = "kept"
    note: str = ""
    """Why it is not kept; the id of the one it was merged into."""
    born: int = 0
    """Revision of the memory in which it was written."""
    retrieved: int = 0
    """Attempts that it was shown in."""
    helped: int = 0
    """Of them, those that went well,"""
    hurt: int = 0
    """and those that did not; of the others nobody knows."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that a reflection was shown in."""

    attempt: str
    """Run, task and a digest of where its journal lies."""
    success: bool | None
    """How it ended; None: nobody knows."""


class Damaged(Exception):
    """What was read is no memory's."""
