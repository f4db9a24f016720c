"""Set-up by a benchmark or site around its pages before they are observed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from exact.errors import UsageError
from exact.task import Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page


class Beginning(NamedTuple):
    """An environment before the start page of a task is opened."""

    task: Task
    context: BrowserContext
    page: Page
    simulation: bool
    """Flag that the environment is used by search only, and must not change shared state."""


Prepare = Callable[[Beginning], Awaitable[None]]


class PageSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The set-up of all documents of an environment. Trusted: it comes from code, never from a page."""

    hosts: dict[str, str] = {}
    """Stable names of local servers, `{"miniwob.test": "127.0.0.1:43121"}`. Pages, journals and fingerprints contain the name."""
    init_scripts: tuple[str, ...] = ()
    """JavaScript that runs first in every new document."""
    hidden: tuple[str, ...] = ()
    """CSS selectors of elements that must not be observed: absent from tree, text, fingerprint and screenshot, and never clicked."""
    begin: str = ""
    """JavaScript function `(seed) => ...` that is called with the task's seed once the start page has loaded. It may be async."""
    instruction: str = ""
    """JavaScript expression for the text of the goal, if only the page knows it."""
    prepare: Prepare | None = None
    """Called in every `reset` before the start page is opened, for log-ins, storage or the reset of a site. It is not a step of the agent,
    so it may write to the task's origins in simulations too. The page's timeout does not apply to it. May raise EnvironmentFailure."""
    way_out: Callable[[str], str] | None = None
    """Returns the end of the error about a start page that cannot be opened: a hint at a correction by the user; empty if unknown."""
    terminated: str = ""
    """JavaScript expression that is true once the episode is over, evaluated after every step."""
    one_page: bool = False
    """Flag that an episode is one page without tabs, dialogs, files and clipboard. The actions are PAGE_ACTIONS then."""


def tabs_of(task: Task) -> tuple[str, ...]:
    """Return the addresses of pages that are open besides the start page: the task's metadata `tabs`, one a line.

    Going back from a page without a history closes its tab and shows the one before.
    """
    return tuple(str(task.metadata.get("tabs") or "").split())


def geolocation_of(task: Task) -> tuple[float, float] | None:
    """Return the browser's geolocation from the task's metadata `geolocation`, `latitude longitude` in degrees; None if it has none.

    Raises UsageError for anything else.
    """
    text = str(task.metadata.get("geolocation") or "")
    if not text:
        return None
    try:
        latitude, longitude = map(float, text.replace(",", " ").split())
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
            raise ValueError(text)
    except ValueError as error:
        way_out = "write `latitude longitude` in degrees, -90 to 90 and -180 to 180"
        raise UsageError(f"task {task.id}: invalid geolocation {text!r}: {way_out}") from error
    return latitude, longitude
