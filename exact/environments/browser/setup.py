"""What a site needs to have around its pages before anything of it is observed."""

from __future__ import annotations

import msgspec


class PageSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Put in place for every document of a world, before the page's own scripts run. Trusted: it comes from code, never from a page."""

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
    terminated: str = ""
    """JavaScript expression that is true once the episode is over, asked after every step."""
    one_page: bool = False
    """Whether there is nothing but one page: no tabs, dialogs, files or clipboard for an agent to be told of. It has PAGE_ACTIONS then."""
