"""Desktops: X11 with applications that tell of themselves by AT-SPI."""

from exact.environments.desktop.computer13 import read as computer13
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS
from exact.environments.desktop.setup import Check, Setup
from exact.environments.desktop.worlds import absent, desktop_worlds

__all__ = ["COMPUTER_13", "ELEMENT_ACTIONS", "Check", "Setup", "absent", "computer13", "desktop_worlds"]
