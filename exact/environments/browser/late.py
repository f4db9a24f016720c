"""Side effects of an earlier action: requests that it caused, and that left after its step had ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from exact.environments.base import SideEffect
from exact.environments.browser.page.script import script_call

if TYPE_CHECKING:
    from exact.environments.browser.page.tab import Tab


def marked_late(effects: Sequence[SideEffect]) -> tuple[SideEffect, ...]:
    """Return side effects as those of an earlier action."""
    return tuple(msgspec.structs.replace(effect, late=True) for effect in effects)


async def mark_late_of_timers(effects: Sequence[SideEffect], tabs: Sequence[Tab], began: float) -> tuple[SideEffect, ...]:
    """Return the side effects since a step began. Those that an earlier timer sent are marked late.

    `began`: when the step began, in seconds since 1970. A document that was left meanwhile cannot be asked. Its requests count as those of
    the step.
    """
    from playwright.async_api import Error

    if not any(effect.method for effect in effects):
        return tuple(effects)
    late = set[str]()
    for tab in tabs:
        try:
            sent = await tab.evaluate(script_call("page/sent_by_timers"))
        except Error:  # the page is gone, or a dialog holds it
            continue
        late |= {str(url) for url, since in sent if since < began * 1000}
    return tuple(msgspec.structs.replace(effect, late=True) if effect.method and effect.url in late else effect for effect in effects)
