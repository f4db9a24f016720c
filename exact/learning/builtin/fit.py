"""Training of the learned agent's model in numpy: losses, hand-written gradients and Adam.

It runs on one thread, so that equal settings give equal weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from exact.agents.learned.features import RAGGED
from exact.agents.learned.network import (
    INNER,
    TEMPERATURE,
    WIDTH,
    About,
    Forward,
    Network,
    ended_logit,
    forward,
    lengths,
    logit,
)
from exact.learning.builtin.examples import Examples, states_of
from exact.learning.builtin.machine import one_thread

if TYPE_CHECKING:
    from exact.agents.learned.features import Floats, Ints, Ragged
    from exact.agents.learned.network import Parameters


class FitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model is fitted."""

    epochs: int = 24
    batch: int = 32
    """States of a step."""
    learning_rate: float = 2e-3
    """At first; it falls to a tenth by a cosine."""
    decay: float = 1e-4
    """Weight decay of the layers, each step."""
    drop: float = 0.1
    """Share of the outputs of the last layer that are left out in training."""
    drop_tokens: float = 0.3
    """Share of tokens, words and pairs that are left out in training."""
    caution: float = 0.05
    """Weight of the mean square of the corrections to the lexical agent's logits."""
    value_weight: float = 0.5
    """Weight of the losses of values, of that of the policy."""


class Losses(NamedTuple):
    """Mean losses of a batch."""

    policy: float
    value: float
    ended: float
    top: float
    """Share of the states with visits whose likeliest action has visits."""


def fit(start: Network, examples: Examples, settings: FitSettings, *, seed: int, about: About, progress: Callable[[str], None]) -> Network:
    """Return a model trained on all examples, each state once an epoch. Raises UsageError if threadpoolctl is not installed."""
    with one_thread():
        return _fit(start, examples, settings, seed=seed, about=about, progress=progress)


def _fit(start: Network, examples: Examples, settings: FitSettings, *, seed: int, about: About, progress: Callable[[str], None]) -> Network:
    random = np.random.default_rng(seed)
    parameters = {name: part.copy() for name, part in start.parameters.items()}
    means = {name: np.zeros_like(part) for name, part in parameters.items()}
    squares = {name: np.zeros_like(part) for name, part in parameters.items()}
    states, step = len(examples.outcome), 0
    total = settings.epochs * -(-states // settings.batch)
    for epoch in range(settings.epochs):
        order, found = random.permutation(states).tolist(), list[Losses]()
        for first in range(0, states, settings.batch):
            batch = _without_some(states_of(examples, order[first : first + settings.batch]), settings.drop_tokens, random)
            losses, gradient = gradients(parameters, batch, settings, random)
            step += 1
            rate = settings.learning_rate * (0.55 + 0.45 * float(np.cos(np.pi * step / total)))
            _adam(parameters, gradient, means, squares, step, rate, settings.decay)
            found.append(losses)
        policy, value, ended, top = (float(np.nanmean(column)) for column in np.array(found).T)
        progress(f"epoch {epoch + 1} of {settings.epochs}: policy {policy:.3f}, value {value:.3f}, ends {ended:.3f}, right {top:.2f}")
    return Network(parameters, about)


def _without_some(batch: Examples, share: float, random: np.random.Generator) -> Examples:
    """Return the batch with a share of all rows replaced by the row for nothing."""

    def thinned(of: Ragged) -> Ragged:
        return of._replace(rows=np.where(random.random(len(of.rows)) < share, 0, of.rows).astype(np.int32))

    given = batch.features
    kept: dict[str, Any] = {name: thinned(getattr(given, name)) for name in RAGGED}
    return batch._replace(features=given._replace(**kept))


def _adam(
    parameters: Parameters, gradient: Parameters, means: Parameters, squares: Parameters, step: int, rate: float, decay: float
) -> None:  # fmt: skip
    """Take one step of Adam with decoupled decay (Loshchilov and Hutter 2019)."""
    for name, slope in gradient.items():
        means[name] += 0.1 * (slope - means[name])
        squares[name] += 0.01 * (slope * slope - squares[name])
        change = means[name] / (1 - 0.9**step) / (np.sqrt(squares[name] / (1 - 0.99**step)) + 1e-8)
        shrink = decay * parameters[name] if name in ("w1", "w2", "w3", "pairs", "tokens") else 0.0
        parameters[name] -= np.float32(rate) * (change + shrink)


def gradients(
    parameters: Parameters, batch: Examples, settings: FitSettings, random: np.random.Generator | None = None
) -> tuple[Losses, Parameters]:
    """Return the losses of a batch and their gradient. `random` draws the inputs that are left out; None: none are."""
    given, found = batch.features, forward(parameters, batch.features)
    gradient = {name: np.zeros_like(part) for name, part in parameters.items()}
    mask = None
    if random is not None and settings.drop:
        mask = ((random.random(found.inner.shape) >= settings.drop) / (1 - settings.drop)).astype(np.float32)
        found = _with_mask(parameters, batch, found, mask)
    losses, d_logits, d_ended, d_value = _losses(parameters, batch, found, settings, gradient)
    d_inner = np.outer(d_logits, parameters["policy"]) + np.outer(d_ended, parameters["ended"])
    gradient["policy"] += found.inner.T @ d_logits
    gradient["ended"] += found.inner.T @ d_ended
    gradient["pairs"] += np.bincount(
        given.cross.rows, np.repeat(d_logits / 4, lengths(given.cross)), minlength=len(parameters["pairs"])
    ).astype(np.float32)
    d_said = _value_part(parameters, found, d_value, gradient, d_inner)
    if mask is not None:
        d_inner = d_inner * mask
    d_input = _layers(parameters, found, d_inner, gradient)
    _embeddings(parameters, batch, found, d_input, d_said, gradient)
    return losses, gradient


def _with_mask(parameters: Parameters, batch: Examples, found: Forward, mask: Floats) -> Forward:
    """Return the forward pass from the last layer on, with some of its outputs masked."""
    given, inner = batch.features, found.inner * mask
    pairs = found.logits - found.inner @ parameters["policy"]
    logits = pairs + inner @ parameters["policy"]
    priors = np.exp(logits - np.maximum.reduceat(logits, given.first)[found.owner])
    priors /= np.add.reduceat(priors, given.first)[found.owner]
    pooled_input = found.pooled_input.copy()
    pooled_input[:, :INNER] = np.add.reduceat(priors[:, None] * inner, given.first)
    pooled = np.maximum(pooled_input @ parameters["w3"] + parameters["b3"], 0)
    factor, constant = parameters["value_lexical"]
    value = factor * logit(given.value) + constant + pooled @ parameters["value"]
    return found._replace(
        logits=logits, priors=priors, inner=inner, ended=inner @ parameters["ended"], pooled_input=pooled_input, pooled=pooled, value=value
    )


def _losses(
    parameters: Parameters, batch: Examples, found: Forward, settings: FitSettings, gradient: Parameters
) -> tuple[Losses, Floats, Floats, Floats]:
    """Return the losses, and their slopes by logits, corrections of ends and values."""
    first, weight = batch.features.first, np.float32(settings.value_weight)
    solved = np.add.reduceat(batch.visits, first) > 0
    count = max(int(solved.sum()), 1)
    policy = -float(np.sum(batch.visits * np.log(np.maximum(found.priors, 1e-9)))) / count
    d_logits = (found.priors - batch.visits) * solved[found.owner] / count
    correction = found.logits - batch.features.lexical / TEMPERATURE
    sizes = np.add.reduceat(np.ones(len(correction), np.float32), first)[found.owner]
    policy += settings.caution * float(np.sum(correction * correction / sizes)) / len(first)
    d_logits = (d_logits + 2 * settings.caution * correction / sizes / len(first)).astype(np.float32)
    best = np.maximum.reduceat(found.priors, first)[found.owner] == found.priors
    top = (
        float(np.sum(np.add.reduceat((best & (batch.visits > 0)).astype(np.float32), first) > 0)) / count if solved.any() else float("nan")
    )

    probability = _sigmoid(found.value)
    value, d_value = _cross_entropy(probability, batch.outcome, batch.weight)
    gradient["value_lexical"] += weight * np.array([d_value @ logit(batch.features.value), d_value.sum()], np.float32)

    known = batch.ended >= 0
    ends = _sigmoid(ended_logit(parameters, found.ended, batch.ended_lexical))
    # each state's ends weigh as one, so that a state with many wrong ends does not drown the others
    per_state = np.maximum(np.add.reduceat(known.astype(np.float32), first), 1)[found.owner]
    ended, d_ended = _cross_entropy(ends, np.maximum(batch.ended, 0), (known / per_state).astype(np.float32))
    gradient["ended_lexical"] += weight * np.array([d_ended @ logit(batch.ended_lexical), d_ended.sum()], np.float32)
    return Losses(policy, value, ended, top), d_logits, weight * d_ended, weight * d_value


def _sigmoid(logits: Floats) -> Floats:
    found: Floats = (1 + np.tanh(logits / 2)) / 2
    return found


def _cross_entropy(probability: Floats, target: Floats, weight: Floats) -> tuple[float, Floats]:
    """Return the mean cross-entropy, and its slope by the logit."""
    total = max(float(weight.sum()), 1e-6)
    cut = np.clip(probability, 1e-6, 1 - 1e-6)
    loss = -float(np.sum(weight * (target * np.log(cut) + (1 - target) * np.log(1 - cut)))) / total
    return loss, (weight * (probability - target) / total).astype(np.float32)


def _value_part(parameters: Parameters, found: Forward, d_value: Floats, gradient: Parameters, d_inner: Floats) -> Floats:
    """Add the gradient of the values; the policy's weights in their mean count as constants. Return the slope by the said words."""
    gradient["value"] += found.pooled.T @ d_value
    d_pooled = np.outer(d_value, parameters["value"]) * (found.pooled > 0)
    gradient["w3"] += found.pooled_input.T @ d_pooled
    gradient["b3"] += d_pooled.sum(axis=0)
    d_pooled_input = d_pooled @ parameters["w3"].T
    d_inner += found.priors[:, None] * d_pooled_input[found.owner, :INNER]
    slope: Floats = d_pooled_input[:, INNER : INNER + WIDTH]
    return slope


def _layers(parameters: Parameters, found: Forward, d_inner: Floats, gradient: Parameters) -> Floats:
    """Add the gradient of the two layers. Return the slope by their input."""
    d_inner = d_inner * (found.inner > 0)
    gradient["w2"] += found.hidden.T @ d_inner
    gradient["b2"] += d_inner.sum(axis=0)
    d_hidden = (d_inner @ parameters["w2"].T) * (found.hidden > 0)
    gradient["w1"] += found.input.T @ d_hidden
    gradient["b1"] += d_hidden.sum(axis=0)
    slope: Floats = d_hidden @ parameters["w1"].T
    return slope


def _embeddings(parameters: Parameters, batch: Examples, found: Forward, d_input: Floats, d_said: Floats, gradient: Parameters) -> None:
    """Add the gradient of the embeddings: of both means, and of both interactions."""
    given, tokens = batch.features, parameters["tokens"]
    here, product = found.said[found.owner], d_input[:, 2 * WIDTH : 3 * WIDTH]
    d_bag = d_input[:, :WIDTH] + product * here
    d_here = d_input[:, WIDTH : 2 * WIDTH] + product * found.bag
    d_said = d_said + np.add.reduceat(d_here, given.first)
    slopes = [(given.bag.rows, _spread(d_bag, given.bag)), (given.said.rows, _spread(d_said, given.said))]
    for column, (of, best) in enumerate(zip((given.label, given.near), found.best, strict=True)):
        slope = _spread(d_input[:, 3 * WIDTH + column, None], of)
        slopes += [(of.rows, slope * tokens[best]), (best, slope * tokens[of.rows])]
    rows = np.concatenate([rows for rows, _ in slopes])
    _add_rows(gradient["tokens"], rows, np.concatenate([slope for _, slope in slopes]))


def _spread(slope: Floats, of: Ragged) -> Floats:
    """Return the slope of each row in the mean of its list."""
    sizes = lengths(of)
    found: Floats = np.repeat(slope / sizes[:, None].astype(np.float32), sizes, axis=0)
    return found


def _add_rows(table: Floats, rows: Ints, slopes: Floats) -> None:
    """Add slopes to rows of a table; a row may occur many times."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    table[ordered[starts]] += np.add.reduceat(slopes[order], starts)
