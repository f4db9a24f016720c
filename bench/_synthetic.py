"""A game of negligible cost with the same tree for every engine. Imports nothing of exact, because peers run it in their own environments.

Every state has the same number of actions and every state at `depth` is an end. A state is a number: 1 for the root, and
`state * (branching + 1) + action + 1` for a child. Priors are the same everywhere, without ties; values are looked up in a table.
"""

from __future__ import annotations

import random

TABLE = 1 << 16


class Game:
    """`values[state % TABLE]`: what the judge says of a state, and the return of an end."""

    def __init__(self, *, branching: int, depth: int, seed: int = 7) -> None:
        dice = random.Random(seed)
        self.branching, self.depth, self.base = branching, depth, branching + 1
        weights = [dice.uniform(0.5, 1.0) for _ in range(branching)]
        self.priors = [(action, weight / sum(weights)) for action, weight in enumerate(weights)]
        self.values = [dice.uniform(0.4, 0.6) for _ in range(TABLE)]

    def value(self, state: int) -> float:
        return self.values[state % TABLE]

    def child(self, state: int, action: int) -> int:
        return state * self.base + action + 1
