"""Expert iteration: rounds of searching training tasks with the environment's reward, and fitting the model to the results.

The folder of a run holds `round-0.npz` (the untrained model) to `round-N.npz`, the examples and summaries of each round in `data-N`, and
`run.json`. An interrupted run resumes. Equal settings give equal weights if the browser, its fonts and the kernels of OpenBLAS are the
same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from exact.agents.learned.network import About, Network, save, untrained
from exact.config.aliases import Strict
from exact.errors import UsageError
from exact.learning.builtin import examples
from exact.learning.builtin.collect import collect, examples_of, summary_of
from exact.learning.builtin.examples import Examples
from exact.learning.builtin.explore import ExploreSettings
from exact.learning.builtin.fit import FitSettings, fit
from exact.learning.builtin.machine import VARIABLE, drawn_fonts_now, told, used_kernels
from exact.learning.builtin.split import digest, load_split
from exact.runs.journal.versions import versions
from exact.runs.lock import LOCK, sole
from exact.text import counted
from exact.untrusted import decoded, read_bounded

Count = Annotated[int, msgspec.Meta(ge=1)]
NOT_REPEATED = ("miniwob/drag-cube",)
"""Training tasks that are left out unless they are named: a timer turns the cube, so that no two explorations are equal."""


class BuiltinSettings(Strict, frozen=True, kw_only=True):
    """Training of the learned agent."""

    out: str
    """Folder of the run. One that exists is gone on with."""
    seeds: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (8, 8, 8)
    """Seeds of each training task that each round searches. No seed is searched in two rounds."""
    tasks: tuple[str, ...] = ()
    """Training tasks; empty: all of the split but those whose pages do not repeat."""
    processes: Count = 2
    explore: ExploreSettings = ExploreSettings()
    fit: FitSettings = FitSettings()
    seed: int = 0


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of the exploration of one task, as `collect` writes it."""

    contradicted: bool
    returns: tuple[float, ...]
    """Returns of the episodes; empty if the environment failed."""
    steps: int
    states: int


class _Kept(msgspec.Struct):
    """Fields read from a training's run.json."""

    settings: dict[str, Any]
    fonts: dict[str, str] = {}
    kernels: str = ""


class RoundSummary(NamedTuple):
    """Result of a round."""

    round: int
    tasks: int
    """Tasks and seeds."""
    first: float
    """Share of them whose first episode, without noise, succeeded."""
    found: float
    """Share in which some episode succeeded."""
    states: int
    steps: int
    episodes: int
    failed: int
    """Tasks and seeds whose environment failed, or whose outcomes contradict each other. They give no examples."""


def train(settings: BuiltinSettings, progress: Callable[[str], None]) -> list[RoundSummary]:
    """Train for all rounds. Return the result of each.

    Raises UsageError for tasks or seeds outside the training split and for a folder of other settings or fonts, and EnvironmentFailure if
    the browser is missing.
    """
    rounds = tasks_of_rounds(settings)
    with sole(Path(settings.out), LOCK):
        return _trained(rounds, settings, progress)


def _trained(rounds: Sequence[Sequence[str]], settings: BuiltinSettings, progress: Callable[[str], None]) -> list[RoundSummary]:
    folder = _opened(settings, progress)
    if not (folder / "round-0.npz").exists():
        save(untrained(settings.seed), folder / "round-0.npz")
    for round, tasks in enumerate(rounds):
        data, weights, after = folder / f"data-{round}", folder / f"round-{round}.npz", folder / f"round-{round + 1}.npz"
        collect(
            data, weights, tasks, settings.explore, seed=settings.seed, processes=settings.processes,
            progress=lambda text, round=round: progress(f"round {round}: {text}"),  # type: ignore[misc]
        )  # fmt: skip
        progress(_told(summarise(data, round, tasks)))
        if not after.exists():
            save(fitted(folder, settings, rounds[: round + 1], progress), after)
    return [summarise(folder / f"data-{round}", round, tasks) for round, tasks in enumerate(rounds)]


def tasks_of_rounds(settings: BuiltinSettings) -> list[list[str]]:
    """Return the tasks, with their seeds, that each round searches. Raises UsageError if one is not a training task."""
    split = load_split()
    names = settings.tasks or [name for name in split.training if name not in NOT_REPEATED]
    rounds = [
        [f"{name}?seed={seed}" for seed in split.seeds["training"].take(count, sum(settings.seeds[:round])) for name in names]
        for round, count in enumerate(settings.seeds)
    ]
    for task in (task for tasks in rounds for task in tasks):
        split.check_training(task)
    return rounds


def fitted(folder: Path, settings: BuiltinSettings, rounds: Sequence[Sequence[str]], progress: Callable[[str], None]) -> Network:
    """Return the model fitted to the examples of all rounds so far, from the untrained one. Raises UsageError if there are none."""
    found = read_examples(folder, rounds)
    episodes = sum(summarise(folder / f"data-{round}", round, tasks).episodes for round, tasks in enumerate(rounds))
    training = digest(tuple(sorted(found.tasks)))
    about = About(round=len(rounds), seed=settings.seed, trained_with_reward=True, training=training, episodes=episodes)
    solved = int((np.add.reduceat(found.visits, found.features.first) > 0).sum())
    progress(f"round {len(rounds)}: {counted(len(found.outcome), 'state')}, {solved} solved")
    return fit(untrained(settings.seed), found, settings.fit, seed=settings.seed, about=about, progress=progress)


def read_examples(folder: Path, rounds: Sequence[Sequence[str]]) -> Examples:
    """Return the examples of rounds. Raises UsageError if there are none."""
    files = [examples_of(folder / f"data-{round}", task) for round, tasks in enumerate(rounds) for task in tasks]
    parts = [examples.read(file) for file in files if file.exists()]
    if not parts:
        raise UsageError(f"{folder} holds no examples: did all environments fail?")
    return examples.joined(parts)


def summarise(data: Path, round: int, tasks: Sequence[str]) -> RoundSummary:
    """Return the result of a round."""
    lines = [_summary(summary_of(data, task)) for task in tasks]
    good = [line for line in lines if line.returns and not line.contradicted]
    count = max(len(good), 1)
    return RoundSummary(
        round, len(lines), sum(line.returns[0] > 0 for line in good) / count, sum(max(line.returns) > 0 for line in good) / count,
        sum(line.states for line in lines), sum(line.steps for line in lines), sum(len(line.returns) for line in lines),
        len(lines) - len(good),
    )  # fmt: skip


def _summary(path: Path) -> TaskSummary:
    """Return the summary of one task's exploration. Raises UsageError."""
    try:
        return decoded(read_bounded(path), TaskSummary)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} does not read: {error}: remove it, and train again") from error


def settings_of(folder: Path) -> dict[str, Any]:
    """Return the settings of a training's folder, as plain data. Raises UsageError."""
    return _kept(folder).settings


def _kept(folder: Path) -> _Kept:
    """Return the fields of run.json in a training's folder. Raises UsageError."""
    try:
        return decoded(read_bounded(folder / "run.json"), _Kept)
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / 'run.json'} does not read: {error}: name another folder") from error


def _opened(settings: BuiltinSettings, progress: Callable[[str], None]) -> Path:
    """Return the folder of the run, new, or of the same settings on a like machine. It says that rewards were read.

    Raises UsageError for other settings, fonts and kernels.
    """
    folder = Path(settings.out)
    folder.mkdir(parents=True, exist_ok=True)
    mine = {name: value for name, value in msgspec.to_builtins(settings).items() if name not in ("out", "processes")}
    manifest = folder / "run.json"
    if manifest.exists() and settings_of(folder) != json.loads(json.dumps(mine)):
        raise UsageError(f"{folder} is a run of other settings: name another folder")
    machine = like_machine(folder, progress)
    if not manifest.exists():
        said = {"trained_with_reward": True, "settings": mine, **machine, "split": load_split().sha256, "versions": versions()}
        manifest.write_text(json.dumps(said, indent=1) + "\n")
    return folder


def like_machine(folder: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the fonts and kernels of this machine, and say them. Raises UsageError if the run in the folder was begun with others."""
    made = _kept(folder) if (folder / "run.json").exists() else _Kept({})
    fonts, kernels = drawn_fonts_now(), used_kernels()
    progress(f"the browser draws {told(fonts)}; OpenBLAS has the kernels of {kernels}")
    if made.fonts not in ({}, fonts):
        raise UsageError(f"{folder} was begun where the browser draws {told(made.fonts)}: install these fonts, or name another folder")
    if made.kernels not in ("", kernels):
        raise UsageError(f"{folder} was begun with the kernels of {made.kernels}: set {VARIABLE}={made.kernels}, or name another folder")
    return {"fonts": fonts, "kernels": kernels}


def _told(found: RoundSummary) -> str:
    return (
        f"round {found.round}: {counted(found.tasks, 'task')}, first episode {found.first:.2f}, any episode {found.found:.2f}, "
        f"{counted(found.states, 'state')} in {counted(found.steps, 'step')}, {found.failed} failed"
    )
