"""The context in which an action is carried out.

Errors of actions that carry more than a refusal. Typing of secrets: only into documents of their origins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exact.environments.browser.page.cdp import script_call
from exact.environments.browser.page.clipboard import Clipboard
from exact.environments.browser.page.ids import Ids, NodeLocation
from exact.environments.browser.page.tab import Tab
from exact.errors import ActionError, EnvironmentFailure, SecretRefused


@dataclass(frozen=True, kw_only=True)
class ActionContext:
    """The tab and the environment that an action is carried out in."""

    tab: Tab
    ids: Ids
    width: int
    height: int
    """Size of the viewport in CSS pixels."""
    others: Sequence[Tab] = ()
    """The other tabs, in the order in which observations list them."""
    refusal: Callable[[str], str]
    """Returns the reason why the agent may not go to a URL; empty if it may."""
    is_own: Callable[[str], bool] = lambda url: True
    """Returns whether a URL belongs to a site of the task, and not to one that is merely allowed."""
    previous_url: Callable[[], str]
    """Takes the address behind a restored page, whose tab has no history. Empty if there is none."""
    focus: Callable[[Tab], Awaitable[None]]
    """Brings another tab to the front."""
    fill: Callable[[str, Iterable[str]], str] = lambda text, where: text
    """Returns a text as it is typed, with secrets in place of their placeholders. The second argument: the origins of the documents that
    may get it. Raises SecretRefused if they are not the secret's own."""
    holds_secret: Callable[[str], bool] = lambda text: False
    """Returns whether a placeholder of a secret stands in a text."""
    note_field: Callable[[str, int], None] = lambda text, backend: None
    """Notes that a text, with placeholders, replaces the content of a field of the tab, by its backend id."""
    files: Mapping[str, Path]
    """Files that may be uploaded, by name."""
    clipboard: Clipboard | None = None
    """The environment's clipboard if environments share a browser, which has one for all of them."""
    checks: dict[NodeLocation, dict[str, Any]] = field(default_factory=dict)
    """The argument of same.js for each node that the action names. It is taken out by the first script that is called on the node."""


class PartialAction(ActionError):
    """An action that failed after partly executing. The caller must observe again before it reports an ActionError."""


class Ineffective(PartialAction):
    """Raised after input to which a page may react in its own way. It is an error only if nothing came of it."""


class Vanished(ActionError):
    """An action whose element, or its document, the page has removed since it was observed. Nothing was done."""


class Changed(Vanished):
    """An action whose element may no longer be the one that was observed. Nothing was done."""


async def fill_at(context: ActionContext, text: str, frame: str) -> str:
    """Return a text as it is typed into a frame. Raises SecretRefused if a secret in the text belongs to another origin than the frame."""
    if not context.holds_secret(text):
        return text
    return context.fill(text, [(await _document(context, frame))["origin"]])


async def fill_at_focus(context: ActionContext, text: str) -> tuple[str, str]:
    """Return the frame that has the focus, and a text with secrets as it is typed there. Raises SecretRefused."""
    frames = {frame: await _document(context, frame) for frame in list(context.tab.frames)}
    focused = {frame: found for frame, found in frames.items() if found["focused"]} or frames
    around = {context.tab.frames.get(frame) for frame in focused}
    inmost = next((frame for frame in focused if frame not in around), context.tab.main_frame)
    return inmost, context.fill(text, [found["origin"] for found in focused.values()])


async def has_foreign_frames(context: ActionContext, text: str) -> bool:
    """Return whether a frame of the page belongs to an origin that may not get the secrets of a text: it could take the focus."""
    for frame in list(context.tab.frames):
        try:
            context.fill(text, [(await _document(context, frame))["origin"]])
        except SecretRefused:
            return True
    return False


async def _document(context: ActionContext, frame: str) -> dict[str, Any]:
    from playwright.async_api import Error

    try:
        return dict(await context.tab.evaluate_in(frame, script_call("act/focused")))
    except (Error, EnvironmentFailure):
        return {"focused": False, "origin": ""}  # a frame that is gone
