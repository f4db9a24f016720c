"""Environments in a real browser.

The environment and its factory are imported when they are first used, so that a browser can start before them.
"""

import importlib
from typing import TYPE_CHECKING

from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.launch import launch
from exact.environments.browser.page.setup import PageSetup

if TYPE_CHECKING:
    from exact.environments.browser.environment import BrowserEnvironment, Evaluator
    from exact.environments.browser.factory import BrowserFactory

_LATE = {"BrowserEnvironment": "environment", "BrowserFactory": "factory", "Evaluator": "environment"}

__all__ = [
    "BROWSER_ACTIONS",
    "Browser",
    "BrowserEnvironment",
    "BrowserFactory",
    "Evaluator",
    "PageSetup",
    "find_browser",
    "launch",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
