"""Version and folder of the package, for modules that must not import the public names."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"
PACKAGE = Path(__file__).parent
"""Folder of the package."""
