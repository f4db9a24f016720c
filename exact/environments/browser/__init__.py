"""Environments in a real browser.

The environment and its factory are imported when they are first used, so that a browser can start before them.
"""

from typing import TYPE_CHECKING

from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.launch import launch
from exact.environments.browser.page.setup import PageSetup
from exact.plugins import at_first_use

if TYPE_CHECKING:
    from exact.environments.browser.environment import BrowserEnvironment, Evaluator
    from exact.environments.browser.factory import BrowserFactory

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

__getattr__ = at_first_use(__name__, BrowserEnvironment="environment", BrowserFactory="factory", Evaluator="environment")
