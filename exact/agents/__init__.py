"""Agents: policies, value functions, and what they share."""

from ..version import __version__ as __version__  # the folder agents at the root of the repository is a link: import exact.agents
