"""Garbage collection while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Make objects without looking for garbage among them. The block must not await.

    The tree of a page of 10,000 nodes is some 300,000 objects. Python would search all of its objects several times while they are made.
    That took 45 percent of an observation. After the block all objects count as old, or the young ones would be searched at once.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else a program that uses this package keeps frozen objects, which would thaw
            gc.freeze()
            gc.unfreeze()
        gc.enable()
