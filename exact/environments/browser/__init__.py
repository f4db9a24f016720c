"""Environments in a real browser."""

from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.factory import BrowserFactory
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.launch import launch
from exact.environments.browser.page.setup import PageSetup

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
