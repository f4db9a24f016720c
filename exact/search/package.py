"""The package `exact.search` as a function: `exact.search(...)`."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """The package as a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # By name: the library is a higher floor, and this package is the only one that a user calls.
        return importlib.import_module("exact.library.search").search(*args, **kwargs)


sys.modules["exact.search"].__class__ = _Package
