"""Spaces of texts: what an environment shows, and the actions that it takes."""

from __future__ import annotations

import string
from typing import Any

from gymnasium import spaces


class AnyText(spaces.Text):
    """All texts of a bounded length, of any characters. Samples are printable ASCII."""

    def __init__(self, max_length: int) -> None:
        """Create a space of texts of at most `max_length` characters."""
        super().__init__(max_length, min_length=0, charset=string.printable)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length


class ActionText(AnyText):
    """Actions as texts. Samples are actions that the last observation allows, or any text before there is one."""

    def __init__(self, max_length: int) -> None:
        """Create a space of actions of at most `max_length` characters."""
        super().__init__(max_length)
        self.possible: tuple[str, ...] = ()
        """Actions that the last observation allows, as far as grammar and elements show; none that ends the attempt if there are others."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw an action. Masks are for texts of characters, and are not used where the possible actions are known."""
        if not self.possible:
            return str(super().sample(mask, probability))
        return self.possible[int(self.np_random.integers(len(self.possible)))]
