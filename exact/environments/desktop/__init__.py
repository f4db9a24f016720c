"""Desktops: X11 with applications that describe themselves by AT-SPI."""

from exact.environments.desktop.computer13 import read_computer13 as computer13
from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS, PYAUTOGUI
from exact.environments.desktop.pyautogui import read_pyautogui
from exact.environments.desktop.setup import Check, Setup

__all__ = ["COMPUTER_13", "ELEMENT_ACTIONS", "PYAUTOGUI", "Check", "Setup", "absent", "computer13", "desktop_factory", "read_pyautogui"]
