"""The patience of a machine with applications that start."""

from __future__ import annotations

import pytest

from exact.environments.desktop.accessibility import Silent
from exact.environments.desktop.vm.machine import Machine


class Starting:
    """An application that answers the third time that it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.asked < 3:
            raise Silent([":1.5"])
        return "there"


def test_an_application_that_starts_is_asked_again() -> None:
    assert Machine._patiently(Starting()) == "there"


def test_patience_ends() -> None:
    with pytest.raises(Silent):
        Machine._patiently(Starting(), seconds=-1.0)
