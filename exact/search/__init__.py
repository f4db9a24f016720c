"""Tree search: algorithms that ask for work and are told its results.

The package is also a function: `exact.search(...)` searches an environment, as `exact.library.search` describes.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

if not __name__.startswith("exact."):
    raise ImportError("import exact.search: the folder 'search' at the root of the repository is only a link to it")


class _Package(ModuleType):
    """The package as a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return importlib.import_module("exact.library.search").search(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
