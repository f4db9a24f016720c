"""The state shared by environments that are opened together."""

from __future__ import annotations

from typing import NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.login import Authenticator
from exact.environments.browser.observe.masks import Masks
from exact.environments.browser.page.ids import SharedIds


class SharedState(NamedTuple):
    """Learned masks, element ids and log-ins, created once by an environment factory."""

    masks: Masks
    ids: SharedIds
    authenticator: Authenticator

    @classmethod
    def of(cls, config: BrowserConfig) -> SharedState:
        """Create an empty shared state for a configuration."""
        return cls(Masks(config.masks), SharedIds(), Authenticator())
