"""What an environment knows about a state besides what is in the browser: it goes with a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from exact.environments.browser.page.ids import Ids
from exact.task import Task


@dataclass(frozen=True)
class OpenTab:
    """A page that was open."""

    target: str
    """CDP id of its target, which a restored browser keeps."""
    index: int
    """Which page of the episode it is, from 0."""
    documents: int
    """How many documents its main frame has had."""


@dataclass(frozen=True)
class Memo:
    """Of one state. Ids of elements stay the same in every branch."""

    task: Task
    fingerprint: str
    """Of the last observation."""
    instruction: str
    ids: Ids
    opened: int
    """Pages opened in the episode."""
    tabs: tuple[OpenTab, ...]
    """In the order of the environment: the last one is the present one."""
    now: int = 0
    """What the page's clock shows, if it is held: milliseconds since 1970."""
    downloads: tuple[str, ...] = ()
    """What had been downloaded."""
    site: str = ""
    """The name under which a site outside was kept with it."""
    account: str = ""
    """Name of the log-in that the browser has."""
