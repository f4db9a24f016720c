"""The state shared by environments that are opened together.

The part of a snapshot that is not in the browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.login import Authenticator
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.network.harmless import HarmlessRequests
from exact.environments.browser.network.pace import Pace
from exact.environments.browser.observe.describe import Masks
from exact.environments.browser.observe.drawing import DrawnState, PictureMemory
from exact.environments.browser.page.background import BackgroundRequests
from exact.environments.browser.page.ids import Ids, SharedIds
from exact.environments.browser.presume.presume import StepHistory
from exact.environments.sites.site import Outside
from exact.task import Task


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


@dataclass(frozen=True)
class OpenTab:
    """A tab that was open when a snapshot was taken."""

    target: str
    """CDP id of the tab's target, which a restored browser keeps."""
    index: int
    """Number of the tab among the pages of the episode, from 0."""
    documents: int
    """Number of documents that the main frame has had."""


@dataclass(frozen=True)
class Memo:
    """The part of a state that the environment keeps outside the browser. Element ids stay the same in every fork."""

    task: Task
    fingerprint: str
    """Fingerprint of the last observation."""
    instruction: str
    ids: Ids
    opened: int
    """Number of pages opened in the episode."""
    tabs: tuple[OpenTab, ...]
    """The open tabs; the last one is the tab in front."""
    drawn: DrawnState | None = None
    """The picture; None if no screenshots are taken."""
    now: int = 0
    """Time of a paused page clock in milliseconds since 1970; 0 if the clock runs."""
    downloads: tuple[str, ...] = ()
    """Lines about the files downloaded in the episode."""
    site: str = ""
    """Name of the state of an outside site that was saved with the snapshot; empty if none was."""
    account: str = ""
    """Name of the account that the browser is logged in with; empty if it has none."""
    flow: SecretFlow | None = None
    """Where typed secrets have got to; None if no gate was there."""
