"""What the environments that are opened together know in common."""

from __future__ import annotations

from typing import NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.login import Authenticator
from exact.environments.browser.observe.masks import Masks
from exact.environments.browser.page.ids import SharedIds


class SharedState(NamedTuple):
    """Made once by what opens environments."""

    masks: Masks
    ids: SharedIds
    authenticator: Authenticator

    @classmethod
    def of(cls, config: BrowserConfig) -> SharedState:
        """Nothing is known yet but what the configuration says."""
        return cls(Masks(config.masks), SharedIds(), Authenticator())
