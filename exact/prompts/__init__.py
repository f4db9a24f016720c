"""Prompts: templates, and the questions that are made of them."""

from ..version import __version__ as __version__  # the folder prompts at the root of the repository is a link: import exact.prompts
