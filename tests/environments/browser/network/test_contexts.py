"""Contexts of a browser, found by the frames that requests come from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from exact.environments.browser.network import contexts
from exact.environments.browser.network.gate import Gate


def test_frames_of_ended_pages_are_not_remembered_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "_MOST_ENDED", 3)
    known = contexts.BrowserContexts()
    for number in range(5):
        gate = cast(Gate, SimpleNamespace(is_over=True, frames=SimpleNamespace(has=lambda frame: False)))
        known.register(f"c{number}", gate)
        known.created({"targetInfo": {"targetId": f"t{number}", "browserContextId": f"c{number}", "type": "iframe"}})
        known.unregister(f"c{number}")
    assert [known.is_over(f"t{number}") for number in range(5)] == [False, False, True, True, True]
