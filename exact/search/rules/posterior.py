"""What is believed of an arm's mean after some values in [0, 1], and a draw from that belief (Thompson sampling).

Beta: `Beta(a + sum v, b + n - sum v)`, a value counting as a fractional success. Prior a = b = 0.5 (Jeffreys).

Gaussian with unknown mean and variance: the normal-inverse-chi-squared posterior (Murphy 2023, "Probabilistic Machine Learning: Advanced
Topics", 3.4.3.3), with n values of mean `v` and sum of squared deviations S:
`kappa_n = kappa + n`, `m_n = (kappa m + n v) / kappa_n`, `nu_n = nu + n`,
`nu_n tau2_n = nu tau2 + S + (n kappa / kappa_n) (m - v)^2`; a draw: `sigma2 ~ InvGamma(nu_n / 2, nu_n tau2_n / 2)`, then
`mean ~ Normal(m_n, sigma2 / kappa_n)`. Prior m = 0, kappa = 1, nu = 1, tau2 = 0.1.

Both are conjugate, and both priors are those of TreeQuest's ABMCTSA.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Moments(NamedTuple):
    """The values that an arm has had, as far as a posterior needs them."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    """Sum of the squared values."""

    def plus(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)


class Belief(Protocol):
    """A prior, and what becomes of it."""

    def draw(self, seen: Moments, dice: random.Random) -> float:
        """A mean that the arm may have."""
        ...

    def mean(self, seen: Moments) -> float:
        """The mean that is expected of it."""
        ...


@dataclass(frozen=True)
class Beta:
    """a, b > 0."""

    a: float = 0.5
    b: float = 0.5

    def draw(self, seen: Moments, dice: random.Random) -> float:
        return dice.betavariate(self.a + seen.total, self.b + seen.n - seen.total)

    def mean(self, seen: Moments) -> float:
        return (self.a + seen.total) / (self.a + self.b + seen.n)


@dataclass(frozen=True)
class Gaussian:
    """kappa, nu, tau2 > 0: how many values the prior's mean and its variance tau2 count for."""

    m: float = 0.0
    kappa: float = 1.0
    nu: float = 1.0
    tau2: float = 0.1

    def draw(self, seen: Moments, dice: random.Random) -> float:
        kappa, nu = self.kappa + seen.n, self.nu + seen.n
        variance = self._sum(seen) / 2 / max(dice.gammavariate(nu / 2, 1.0), 1e-300)
        return dice.normalvariate(self.mean(seen), math.sqrt(variance / kappa))

    def mean(self, seen: Moments) -> float:
        return (self.kappa * self.m + seen.total) / (self.kappa + seen.n)

    def _sum(self, seen: Moments) -> float:
        """`nu_n tau2_n`."""
        if not seen.n:
            return self.nu * self.tau2
        mean = seen.total / seen.n
        deviations = max(0.0, seen.squares - seen.n * mean**2)
        return self.nu * self.tau2 + deviations + seen.n * self.kappa / (self.kappa + seen.n) * (self.m - mean) ** 2
