"""What is read of a medium."""

from __future__ import annotations

import pytest

from exact.environments.browser.observe.media import Media, media_state


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"paused": True, "seconds": 3.9}, Media(("paused",), None, True)),
        ({"paused": True, "seconds": 64.0, "muted": True}, Media(("paused", "muted"), "1:00", True)),
        ({"paused": False, "seconds": 64.0}, Media(("playing",), None, True)),
        ({"paused": True, "seconds": 0.0}, Media(("paused",), None, False)),
        ({"paused": False, "seconds": 0.4, "length": 1.5}, Media(("playing",), None, False)),
        ({"paused": True, "seconds": 90.0, "length": 90.0, "ended": True}, Media(("ended",), "1:30", True)),
    ],
)
def test_a_medium_is_told_by_what_it_does_and_where_it_was_paused(given: dict[str, object], read: Media) -> None:
    assert media_state({"muted": False, "ended": False, "length": None, **given}) == read
