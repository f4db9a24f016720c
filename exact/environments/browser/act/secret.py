"""Typing of secrets: only into documents of their origins."""

from __future__ import annotations

from typing import Any

from exact.environments.browser.act.action_context import ActionContext
from exact.environments.browser.page.cdp import script_call
from exact.errors import EnvironmentFailure, SecretRefused


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
