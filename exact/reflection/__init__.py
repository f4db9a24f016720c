"""Reflections: what a run learned, and the memory that retrieves it."""

from ..version import __version__ as __version__  # the folder reflection at the root of the repository is a link: import exact.reflection
