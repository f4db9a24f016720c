"""The state that environments opened together share."""

from __future__ import annotations

from typing import NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.login import Authenticator
from exact.environments.browser.network.harmless import HarmlessRequests
from exact.environments.browser.network.pace import Pace
from exact.environments.browser.observe.describe import Masks
from exact.environments.browser.observe.drawing import PictureMemory
from exact.environments.browser.page.background import BackgroundRequests
from exact.environments.browser.page.ids import SharedIds
from exact.environments.browser.presume.presume import StepHistory
from exact.environments.sites.site import Outside


class SharedState(NamedTuple):
    """State that environments opened together learn and share, created once by an environment factory."""

    masks: Masks
    ids: SharedIds
    authenticator: Authenticator
    harmless: HarmlessRequests
    pictures: PictureMemory
    background: BackgroundRequests
    steps: StepHistory
    pace: Pace

    @classmethod
    def of(cls, config: BrowserConfig, outside: Outside | None = None) -> SharedState:
        """Create an empty shared state for a configuration and its declarations of sites outside.

        Raises UsageError for an invalid pattern.
        """
        declared = [each for each in (outside, outside.site if outside else None) if each is not None]
        harmless = HarmlessRequests(
            harmless=[pattern for each in declared for pattern in each.harmless],
            reads=[pattern for each in declared for pattern in each.reads],
            writes=[pattern for each in declared for pattern in each.writes],
        )
        return cls(
            Masks(config.masks),
            SharedIds(),
            Authenticator(),
            harmless,
            PictureMemory(),
            BackgroundRequests(),
            StepHistory(),
            Pace(requests=config.requests_per_minute, pages=config.pages),
        )
