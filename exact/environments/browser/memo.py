"""The part of a snapshot that is not in the browser."""

from __future__ import annotations

from dataclasses import dataclass

from exact.environments.browser.observe.drawing import DrawnState
from exact.environments.browser.page.ids import Ids
from exact.task import Task


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
    """What was drawn; None where no screenshots are taken."""
    now: int = 0
    """Time of a paused page clock in milliseconds since 1970; 0 where the clock runs."""
    downloads: tuple[str, ...] = ()
    """Lines about the files downloaded in the episode."""
    site: str = ""
    """Name of the state of an outside site that was saved with the snapshot; empty if none was."""
    account: str = ""
    """Name of the account that the browser is logged in with; empty if it has none."""
