"""Reports of searches, as HTML pages that open offline.

The functions are imported when they are first used: a line on the progress of a run needs the words of a report, and no pages.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exact.report.build import build_index, build_report, build_suite

__all__ = ["build_index", "build_report", "build_suite"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("exact.report.build"), name)
