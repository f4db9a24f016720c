"""Tree search: algorithms that ask for work and are told its results.

The package is also a function: `exact.search(...)` searches an environment, as `exact.library.search` describes.
"""

from ..version import __version__ as __version__  # isort: skip - the folder search at the root is a link: import exact.search
from exact.search import package as package
