"""What the environments that are opened together know in common."""

from __future__ import annotations

from typing import NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.login import LogIn
from exact.environments.browser.observe.masks import Masks
from exact.environments.browser.page.names import Names


class Common(NamedTuple):
    """Made once by what opens environments."""

    masks: Masks
    names: Names
    log_in: LogIn

    @classmethod
    def of(cls, config: BrowserConfig) -> Common:
        """Nothing is known yet but what the configuration says."""
        return cls(Masks(config.masks), Names(), LogIn())
