"""Examples, gradients and the training of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exact.agents.learned.agent import LearnedAgent
from exact.agents.learned.network import About, Network, forward, untrained
from exact.learning.builtin import examples as made
from exact.learning.builtin.controls import deal_out
from exact.learning.builtin.examples import Examples
from exact.learning.builtin.explore import Explorer, ExploreSettings
from exact.learning.builtin.fit import FitSettings, fit, gradients
from exact.learning.builtin.split import load_split
from tests.learning.builtin.worlds import TASK, Lamps, task


@pytest.fixture
async def found() -> Examples:
    """Return the examples of the lamps."""
    explorer = Explorer(LearnedAgent(untrained()), load_split(), ExploreSettings(episodes=40, all_steps=400))
    examples = made.examples_of(await explorer.explore(Lamps(), task()))
    assert examples is not None
    return examples


def fitted(examples: Examples, seed: int = 0) -> Network:
    return fit(untrained(), examples, FitSettings(epochs=150), seed=seed, about=About(), progress=lambda text: None)


async def test_the_gradient_is_that_of_the_loss(found: Examples) -> None:
    random = np.random.default_rng(0)
    parameters = {name: part + 0.05 * random.standard_normal(part.shape) for name, part in untrained().parameters.items()}
    settings = FitSettings()

    def loss() -> float:
        losses, _ = gradients(parameters, found, settings)
        return losses.policy + settings.value_weight * (losses.value + losses.ended)

    _, gradient = gradients(parameters, found, settings)
    for name in set(parameters) - {"policy", "pairs"}:  # the value's slope by these is left out on purpose: they weigh its mean
        at = np.unravel_index(np.abs(gradient[name]).argmax(), gradient[name].shape)
        kept, step = parameters[name][at], 1e-4
        parameters[name][at] = kept + step
        above = loss()
        parameters[name][at] = kept - step
        slope = (above - loss()) / (2 * step)
        parameters[name][at] = kept
        assert gradient[name][at] == pytest.approx(slope, rel=0.05, abs=1e-4), name


async def test_training_raises_the_prior_of_what_the_search_found(found: Examples) -> None:
    before, after = (forward(network.parameters, found.features).priors for network in (untrained(), fitted(found)))
    good = found.visits > 0
    assert after[good].min() > before[good].min()
    assert after[good].min() > 0.5


async def test_training_repeats(found: Examples) -> None:
    one, other = fitted(found), fitted(found)
    assert all((one.parameters[name] == other.parameters[name]).all() for name in one.parameters)


async def test_outcomes_that_are_dealt_out_are_the_same_in_number(found: Examples) -> None:
    dealt = deal_out(found, 1)
    assert sorted(dealt.outcome) == sorted(found.outcome)
    assert sorted(dealt.visits) == sorted(found.visits)
    assert ((dealt.ended >= 0) == (found.ended >= 0)).all()


async def test_examples_are_read_as_they_were_written(found: Examples, tmp_path: Path) -> None:
    made.write(found, tmp_path / "x.npz")
    again = made.read(tmp_path / "x.npz")
    assert again.tasks == (TASK,)
    assert (again.visits == found.visits).all()
    assert (again.features.bag.rows == found.features.bag.rows).all()


async def test_states_are_picked_in_any_order(found: Examples) -> None:
    both = made.states_of(found, [1, 0])
    assert both.outcome.tolist() == found.outcome[[1, 0]].tolist()
    assert made.states_of(both, [1, 0]).features.numbers == pytest.approx(found.features.numbers)
