"""Examples, gradients and the training of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from exact.agents.learned.agent import LearnedAgent
from exact.agents.learned.network import About, Network, forward, untrained
from exact.errors import UsageError
from exact.learning.builtin import examples as made
from exact.learning.builtin.controls import deal_out, shuffled
from exact.learning.builtin.examples import Examples
from exact.learning.builtin.explore import Explorer, ExploreSettings
from exact.learning.builtin.fit import FitSettings, fit, gradients
from exact.learning.builtin.rounds import BuiltinSettings, train
from exact.learning.builtin.split import load_split
from tests.learning.builtin.worlds import TASK, Lamps, task


@pytest.fixture
async def found() -> Examples:
    """Return the examples of the lamps."""
    explorer = Explorer(LearnedAgent(untrained()), load_split(), ExploreSettings(episodes=40, all_steps=400))
    examples = made.examples_of(await explorer.explore(Lamps(), task()))
    assert examples is not None
    return examples


def fitted(examples: Examples, seed: int = 0, epochs: int = 150) -> Network:
    return fit(untrained(), examples, FitSettings(epochs=epochs), seed=seed, about=About(), progress=lambda text: None)


HOSTILE: dict[str, dict[str, object]] = {
    "an array is missing": {"visits": None},
    "one more": {"more": np.zeros(1)},
    "objects": {"visits": np.array([divmod, {}], object)},
    "another type": {"outcome": np.zeros(3, np.float64)},
    "no number": {"visits": np.full(1, np.nan, np.float32)},
    "another length": {"ended": np.zeros(1, np.float32)},
    "a word that is none": {"features.bag.rows": np.full(9, 2**31 - 1, np.int32)},
    "a word before the first": {"features.said.rows": np.full(9, -1, np.int32)},
    "a list that begins behind the end": {"features.said.starts": np.full(3, 10**6, np.int32)},
    "an empty list": {"features.first": np.zeros(3, np.int32)},
    "a task that is none": {"task": np.full(3, 99, np.int32)},
    "tasks that are none": {"tasks": np.frombuffer(b"[" * 9000, np.uint8)},
    "a number for all": {"visits": np.float32(1)},
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_examples_of_a_stranger_are_arrays_that_fit_each_other(found: Examples, tmp_path: Path, what: str) -> None:
    path = tmp_path / "e.npz"
    made.write(found, path)
    with np.load(path) as held:
        parts = dict(held) | HOSTILE[what]
    np.savez(path, **{name: part for name, part in parts.items() if part is not None})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="do not read"):
        made.read(path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x93NUMPY", b"x" * 100])
def test_a_file_that_is_no_npz_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "e.npz").write_bytes(data)
    with pytest.raises(UsageError, match="do not read"):
        made.read(tmp_path / "e.npz")


async def test_examples_are_not_unpacked_without_bounds(found: Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write(found, tmp_path / "e.npz")
    monkeypatch.setattr(made, "_MOST_UNPACKED", 1000)
    with pytest.raises(UsageError, match=r"more than 1,000 bytes"):
        made.read(tmp_path / "e.npz")


@pytest.mark.parametrize("text", ["{", "[" * 50_000, "{}", '{"settings": 1}', '{"settings": {"seeds": "x"}}'])
def test_a_trainings_folder_that_does_not_read_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UsageError, match=r"does not read|other settings"):
        shuffled(tmp_path, print)
    with pytest.raises(UsageError, match=r"does not read|other settings"):
        train(BuiltinSettings(out=str(tmp_path)), print)


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


async def test_a_model_is_the_same_whatever_number_of_threads_the_process_has(found: Examples) -> None:
    many = made.joined([found] * 20)
    with threadpool_limits(1):
        one = fitted(many, epochs=2)
    with threadpool_limits(2):
        other = fitted(many, epochs=2)
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
