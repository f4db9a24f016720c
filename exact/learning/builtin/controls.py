"""Controls of a training run: the same model and training, on the lexical agent's own wins, and on shuffled outcomes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from exact.agents.learned.network import About, Network, untrained
from exact.errors import UsageError
from exact.learning.builtin import examples
from exact.learning.builtin.collect import collect, examples_of
from exact.learning.builtin.examples import Examples
from exact.learning.builtin.fit import fit
from exact.learning.builtin.rounds import BuiltinSettings, like_machine, read_examples, settings_of, tasks_of_rounds
from exact.learning.builtin.split import digest

Progress = Callable[[str], None]


def imitation(folder: Path, progress: Progress) -> Network:
    """Return the model trained on the episodes that the untrained model, which acts as the lexical agent, wins.

    The episodes are of the run's tasks and seeds. They are made once, in the run's folder, without noise. Raises UsageError if the run was
    begun with other fonts or kernels.
    """
    settings = _settings(folder)
    like_machine(folder, progress)
    tasks = [task for round in tasks_of_rounds(settings) for task in round]
    once = msgspec.structs.replace(settings.explore, episodes=1)
    collect(
        folder / "data-lexical", folder / "round-0.npz", tasks, once, seed=settings.seed, processes=settings.processes, progress=progress
    )
    files = [examples_of(folder / "data-lexical", task) for task in tasks]
    found = examples.joined([examples.read(file) for file in files if file.exists()])
    return _fitted(found, settings, progress)


def shuffled(folder: Path, progress: Progress) -> Network:
    """Return the model trained on the run's examples, with visits and outcomes dealt out at random.

    Raises UsageError if the run was begun with other fonts or kernels.
    """
    settings = _settings(folder)
    like_machine(folder, progress)
    return _fitted(deal_out(read_examples(folder, tasks_of_rounds(settings)), settings.seed), settings, progress)


def deal_out(found: Examples, seed: int) -> Examples:
    """Return examples whose visits are dealt out among the candidates of their state, and whose outcomes among all states and ends."""
    random = np.random.default_rng(seed)
    visits, bounds = found.visits.copy(), [*found.features.first.tolist(), len(found.visits)]
    for first, last in pairwise(bounds):
        visits[first:last] = random.permutation(visits[first:last])
    order, ended, known = random.permutation(len(found.outcome)), found.ended.copy(), np.flatnonzero(found.ended >= 0)
    ended[known] = ended[random.permutation(known)]
    return found._replace(visits=visits, outcome=found.outcome[order], weight=found.weight[order], ended=ended)


def _fitted(found: Examples, settings: BuiltinSettings, progress: Progress) -> Network:
    about = About(seed=settings.seed, trained_with_reward=True, training=digest(tuple(sorted(found.tasks))))
    return fit(untrained(settings.seed), found, settings.fit, seed=settings.seed, about=about, progress=progress)


def _settings(folder: Path) -> BuiltinSettings:
    try:
        return msgspec.convert({**settings_of(folder), "out": str(folder)}, BuiltinSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{folder / 'run.json'} does not read: {error}: name another folder") from error
