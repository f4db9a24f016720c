"""What a site needs to have around its pages before anything of it is observed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from exact.errors import UsageError
from exact.task import Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page


class Beginning(NamedTuple):
    """An environment before the start page of a task is opened in it."""

    task: Task
    context: BrowserContext
    page: Page
    simulation: bool
    """Whether it only searches: what others share must not be changed for it."""


Prepare = Callable[[Beginning], Awaitable[None]]


class PageSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Put in place for every document of an environment, before the page's own scripts run. Trusted: it comes from code, never from a
    page."""

    hosts: dict[str, str] = {}
    """Stable names for local servers, `{"miniwob.test": "127.0.0.1:43121"}`: pages, journals and fingerprints see the name."""
    init_scripts: tuple[str, ...] = ()
    """JavaScript evaluated in every new document first."""
    hidden: tuple[str, ...] = ()
    """CSS selectors of elements that must not be observed: left out of tree, text, fingerprint and screenshot, and never hit by a click."""
    begin: str = ""
    """JavaScript function taking the task's seed, `(seed) => ...`, called once in `reset` when the start page has loaded; may be async."""
    instruction: str = ""
    """JavaScript expression for the goal's text, where only the page knows it."""
    prepare: Prepare | None = None
    """Called in every `reset` before the start page is opened: log-in, storage, the reset of a site. What it does is no step of anybody,
    so it may write to the task's origins in an environment that searches, too. The page's limit does not hold for it: it has its own.
    Raises EnvironmentFailure."""
    way_out: Callable[[str], str] | None = None
    """How a message goes on about a start page that cannot be opened: what a user may have got wrong; empty where it does not know."""
    terminated: str = ""
    """JavaScript expression that is true once the episode is over, asked after every step."""
    one_page: bool = False
    """Whether there is nothing but one page: no tabs, dialogs, files or clipboard for an agent to be told of. It has PAGE_ACTIONS then."""


def tabs_of(task: Task) -> tuple[str, ...]:
    """Addresses of pages that are open besides the start page: the task's metadata `tabs`, one a line. Going back from a page without
    a past closes its tab, and shows the one before."""
    return tuple(str(task.metadata.get("tabs") or "").split())


def place_of(task: Task) -> tuple[float, float] | None:
    """Where the browser says it is: the task's metadata `geolocation`, `latitude longitude` in degrees. Raises UsageError."""
    said = str(task.metadata.get("geolocation") or "")
    if not said:
        return None
    try:
        latitude, longitude = map(float, said.replace(",", " ").split())
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
            raise ValueError(said)
    except ValueError as error:
        way_out = "write `latitude longitude` in degrees, -90 to 90 and -180 to 180"
        raise UsageError(f"task {task.id}: geolocation {said!r} is no place: {way_out}") from error
    return latitude, longitude
