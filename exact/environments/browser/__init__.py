"""Worlds in a real browser."""

from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.find import find_browser
from exact.environments.browser.forking import ForkingWorlds, forking
from exact.environments.browser.grammar import BROWSER_ACTIONS
from exact.environments.browser.launch import Browser, launch
from exact.environments.browser.setup import PageSetup
from exact.environments.browser.worlds import BrowserWorlds

__all__ = [
    "BROWSER_ACTIONS",
    "Browser",
    "BrowserEnvironment",
    "BrowserWorlds",
    "Evaluator",
    "ForkingWorlds",
    "PageSetup",
    "find_browser",
    "forking",
    "launch",
]
