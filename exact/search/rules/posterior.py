"""Conjugate posteriors of an arm's mean after values in [0, 1], for Thompson sampling.

Beta: `Beta(a + sum v, b + n - sum v)`, in which a value counts as a fractional success. Prior a = b = 0.5 (Jeffreys).

Gaussian with unknown mean and variance: the normal-inverse-chi-squared posterior (Murphy 2023, "Probabilistic Machine Learning: Advanced
Topics", 3.4.3.3), with n values of mean `v` and sum of squared deviations S: `kappa_n = kappa + n`, `m_n = (kappa m + n v) / kappa_n`,
`nu_n = nu + n`, `nu_n tau2_n = nu tau2 + S + (n kappa / kappa_n) (m - v)^2`. A draw: `sigma2 ~ InvGamma(nu_n / 2, nu_n tau2_n / 2)`, then
`mean ~ Normal(m_n, sigma2 / kappa_n)`. Prior m = 0, kappa = 1, nu = 1, tau2 = 0.1.

Both priors are those of TreeQuest's ABMCTSA.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Moments(NamedTuple):
    """Count, sum and sum of squares of the values of an arm."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    """Sum of the squared values."""

    def plus(self, other: Moments) -> Moments:
        """Return the moments of both sets of values together."""
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)


class Belief(Protocol):
    """A prior and its posterior."""

    def draw(self, moments: Moments, rng: random.Random) -> float:
        """Return a draw of the arm's mean from the posterior."""
        ...

    def mean(self, moments: Moments) -> float:
        """Return the posterior mean of the arm."""
        ...


@dataclass(frozen=True)
class Beta:
    """Beta prior. a, b: above 0."""

    a: float = 0.5
    b: float = 0.5

    def draw(self, moments: Moments, rng: random.Random) -> float:
        return rng.betavariate(self.a + moments.total, self.b + moments.n - moments.total)

    def mean(self, moments: Moments) -> float:
        return (self.a + moments.total) / (self.a + self.b + moments.n)


@dataclass(frozen=True)
class Gaussian:
    """Normal-inverse-chi-squared prior.

    kappa, nu, tau2: above 0. kappa and nu are the pseudo-counts of the mean and of the variance tau2.
    """

    m: float = 0.0
    kappa: float = 1.0
    nu: float = 1.0
    tau2: float = 0.1

    def draw(self, moments: Moments, rng: random.Random) -> float:
        kappa, nu = self.kappa + moments.n, self.nu + moments.n
        variance = self._sum(moments) / 2 / max(rng.gammavariate(nu / 2, 1.0), 1e-300)
        return rng.normalvariate(self.mean(moments), math.sqrt(variance / kappa))

    def mean(self, moments: Moments) -> float:
        return (self.kappa * self.m + moments.total) / (self.kappa + moments.n)

    def _sum(self, moments: Moments) -> float:
        """Return `nu_n tau2_n`."""
        if not moments.n:
            return self.nu * self.tau2
        mean = moments.total / moments.n
        deviations = max(0.0, moments.squares - moments.n * mean**2)
        return self.nu * self.tau2 + deviations + moments.n * self.kappa / (self.kappa + moments.n) * (self.m - mean) ** 2
